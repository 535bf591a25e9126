"""A node is made known, and forgotten."""

from typing import Any

from siderite.baremetal.domain import facts
from siderite.baremetal.domain import watch_facts
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.node_machine import P
from siderite.baremetal.store import NODES
from siderite.baremetal.usecases.beside import allocations
from siderite.baremetal.usecases.beside import chassis
from siderite.baremetal.usecases.beside import portgroups
from siderite.baremetal.usecases.beside import ports
from siderite.baremetal.usecases.beside import records
from siderite.baremetal.usecases.beside import volumes
from siderite.baremetal.usecases.beside.records import Records
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.life import cut_short
from siderite.baremetal.usecases.life.refusals import protected
from siderite.baremetal.usecases.machine import console
from siderite.baremetal.usecases.node import details
from siderite.baremetal.usecases.node import find
from siderite.baremetal.usecases.node.find import Guard
from siderite.baremetal.usecases.node.find import allow
from siderite.baremetal.usecases.power import power_schedule
from siderite.core import eventlog
from siderite.core import work
from siderite.core.errors import Busy
from siderite.core.errors import Conflict
from siderite.core.errors import Forbidden
from siderite.core.errors import Invalid
from siderite.core.ids import new_uuid
from siderite.core.store import Duplicate
from siderite.core.times import iso
from siderite.core.transition import Cause
from siderite.core.transition import Change
from siderite.core.who import Who

_DELETABLE = frozenset({P.MANAGEABLE, P.ENROLL, P.ADOPTFAIL})
_OF_NODES: tuple[Records[Any], ...] = (
    ports.RECORDS, portgroups.RECORDS, volumes.CONNECTOR_RECORDS, volumes.TARGET_RECORDS,
)  # fmt: skip


async def create(ctx: Context, fields: dict[str, Any], *, available: bool, cause: Cause) -> Node:
    """A new node: in `enroll`, or `available` for clients too old to know that state."""
    driver = fields["driver"]
    card = ctx.cards.get(driver)
    if card is None:
        raise Invalid(
            "No valid host was found. Reason: No conductor service registered which supports driver"
            f" {driver[:80]}; the drivers here are: {', '.join(sorted(ctx.cards))}."
        )
    uuid = fields.get("uuid") or new_uuid()

    async def decide(change: Change) -> Node:
        made = {
            **fields,
            **card.fill_in(fields),
            "uuid": uuid,
            "created_at": iso(change.now),
            "provision_state": P.AVAILABLE.value if available else P.ENROLL.value,
            "conductor": ctx.door.host,
        }
        node = Node(**made)
        if node.parent_node is not None:
            await put_below(ctx, change, node.uuid, node.parent_node)
        if node.chassis_uuid is not None:
            await chassis.put_node_into(ctx, change, node.chassis_uuid)
        change.put(NODES.insert(node))
        # Nothing is read of a node in enroll: what verifies it has it watched. An older process
        # beside this one would only wake a row that is there.
        if available or ctx.door.store.dialect == "postgresql":
            change.put(power_schedule.begin(node.uuid, change.now if available else work.FAR))
        if node.console_enabled:
            change.put(console.wanted(node.uuid))
        change.tell(*facts.node_crud_pair("create", node), *watch_facts.policy_set(node))
        return node

    try:
        return await ctx.door.attempt(cause, uuid, decide)
    except (Duplicate, Busy) as why:
        node = await decide(ctx.door.change(cause))
        await announce_failure(ctx, cause, "create", node)
        if isinstance(why, Duplicate):
            raise duplicate(why, node) from why
        raise


async def put_below(
    ctx: Context,
    change: Change,
    node: str,
    uuid: str,
    *,
    who: Who | None = None,
    guard: Guard = allow,
) -> None:
    """With this change a node comes below a parent: another node, which must be there. Who does not
    see all nodes needs one of their own, for a parent with children is bound to them.
    """
    parent = await NODES.get(ctx.door.store, uuid)
    hidden = (
        parent is not None
        and who is not None
        and not find.may_see(who, parent.owner, parent.lessee)
    )
    if parent is None or hidden or parent.uuid == node:
        raise Invalid(f"parent_node {uuid} is not the UUID of another node.")
    guard(parent)
    change.put(NODES.swap(parent, parent.touched()))
    above: Node | None = parent
    seen = {node}
    while above is not None and above.parent_node is not None:
        seen.add(above.uuid)
        if above.parent_node in seen:
            raise Invalid(
                f"parent_node {uuid} is below node {node} itself; take it out from there first."
            )
        above = await NODES.get(ctx.door.store, above.parent_node)


def duplicate(clash: Duplicate, node: Node) -> Conflict:
    """The sentence for a unique value that is taken."""
    field = clash.column.rpartition(".")[2]
    value = getattr(node, field, None)
    if field == "name":
        return Conflict(f"A node with name {value} already exists; choose another name.")
    if field == "instance_uuid":
        return Conflict(f"Instance {value} is already associated with another node.")
    return Conflict(f"A node with UUID {node.uuid} already exists.")


async def announce_failure(ctx: Context, cause: Cause, action: str, node: Node) -> None:
    """Nothing changed, and that is announced too."""
    change = ctx.door.change(cause)
    change.tell(facts.node_crud(action, "start", node))
    change.tell(facts.node_crud(action, "error", node))
    await ctx.door.commit(change)


async def remove(ctx: Context, ident: str, who: Who, cause: Cause) -> None:
    """Forget a node that carries nothing."""

    async def decide(change: Change) -> None:
        node = await find.node(ctx, ident, who)
        refusal = _why_not_removable(ctx, node) or await _why_not_without_children(ctx, node)
        if refusal is not None:
            await announce_failure(ctx, cause, "delete", node)
            raise refusal
        change.put(NODES.remove(node))
        await cut_short.everything(ctx, change, node)
        for kind, record in await records.of_node(ctx, node, _OF_NODES):
            kind.remove_with(change, record, node)
        change.put(details.forget(node.uuid))
        change.put(eventlog.forget(node.uuid))
        change.put(power_schedule.end(node.uuid))
        last = node
        if node.console_enabled:
            change.put(console.forget(node.uuid))
            last = node.changed(change.now, {"console_enabled": False})
            change.tell(
                facts.console("console_set", "start", node),
                facts.console("console_set", "end", last),
            )
        await allocations.end_with(ctx, change, node)
        change.tell(*facts.node_crud_pair("delete", last))

    try:
        await ctx.door.attempt(cause, ident, decide)
    except Busy:
        await announce_failure(ctx, cause, "delete", await find.node(ctx, ident, who))
        raise


async def _why_not_without_children(ctx: Context, node: Node) -> Conflict | None:
    rows = await ctx.door.store.fetch(
        "SELECT uuid FROM nodes WHERE parent_node = ? LIMIT 1", (node.uuid,)
    )
    if not rows:
        return None
    return Conflict(
        f"Node {node.uuid} has children, such as {rows[0][0]!s}; delete them, or take them out by"
        " their parent_node, first."
    )


def _why_not_removable(ctx: Context, node: Node) -> Conflict | Forbidden | None:
    if node.protected:
        return protected(node)
    if node.maintenance:
        return None
    if node.instance_uuid is not None:
        return Conflict(
            f"Node {node.uuid} is associated with instance {node.instance_uuid};"
            " undeploy it first, or set maintenance."
        )
    allowed = set(_DELETABLE)
    if ctx.settings.allow_deleting_available_nodes:
        allowed.add(P.AVAILABLE)
    if node.provision_state not in allowed:
        return Conflict(
            f"Can not delete node {node.uuid} while it is in provision state"
            f" {node.provision_state}; bring it to one of {', '.join(sorted(allowed))},"
            " or set maintenance."
        )
    return None
