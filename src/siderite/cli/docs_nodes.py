"""The reference pages of the bare metal API's states and versions, printed from their tables."""

from collections.abc import Iterable
from collections.abc import Iterator

from siderite.baremetal.domain.node_machine import NODE
from siderite.baremetal.domain.node_machine import VERBS
from siderite.baremetal.domain.node_machine import legal_verbs
from siderite.baremetal.domain.wire import CHASSIS_FIELDS
from siderite.baremetal.domain.wire import NODE_FIELDS
from siderite.baremetal.domain.wire import PORT_FIELDS
from siderite.baremetal.web import versions
from siderite.cli.markdown import code
from siderite.cli.markdown import codes
from siderite.cli.markdown import page
from siderite.cli.markdown import table
from siderite.core import diagram
from siderite.core.machine import KEEP
from siderite.core.machine import Row
from siderite.core.machine import State


def node_picture() -> str:
    """The states of a node as a drawing."""
    return diagram.svg(NODE, asked=_asked)


def _asked(row: Row) -> bool:
    return any(VERBS[verb] == row.event for verb in legal_verbs(row.state))


def node_states() -> str:
    """The states of a node, its verbs and rows."""
    states = (
        (code(s.name), s.kind, code(s.target), _lasts(s), s.meaning) for s in NODE.states.values()
    )
    rows = ((code(r.state), r.event, code(r.to), _target(r)) for r in NODE)
    return page(
        "The states of a node",
        f"{len(NODE.states)} states, {len(NODE.rows)} rows. What a client asks for is a *verb*; it"
        " fires an *event*; the table says where that leads. An event without a row is refused,"
        " and the refusal lists the legal verbs.",
        "[![The states of a node](node-states.svg)](node-states.svg)",
        "Arrows that would cross the picture are written on the card of the state they leave."
        " Labels in italics are moves that only the service itself makes.",
        "## States",
        "A *stable* state moves only on a request and has no target. *Active* and *wait* states"
        " move by themselves: they have a target and a deadline, and an overdue node goes where"
        " `fail` leads. *Failed* and *hold* states move only on a request, and keep their target"
        " in sight. Deadlines of active states are scaled by the option `deadline_scale`; that of"
        " a wait state is `callback_timeout_s`, counted from the last call. What would last no time"
        " (`verified`, `cleaned`, `deployed` …) is no state here: `done` leads to what follows it."
        " Where there is no failed state, `fail` leads to `enroll` or `error`.",
        table("state | kind | target | lasts at most | meaning", states),
        "## Verbs",
        "What `PUT /v1/nodes/{node}/states/provision` takes as `target`; 406 if it is too old.",
        table("verb | since | event | from states", _verb_rows()),
        "## Rows",
        "The target is that of the new state; *kept* means that a target given earlier stays.",
        table("from | event | to | target then", rows),
        "## As Mermaid",
        f"```mermaid\n{diagram.mermaid(NODE)}```",
    )


def _lasts(state: State) -> str:
    seconds = state.deadline_s
    if seconds is None:
        return ""
    hours, rest = divmod(seconds, 3600)
    return f"{hours:g} h" if not rest and hours else f"{seconds / 60:g} min"


def _target(row: Row) -> str:
    if row.target == KEEP:
        return "kept"
    return code(row.target or NODE.states[row.to].target)


def _verb_rows() -> Iterator[tuple[str, ...]]:
    for verb, since in sorted(versions.VERB_SINCE.items(), key=lambda item: item[1]):
        plain = next(v for v, event in VERBS.items() if event == VERBS[verb])
        places = [s for s in NODE.states if plain in legal_verbs(s)]
        shown = [
            code(s)
            + (
                f" (1.{versions.ABORT_SINCE[s]})"
                if verb == "abort" and s in versions.ABORT_SINCE
                else ""
            )
            for s in places
        ]
        yield code(verb), f"1.{since}", VERBS[verb].value, ", ".join(shown)


def baremetal_versions() -> str:
    """The microversions of the bare metal API."""
    low, high = (
        versions.RANGE.text(versions.RANGE.low),
        versions.RANGE.text(versions.RANGE.upstream),
    )
    return page(
        "Microversions of the bare metal API",
        f"Clients ask with `X-OpenStack-Ironic-API-Version: 1.38`, or `OpenStack-API-Version:"
        f" baremetal 1.38`; without it they get {low}. {low} to {high} are numbered as Ironic"
        " numbers them; 1.900 on are Siderite's own and never collide; what lies between is"
        " refused with 406. A number brings what the table says only as far as this release"
        " has the resource at all: see [routes](routes.md).",
        table("version | what it brought", (v.split(" ", 1) for v in versions.VERSIONS)),
        "## Fields of a node",
        table("since | fields", _grouped(NODE_FIELDS)),
        "## Query arguments of the node list",
        table("since | arguments", _grouped(versions.FILTER_SINCE.items())),
        "## Fields of a port",
        table("since | fields", _grouped(PORT_FIELDS)),
        "## Query arguments of the port list",
        table("since | arguments", _grouped(versions.PORT_FILTER_SINCE.items())),
        "## Fields of a chassis",
        table("since | fields", _grouped(CHASSIS_FIELDS)),
        "## Query arguments of the chassis list",
        table("since | arguments", _grouped(versions.CHASSIS_FILTER_SINCE.items())),
    )


def _grouped(pairs: Iterable[tuple[str, int]]) -> list[tuple[str, str]]:
    groups: dict[int, list[str]] = {}
    for name, since in pairs:
        groups.setdefault(since, []).append(name)
    return [(f"1.{since}", codes(names)) for since, names in sorted(groups.items())]
