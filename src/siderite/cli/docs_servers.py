"""The reference pages of the compute API's states and versions, printed from their tables."""

from collections.abc import Iterator

from siderite.cli.markdown import code
from siderite.cli.markdown import page
from siderite.cli.markdown import table
from siderite.compute.domain.server_machine import ACTIONS
from siderite.compute.domain.server_machine import KEEP
from siderite.compute.domain.server_machine import SERVER
from siderite.compute.domain.server_machine import Action
from siderite.compute.domain.server_machine import Event
from siderite.compute.domain.server_machine import V
from siderite.compute.domain.server_machine import allowed_in
from siderite.compute.domain.status import STATUS
from siderite.compute.web.versions import RANGE
from siderite.compute.web.versions import VERSIONS


def server_states() -> str:
    """States, statuses and actions of a server."""
    states = ((code(vm), STATUS[vm][0], SERVER.states[vm].meaning, _special(vm)) for vm in V)
    return page(
        "The states of a server",
        f"A state is a vm_state, with a task_state while something is being done:"
        f" {len(SERVER.states)} states, {len(SERVER.rows)} rows. An action that has no row in a"
        " state is refused (409). Whatever is being done has a deadline: overdue, it fails, and the"
        " server shows why.",
        "## vm_state",
        table("vm_state | status | meaning | status while a task is under way", states),
        "## Actions",
        "Each is allowed in these states without a task. *Stays* means that the vm_state is the"
        " same afterwards. Every server can be deleted in every state, and reset by an"
        " administrator.",
        table("action | allowed in | tasks | ends in | lasts at most", map(_row, ACTIONS)),
        "## PENDING, and who is responsible",
        "Only with the option `use_pending_state`; below microversion 2.900 it shows as ERROR. More"
        " in [free room for PENDING servers](../how-to/free-room-for-pending-servers.md).",
        table("from | event | to | when, and who is responsible then", _pending()),
        "## Stop, and what else shuts down",
        "A change of default behaviour: "
        + ", ".join(code(one.event) for one in ACTIONS if one.clean)
        + " send the guest a shutdown signal, again every `shutdown_retry_interval_s`, and take its"
        " power only after `shutdown_timeout_s`. With microversion 2.901, stop, rescue, rebuild,"
        ' resize, shelve and migrate take `"shutdown_type": "HARD"`: power is taken at once.'
        " [More](../explanation/controlled-shutdown.md).",
        "## Power by other hands",
        "A host's own news, or the external event `power-update` of a bare metal service, moves a"
        " server without a task:",
        table("from | event | to", _by_other_hands()),
        "## Hard reboot",
        "It may interrupt: " + ", ".join(code(one) for one in _interrupted()) + ".",
    )


def _pending() -> Iterator[tuple[str, ...]]:
    """The rows around PENDING, out of the table; a row that nobody explained is an error."""
    for row in SERVER:
        if V.PENDING in (row.state, row.to) and row.event not in _FOR_ALL:
            yield code(row.state), row.event, code(row.to), _PENDING[row.event]


def _by_other_hands() -> Iterator[tuple[str, ...]]:
    for row in SERVER:
        if row.event in (Event.POWERED_ON, Event.POWERED_OFF):
            yield code(row.state), row.event, code(row.to)


_FOR_ALL = (Event.DELETE, Event.SOFT_DELETE)
_PENDING: dict[str, str] = {
    Event.PEND: "BUILD → PENDING: no host would take it; a service outside, such as the reaper",
    "rebuild": "PENDING → BUILD: that service made room; compute",
    Event.RESET_ERROR: "PENDING → ERROR: given up (`os-resetState`), or after `pending_timeout_s`;"
    " its owner",
}


def _special(vm: V) -> str:
    found = STATUS[vm][1]
    words = sorted(set(found.values()))
    return "; ".join(
        f"{word}: " + ", ".join(code(task) for task, name in found.items() if name == word)
        for word in words
    )


def _row(action: Action) -> tuple[str, ...]:
    end = "stays" if action.end == KEEP else code(action.end)
    if action.was_stopped:
        end += f" or {code(V.STOPPED)}, as before"
    return (
        action.event,
        ", ".join(code(vm) for vm in action.allowed),
        ", ".join(code(task) for task in action.tasks),
        end,
        f"{action.deadline_s / 60:g} min",
    )


def _interrupted() -> list[str]:
    return sorted(state for state in allowed_in("reboot_hard") if "/" in state)


def compute_versions() -> str:
    """What each version of the compute API brought."""
    low, high = RANGE.text(RANGE.low), RANGE.text(RANGE.upstream)
    return page(
        "Microversions of the compute API",
        f"Clients ask with `OpenStack-API-Version: compute 2.79`, or `X-OpenStack-Nova-API-Version:"
        f" 2.79`; without it they get {low}. {low} to {high} are numbered as Nova numbers them;"
        " 2.900 on are Siderite's own; what lies between is refused with 406.",
        table("version | what it brought", (line.split(" ", 1) for line in VERSIONS)),
    )
