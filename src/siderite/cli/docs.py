"""The reference pages, printed from the tables that the program itself runs on.

    python -m siderite.cli.docs            writes docs/reference
    python -m siderite.cli.docs --check    exits 1 and names the pages that are out of date

The output depends on the source only: not on the machine, the terminal or the version of Python.
"""

import argparse
import sys
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import Any

from prometheus_client.metrics import MetricWrapperBase

from siderite.baremetal.drivers.simulated import Machines
from siderite.baremetal.drivers.simulated import simulator_service
from siderite.baremetal.web.outside.boot import BootService
from siderite.baremetal.web.policy import RULES
from siderite.baremetal.web.policy import Rule
from siderite.baremetal.web.routes import ROUTES as BAREMETAL_ROUTES
from siderite.cli import docs_events
from siderite.cli import docs_payloads
from siderite.cli.docs_nodes import baremetal_versions
from siderite.cli.docs_nodes import node_picture
from siderite.cli.docs_nodes import node_states
from siderite.cli.docs_servers import compute_versions
from siderite.cli.docs_servers import server_states
from siderite.cli.main import parser
from siderite.cli.markdown import code
from siderite.cli.markdown import codes
from siderite.cli.markdown import page
from siderite.cli.markdown import table
from siderite.compute.drivers.simulated import Guests
from siderite.compute.drivers.simulated import simulated_hosts_service
from siderite.compute.web.network.networks import ROUTES as NETWORK_ROUTES
from siderite.compute.web.policy import RULES as COMPUTE_RULES
from siderite.compute.web.routes import ROUTES as COMPUTE_ROUTES
from siderite.compute.web.server.console_proxy import ConsoleProxy
from siderite.console.service import ConsoleService
from siderite.core import metrics
from siderite.core.config import Config
from siderite.core.errors import SideriteError
from siderite.core.http import Route
from siderite.events.service import ROUTES as EVENTS_ROUTES
from siderite.health import HealthService
from siderite.identity.web.routes import ROUTES as IDENTITY_ROUTES
from siderite.image.web.policy import RULES as IMAGE_RULES
from siderite.image.web.routes import ROUTES as IMAGE_ROUTES


def _errors() -> str:
    import siderite.wiring  # noqa: F401 (every room's errors are there then)

    every = sorted(_kinds(SideriteError), key=lambda e: (e.status, e.code))
    rows = []
    for kind in every:
        later = f"{kind.retry_after_s} s" if kind.retry_after_s else ""
        rows.append((code(kind.code), kind.status, later, " ".join((kind.__doc__ or "").split())))
    return page(
        "Errors",
        "Every refusal has a stable code and a sentence with what happened, why, and what to do"
        " next. The sentence below is the one used when there is nothing more exact to say. Each"
        " API wraps it in its own form of body; the request id in the answer's headers is also in"
        " the log.",
        table("code | status | `Retry-After` | sentence", rows),
    )


def _kinds(kind: type[SideriteError]) -> list[type[SideriteError]]:
    below = [k for sub in kind.__subclasses__() for k in _kinds(sub)]
    return [kind, *(k for k in below if not k.__name__.startswith("_"))]


def _options() -> str:
    rows = []
    for option in fields(Config):
        default = option.default
        shown = code(str(default).lower() if isinstance(default, bool) else default)
        if option.name == "host":
            shown = "(this machine's name)"
        meaning = option.metadata["meaning"]
        kind = type(default).__name__
        rows.append((code(option.name), code(f"SIDERITE_{option.name.upper()}"), kind, shown,
                     meaning))  # fmt: skip
    return page(
        "Options",
        "A value comes from a flag of `siderite up`, else from the environment, else from the"
        " TOML file that `--config` or `SIDERITE_CONFIG` names, else it is the default."
        " `siderite config show` prints the values in force and where each came from. Times are in"
        " seconds.",
        table("option | environment | type | default | meaning", rows),
    )


def _metrics() -> str:
    rows = []
    for metric in vars(metrics).values():
        if not isinstance(metric, MetricWrapperBase | metrics.Counted):
            continue
        for about in metric.collect():
            owner: Any = metric if isinstance(metric, MetricWrapperBase) else about
            name = about.name + ("_total" if about.type == "counter" else "")
            rows.append((code(name), about.type, codes(owner._labelnames), about.documentation))
    return page(
        "Metrics",
        "At `/metrics`, in Prometheus' text form, without authentication. No label names a single"
        " node, so their number does not grow with the fleet.",
        table("name | type | labels | meaning", rows),
    )


def _routes() -> str:
    baremetal = [r for r in BAREMETAL_ROUTES if r.path == "/" or r.path.startswith("/v1")]
    return page(
        "Routes",
        "Every address there is. HEAD is answered wherever GET is.",
        "## Bare metal: `/baremetal`",
        "The same addresses also work without `/v1`. Callers see the nodes that their project owns"
        " or has on loan; administrators, services and readers of the system see all.",
        _route_table(baremetal),
        table("policy | role needed | for a project's own nodes", (
            (code(name), rule.role, _reach(rule))
            for name, rule in RULES.items()
        )),
        "## Identity: `/identity`",
        "`public` needs no token, `authenticated` any valid one. `self_or_…` and"
        " `own_project_or_…` also let users through to what is their own.",
        _route_table(IDENTITY_ROUTES),
        "## Compute: `/compute`",
        "Each address below `/v2.1` is also there below `/v2.1/{project_id}`, and below `/v2`,"
        " where headers ask for no microversion and all is as in 2.1. Callers see what their"
        " project has; administrators see all. *Since* is the microversion that brought it.",
        table("method | path | policy | since", (
            (r.method, code(r.path), r.policy, f"2.{r.since}" if r.since else "")
            for r in COMPUTE_ROUTES
        )),
        table("policy | role needed", ((code(name), role) for name, role in COMPUTE_RULES.items())),
        "## Networks: `/network`",
        "The networks that hosts offer (option `networks`), read-only, in Neutron's shapes. Nothing"
        " is filtered on them, which is what the one security group says.",
        _route_table(NETWORK_ROUTES),
        "## Images: `/image`",
        "Callers see their project's images, public ones, and those shared with them; by id also"
        " community images. What is not theirs they cannot change.",
        _route_table(IMAGE_ROUTES),
        table("policy | role needed", ((code(name), role) for name, role in IMAGE_RULES.items())),
        "## The event log: `/events`",
        "See [follow events](../how-to/follow-events.md). Callers see the events of their project;"
        " administrators, services and readers of the system see all.",
        _route_table(EVENTS_ROUTES),
        *_lesser_routes(),
    )  # fmt: skip


def _lesser_routes() -> Iterator[str]:
    """What is no API of OpenStack's."""
    nobody: Any = None
    scripted = "See [script the simulator](../how-to/script-the-simulator.md)."
    booted = "For [machines](../how-to/use-real-machines.md) and their ramdisks: none has a token."
    with closing(Machines()) as rooms, closing(Guests()) as guests:
        machines = simulator_service(rooms, nobody)
        hosts = simulated_hosts_service(guests, nobody)
    for title, about, service, policy in (
        ("Simulated machines: `/simulator`", scripted, machines, "admin"),
        ("Simulated hosts: `/simulated-hosts`", scripted, hosts, "admin"),
        ("What machines boot from: `/boot`", booted, BootService(nobody, Path(), ""), ""),
        ("The console: `/console`", "Its files; they ask the APIs above.", ConsoleService({}), ""),
        ("Screens: `/consoles`", "The token is in the address.", ConsoleProxy(nobody), ""),
        ("The process: `/`", "", HealthService(nobody), ""),
    ):
        yield f"## {title}"
        yield from filter(None, [about])
        yield _route_table(service.routes.routes, policy)


def _route_table(routes: Iterable[Route], policy: str = "") -> str:
    rows = ((route.method, code(route.path), policy or route.policy) for route in routes)
    return table("method | path | policy", rows)


def _reach(rule: Rule) -> str:
    if rule.role == "admin":
        return "no: for administrators"
    if rule.system:
        return "no: for those who see all"
    return "owner and lessee" if rule.lessee else "owner"


def _cli() -> str:
    return page("The `siderite` command", *_command(parser(), "siderite", ""))


def _command(command: argparse.ArgumentParser, name: str, about: str) -> Iterator[str]:
    """A command's usage and arguments, then its sub-commands."""
    arguments = [a for a in command._actions if not isinstance(a, argparse._SubParsersAction)]
    words = [_used(a) for a in arguments if a.dest != "help"]
    deeper = [a for a in command._actions if isinstance(a, argparse._SubParsersAction)]
    words += [str(a.metavar) for a in deeper]
    if name != "siderite":
        yield f"## `{name}`"
    yield " ".join((command.description or about).split())
    yield f"```\n{' '.join([name, *words])}\n```"
    rows = [
        (code(_spelt(a)), a.help) for a in arguments if a.help and a.dest not in ("help", "version")
    ]
    if rows:
        yield table("argument | meaning", rows)
    for action in deeper:
        helps = {str(c.dest): c.help or "" for c in action._choices_actions}
        for word, sub in action.choices.items():
            yield from _command(
                sub, f"{name} {word}", helps[word][:1].upper() + helps[word][1:] + "."
            )


def _used(action: argparse.Action) -> str:
    """In a line of usage: in brackets what may be left out, with dots what may be given again."""
    words = [*action.option_strings[:1], *([str(action.metavar)] if action.metavar else [])]
    text = " ".join(words) + (" …" if action.nargs == "+" else "")
    return text if action.required else f"[{text}]"


def _spelt(action: argparse.Action) -> str:
    words = [", ".join(action.option_strings)] if action.option_strings else []
    if action.metavar:
        words.append(str(action.metavar))
    return " ".join(words)


def _index() -> str:
    rows = ((f"[{name}]({name})", about) for name, (about, _) in PAGES.items() if about)
    return page("Reference", "Printed from the source.", table("page | what it lists", rows))


PAGES: dict[str, tuple[str, Callable[[], str]]] = {
    "node-states.md": (
        "states, verbs and rows of the node's machine, with a picture",
        node_states,
    ),
    "server-states.md": ("states, statuses and actions of the server's machine", server_states),
    "routes.md": ("every address, and who may use it", _routes),
    "microversions.md": ("what each API version brought", baremetal_versions),
    "compute-microversions.md": ("the same, of the compute API", compute_versions),
    "errors.md": ("codes, statuses, sentences", _errors),
    "events.md": ("what is announced, and when", docs_events.page_of_events),
    "payloads.md": ("what events carry: one of each kind", docs_payloads.page_of_payloads),
    "options.md": ("every option, its variable and default", _options),
    "cli.md": ("the command line", _cli),
    "metrics.md": ("what Prometheus can scrape", _metrics),
    "node-states.svg": ("", node_picture),
    "index.md": ("", _index),
}


def stale(folder: Path) -> list[Path]:
    """The pages in the folder that are missing, out of date or not ours."""
    wrong = []
    for name, (_, make) in PAGES.items():
        path = folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != make():
            wrong.append(path)
    return wrong + [path for path in sorted(folder.glob("*")) if path.name not in PAGES]


def main(argv: Sequence[str] | None = None) -> int:
    """Write the pages, or check them."""
    words = argparse.ArgumentParser(prog="siderite.cli.docs", description=__doc__.split("\n")[0])
    words.add_argument("--check", action="store_true", help="change nothing; 1 if out of date")
    root = Path(__file__).resolve().parents[3]
    words.add_argument("--into", type=Path, default=root / "docs" / "reference", metavar="DIR")
    said = words.parse_args(argv)
    if said.check:
        wrong = stale(said.into)
        for path in wrong:
            print(f"out of date: {path}; run python -m siderite.cli.docs", file=sys.stderr)
        return 1 if wrong else 0
    said.into.mkdir(parents=True, exist_ok=True)
    for name, (_, make) in PAGES.items():
        (said.into / name).write_text(make(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
