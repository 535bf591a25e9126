"""A node's ramdisk calls back: the work that waits for it goes on."""

from siderite.baremetal.domain.node_machine import NODE
from siderite.baremetal.store import NODES
from siderite.baremetal.usecases.context import Context
from siderite.core import work
from siderite.core.errors import Busy
from siderite.core.errors import NotFound
from siderite.core.machine import Kind
from siderite.core.transition import Cause


async def heartbeat(ctx: Context, uuid: str) -> None:
    """Wake the parked work; Busy if the node is just not waiting yet, so that the ramdisk tries
    again.
    """
    node = await NODES.get(ctx.door.store, uuid)
    if node is None:
        raise NotFound(f"Node {uuid} could not be found.")
    kind = NODE.states[node.provision_state].kind
    if kind is Kind.ACTIVE:
        raise Busy(f"Node {uuid} is busy {node.provision_state}; call again in a moment.")
    if kind is not Kind.WAIT:
        return
    if any(
        item.lane == "provision" and item.is_leased
        for item in await work.of_machine(ctx.door.store, uuid)
    ):
        raise Busy(f"Node {uuid} is being looked at; call again in a moment.")
    change = ctx.door.change(Cause())
    change.work(work.wake(uuid, "provision", change.now))
    await ctx.door.commit(change)
