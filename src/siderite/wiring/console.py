"""The console room."""

from functools import lru_cache
from functools import partial

from siderite.baremetal.domain.node_machine import NODE
from siderite.baremetal.domain.node_machine import legal_verbs
from siderite.compute.domain.server_machine import ACTIONS
from siderite.compute.domain.server_machine import SERVER
from siderite.console import ConsoleService
from siderite.console import Shown
from siderite.core.diagram import svg
from siderite.core.machine import Machine
from siderite.wiring.part import Part


@lru_cache(64)
def _picture(machine: Machine, here: str) -> str:
    return svg(machine, here=here if here in machine.states else None)


def console() -> Part:
    """The pages, with the machines that they show."""
    asked = {action.event for action in ACTIONS}
    nodes = Shown(partial(_picture, NODE), {state: legal_verbs(state) for state in NODE.states})
    servers = Shown(
        partial(_picture, SERVER),
        {
            state: sorted(row.event for row in SERVER if row.state == state and row.event in asked)
            for state in SERVER.states
        },
    )
    return Part(services={"console": ConsoleService({"node": nodes, "server": servers})})
