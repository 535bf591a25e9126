"""Allocations: a client asks for a node of a kind, and a worker finds one.

The node gets the allocation's UUID as its `instance_uuid` in the commit that makes the allocation
active, so two allocations never have one node. The node's teardown ends its allocation.
"""

from collections.abc import Awaitable
from typing import Any
from typing import TypeVar

from siderite.baremetal.domain import facts
from siderite.baremetal.domain.allocation import Allocation
from siderite.baremetal.domain.allocation import State
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.node_machine import CHANGEABLE_WHILE_MOVING
from siderite.baremetal.domain.node_machine import P
from siderite.baremetal.store import ALLOCATIONS
from siderite.baremetal.store import NODES
from siderite.baremetal.usecases.beside.records import By
from siderite.baremetal.usecases.beside.records import Found
from siderite.baremetal.usecases.beside.records import Records
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.node import find
from siderite.core import work
from siderite.core.errors import Conflict
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.errors import SideriteError
from siderite.core.store.table import Where
from siderite.core.transition import Change

T = TypeVar("T")

LANE = "allocation"
KIND = "allocate"
PATIENCE_S = 60.0
"""How long a node is looked for while others keep taking those that were found."""


async def create(ctx: Context, fields: dict[str, Any], by: By) -> Allocation:
    """A new allocation. One for a node in use (`node`) only says who has it and is active at once;
    for any other a node is found afterwards.
    """
    fields = dict(fields)
    ident = fields.pop("node", None)
    if ident is not None:
        node = await _as_asked(find.node(ctx, ident, by.who))
        fields |= {"node_uuid": node.uuid, "state": State.ACTIVE.value}
        fields["resource_class"] = fields.get("resource_class") or node.resource_class
        fields["uuid"] = fields.get("uuid") or node.instance_uuid
    elif not fields.get("resource_class"):
        raise Invalid("The resource_class field is mandatory when no node is named.")
    candidates = fields.get("candidate_nodes", [])
    fields["candidate_nodes"] = await _as_asked(find.uuids(ctx, candidates, by.who))
    return await RECORDS.create(ctx, fields, by)


async def _as_asked(looking: Awaitable[T]) -> T:
    """What a request's body names: what is not there is a wrong body."""
    try:
        return await looking
    except NotFound as missing:
        raise Invalid(missing.sentence) from missing


async def _may_create(
    ctx: Context, change: Change, found: Found[Allocation], changes: dict[str, Any]
) -> SideriteError | None:
    new = found.value
    if new.node_uuid is None:
        change.work(
            work.add(
                new.uuid, LANE, KIND, job="{}", now=change.now, deadline=change.now + PATIENCE_S,
                reason="looking for a node", request_id=change.cause.request_id,
            )
        )  # fmt: skip
        return None
    node = await NODES.get(ctx.door.store, new.node_uuid)
    if node is None:
        return Invalid(f"Node {new.node_uuid} is gone.")
    problem = _why_not_backfilled(new, node)
    if problem is not None:
        return Conflict(f"Cannot backfill an allocation for node {node.uuid}: {problem}.")
    _take(change, new, node)
    return None


def _why_not_backfilled(new: Allocation, node: Node) -> str | None:
    if node.provision_state != P.ACTIVE:
        return f"it must be active, and is {node.provision_state}"
    if node.allocation_uuid is not None or node.instance_uuid not in (None, new.uuid):
        return f"it is taken by {node.allocation_uuid or node.instance_uuid}"
    if node.resource_class != new.resource_class:
        return f"its resource class is {node.resource_class}, not {new.resource_class}"
    if not set(new.traits) <= set(node.traits):
        return f"it lacks some of the traits {', '.join(new.traits)}"
    if new.candidate_nodes and node.uuid not in new.candidate_nodes:
        return "it is not among the candidate_nodes"
    return None


def _take(change: Change, allocation: Allocation, node: Node) -> None:
    """The node is the allocation's from now on."""
    info = {**node.instance_info, "traits": allocation.traits}
    after = node.changed(
        change.now,
        {
            "instance_uuid": allocation.uuid,
            "allocation_uuid": allocation.uuid,
            "instance_info": info,
        },
    )
    _announced(change, node, after)


def _free(change: Change, node: Node) -> None:
    """The node is nobody's from now on."""
    freed = {"instance_uuid": None, "allocation_uuid": None, **without_traits(node)}
    _announced(change, node, node.changed(change.now, freed))


def without_traits(node: Node) -> dict[str, Any]:
    """The node's field without the traits that its allocation asked for, by which the next deploy
    would choose its templates.
    """
    kept = {key: value for key, value in node.instance_info.items() if key != "traits"}
    return {"instance_info": kept}


def _announced(change: Change, before: Node, after: Node) -> None:
    change.put(NODES.swap(before, after))
    change.tell(*facts.node_updated(before, after))


async def _may_remove(
    ctx: Context, change: Change, found: Found[Allocation], changes: dict[str, Any]
) -> SideriteError | None:
    allocation = found.value
    change.put(*work.drop(allocation.uuid, LANE))
    if allocation.node_uuid is None:
        return None
    node = await NODES.get(ctx.door.store, allocation.node_uuid)
    if node is None or node.allocation_uuid != allocation.uuid:
        return None
    refusal = why_not_freed(allocation.uuid, node)
    if refusal is None:
        _free(change, node)
    return refusal


def why_not_freed(allocation: str, node: Node) -> SideriteError | None:
    """Why a node cannot be taken away from its allocation now."""
    if node.maintenance:
        return None
    moving = node.target_provision_state is not None
    if node.provision_state == P.ACTIVE or (
        moving and node.provision_state not in CHANGEABLE_WHILE_MOVING
    ):
        return Conflict(
            f"Cannot remove allocation {allocation} for node {node.uuid}, which is in state"
            f" {node.provision_state}; undeploy it first, or set maintenance."
        )
    return None


RECORDS = Records(
    kind=Allocation,
    table=ALLOCATIONS,
    facts=facts.ALLOCATION,
    command="allocation",
    mine="owner = ?",
    unique={
        "name": "An allocation with name {0.name} already exists; choose another name.",
        "node_uuid": "Node {0.node_uuid} has an allocation already.",
        "instance_uuid": "Instance {0.uuid} is already associated with another node.",
    },
    may_create=_may_create,
    may_remove=_may_remove,
)


async def of_node(ctx: Context, node: Node) -> Allocation | None:
    """The allocation that has the node."""
    if node.allocation_uuid is None:
        return None
    return await ALLOCATIONS.get(ctx.door.store, node.allocation_uuid)


async def end_with(ctx: Context, change: Change, node: Node) -> None:
    """With this change the node is nobody's any more, or gone: its allocation ends."""
    allocation = await of_node(ctx, node)
    if allocation is not None:
        change.put(ALLOCATIONS.remove(allocation))
        RECORDS.tell(change, "delete", Found(allocation))


def settled(change: Change, before: Allocation, changes: dict[str, Any]) -> Allocation:
    """The search is over: the allocation says so, and announces it. Who follows the log takes
    nothing from an update that failed: that the allocation says so itself is another one.
    """
    after = before.changed(change.now, changes)
    change.put(ALLOCATIONS.swap(before, after))
    for status in ("error", "end") if after.state == State.ERROR else ("end",):
        for name, value in (("start", before), (status, after)):
            change.tell(
                facts.record_crud(
                    facts.ALLOCATION, "update", name, value, value.owner, by=facts.CONDUCTOR
                )
            )
    return after


def take(change: Change, allocation: Allocation, node: Node) -> None:
    """The search found a node."""
    settled(change, allocation, {"node_uuid": node.uuid, "state": State.ACTIVE.value})
    _take(change, allocation, node)


_FREE = (
    "resource_class = ? AND provision_state = 'available' AND instance_uuid IS NULL"
    " AND maintenance = 0 AND power_state IS NOT NULL"
)


def candidates(allocation: Allocation) -> list[Where]:
    """The conditions that free nodes of its kind meet, but for their traits."""
    found = [Where(_FREE, (allocation.resource_class,))]
    if allocation.candidate_nodes:
        marks = ", ".join("?" * len(allocation.candidate_nodes))
        found.append(Where(f"uuid IN ({marks})", tuple(allocation.candidate_nodes)))
    if allocation.owner is not None:
        found.append(Where("(owner = ? OR lessee = ?)", (allocation.owner, allocation.owner)))
    return found
