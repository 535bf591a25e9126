"""Why something is not done to a node now, where several verbs say so."""

import asyncio
from collections.abc import Awaitable
from collections.abc import Callable
from typing import TypeVar

from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.node_machine import NODE
from siderite.baremetal.domain.steps import serves_its_parent
from siderite.core.errors import Busy
from siderite.core.errors import Forbidden
from siderite.core.machine import Kind

T = TypeVar("T")

_PAUSE_S, _LONGEST_PAUSE_S = 0.02, 0.2


class Switching(Busy):
    """The machine's power is being changed; try again in a moment."""

    code = "machine.switching"


def busy(node: Node, how: str, kind: type[Busy] = Busy) -> Busy:
    """It has something else to do, which ends."""
    return kind(f"Node {node.uuid} {how}; please retry after the current operation is completed.")


def check_steady(node: Node) -> None:
    """Refuse to interfere with a change of its power."""
    if node.target_power_state is not None:
        raise busy(node, f"is already on its way to {node.target_power_state!r}", Switching)


async def once_steady(ask: Callable[[], Awaitable[T]], patience_s: float) -> T:
    """Ask; again, for so long, while the power is being changed: most changes end by then, and who
    sends two verbs one after the other need not know that the first takes its time.
    """
    loop = asyncio.get_running_loop()
    until, pause_s = loop.time() + patience_s, _PAUSE_S
    while True:
        try:
            return await ask()
        except Switching:
            if loop.time() + pause_s > until:
                raise
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def protected(node: Node) -> Forbidden:
    """It is to stay as it is."""
    return Forbidden(
        f"Node {node.uuid} is protected and cannot be undeployed, rebuilt or deleted;"
        " clear `protected` first."
    )


def check_own_master(node: Node) -> None:
    """Refuse to interfere with a step that the node runs for its parent."""
    if serves_its_parent(node.driver_internal_info):
        raise busy(node, f"runs a step for its parent {node.parent_node}")


def check_idle(node: Node) -> None:
    """Refuse to interfere with work that drives the machine just now."""
    check_own_master(node)
    if NODE.states[node.provision_state].kind is Kind.ACTIVE:
        raise busy(node, f"is busy {node.provision_state}")
