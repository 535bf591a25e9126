"""Finding a node for an allocation: durable work, as any that is left to do after a commit.

Candidates are looked at from a random place on, so that allocations at once do not all want the
same node. Which one gets a node is decided by the commit: whoever lost looks again.
"""

from siderite.baremetal.domain.allocation import Allocation
from siderite.baremetal.domain.allocation import State
from siderite.baremetal.domain.node import Node
from siderite.baremetal.store import ALLOCATIONS
from siderite.baremetal.store import NODES
from siderite.baremetal.usecases.beside import allocations
from siderite.baremetal.usecases.context import Context
from siderite.core import metrics
from siderite.core import work
from siderite.core.ids import new_uuid
from siderite.core.store import Duplicate
from siderite.core.store import Lost
from siderite.core.store.table import Where
from siderite.core.transition import Cause
from siderite.core.work import Work

_AT_A_TIME = 50
_ENOUGH = 4
"""How many nodes are looked at where any of them will do, but for those taken meanwhile."""
_NEXT = "SELECT doc FROM nodes WHERE {} ORDER BY uuid LIMIT {}"
_AVAILABLE = Where("id IN (SELECT node FROM node_states WHERE state = 'available')")
"""What PostgreSQL has in place of an index by state: else it would look at all that are in use."""


async def search(ctx: Context, held: Work) -> None:
    """Give the allocation a node, or say in it why there is none."""
    error = None
    while True:
        allocation = await ALLOCATIONS.get(ctx.door.store, held.machine)
        change = ctx.door.change(Cause(held.request_id))
        change.put(work.done(held))
        if allocation is not None and allocation.state == State.ALLOCATING:
            node = None if error else await _choose(ctx, allocation)
            if node is not None and change.now < held.deadline:
                allocations.take(change, allocation, node)
            else:
                why = error or _why_none(allocation, late=node is not None)
                failed = {"state": State.ERROR.value, "last_error": why}
                allocations.settled(change, allocation, failed)
        try:
            await ctx.door.commit(change)
        except Lost:
            metrics.races_lost()
            if not await work.is_held(ctx.door.store, held):
                raise
        except Duplicate as clash:
            metrics.races_lost()
            if clash.column != "nodes.instance_uuid":
                continue  # another allocation has just become the node's
            error = (
                f"Failed to process allocation {held.machine}: another node has it as its"
                " instance_uuid; create an allocation without a uuid of your own."
            )
        else:
            return


def _why_none(allocation: Allocation, *, late: bool) -> str:
    text = f"Failed to process allocation {allocation.uuid}: "
    if late:
        return text + "others took every node that was found, for too long; try again."
    what = f"resource class {allocation.resource_class}"
    if allocation.traits:
        what += f" and the traits {', '.join(allocation.traits)}"
    if allocation.candidate_nodes:
        return text + f"none of the requested nodes are available and match the {what}."
    return text + f"no available nodes match the {what}."


async def _choose(ctx: Context, allocation: Allocation) -> Node | None:
    """A free node that is what was asked for; one of the same name rather than another."""
    conditions = allocations.candidates(allocation)
    if allocation.name is not None:
        named = await _first(ctx, allocation, [*conditions, Where("name = ?", (allocation.name,))])
        if named is not None:
            return named
    start = new_uuid()
    for part in (Where("uuid >= ?", (start,)), Where("uuid < ?", (start,))):
        found = await _first(ctx, allocation, [*conditions, part])
        if found is not None:
            return found
    return None


async def _first(ctx: Context, allocation: Allocation, conditions: list[Where]) -> Node | None:
    if ctx.door.store.dialect == "postgresql":
        conditions = [*conditions, _AVAILABLE]
    last = ""
    most = _AT_A_TIME if allocation.traits else _ENOUGH
    while True:
        where = [*conditions, Where("uuid > ?", (last,))]
        sql = _NEXT.format(" AND ".join(one.sql for one in where), most)
        args = [arg for one in where for arg in one.args]
        nodes = [NODES.value(row[0]) for row in await ctx.door.store.fetch(sql, args)]
        found = next((node for node in nodes if allocation.fits(node)), None)
        if found is not None or len(nodes) < most:
            return found
        last = nodes[-1].uuid
