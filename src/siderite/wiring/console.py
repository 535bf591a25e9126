"""The console room."""

from functools import lru_cache

from siderite.baremetal.domain.node_machine import NODE
from siderite.baremetal.domain.node_machine import legal_verbs
from siderite.compute.domain.server_machine import ACTIONS
from siderite.compute.domain.server_machine import SERVER
from siderite.compute.domain.server_machine import Event
from siderite.console import ConsoleService
from siderite.console import Shown
from siderite.core.diagram import near
from siderite.core.diagram import svg
from siderite.wiring.part import Part


@lru_cache(64)
def _node(here: str) -> str:
    return svg(NODE, here=here if here in NODE.states else None)


@lru_cache(128)
def _server(here: str) -> str:
    """A server has a hundred states: what is near to one fits on a page."""
    state = here if here in SERVER.states else next(iter(SERVER.states))
    return near(SERVER, state, lambda row: row.event in (Event.NEXT, Event.DONE))


def console() -> Part:
    """The pages, with the machines that they show."""
    asked = {action.event for action in ACTIONS}
    verbs: dict[str, list[str]] = {state: [] for state in SERVER.states}
    for row in SERVER:
        if row.event in asked:
            verbs[row.state].append(row.event)
    nodes = Shown(_node, {state: legal_verbs(state) for state in NODE.states})
    servers = Shown(_server, {state: sorted(events) for state, events in verbs.items()})
    return Part(services={"console": ConsoleService({"node": nodes, "server": servers})})
