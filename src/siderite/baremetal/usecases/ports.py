"""The ports of nodes: found, made, changed and forgotten, as far as their node allows.

A port belongs to its node: who sees the node sees its ports, and the node's state says what may be
done to them. So each change also holds the node to what was read of it, and a new port counts the
node's version up, lest the node is deleted by somebody who does not know of the port.
"""

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

from siderite.baremetal.domain import facts
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.node_machine import P
from siderite.baremetal.domain.port import REWIRABLE
from siderite.baremetal.domain.port import WIRING
from siderite.baremetal.domain.port import Port
from siderite.baremetal.store import NODES
from siderite.baremetal.store import PORTS
from siderite.baremetal.usecases import find
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.find import Guard
from siderite.core.errors import Conflict
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.fact import Fact
from siderite.core.ids import is_uuid
from siderite.core.ids import new_uuid
from siderite.core.store import Duplicate
from siderite.core.store import Line
from siderite.core.store.table import Page
from siderite.core.store.table import Where
from siderite.core.times import iso
from siderite.core.transition import Cause
from siderite.core.transition import Change
from siderite.core.who import Who

_BODY = {
    True: "SELECT ports.body, nodes.owner, nodes.lessee FROM ports"
    " JOIN nodes ON nodes.uuid = ports.node_uuid WHERE ports.uuid = ?",
    False: "SELECT ports.body, nodes.owner, nodes.lessee FROM ports"
    " JOIN nodes ON nodes.uuid = ports.node_uuid WHERE ports.name = ?",
}
_DOCS = {
    True: "SELECT ports.doc, nodes.doc FROM ports"
    " JOIN nodes ON nodes.uuid = ports.node_uuid WHERE ports.uuid = ?",
    False: "SELECT ports.doc, nodes.doc FROM ports"
    " JOIN nodes ON nodes.uuid = ports.node_uuid WHERE ports.name = ?",
}
_MINE = "node_uuid IN (SELECT uuid FROM nodes WHERE owner = ? OR lessee = ?)"


def _missing(ident: str) -> NotFound:
    return NotFound(
        f"Port {ident[:200]} could not be found; `baremetal port list` shows those there are."
    )


async def body_of(ctx: Context, ident: str, who: Who) -> str:
    """A port as it is shown, rendered."""
    by_uuid = is_uuid(ident)
    rows = await ctx.door.store.fetch(_BODY[by_uuid], (ident.lower() if by_uuid else ident,))
    if not rows or not find.may_see(who, rows[0][1], rows[0][2]):  # type: ignore[arg-type]
        raise _missing(ident)
    return rows[0][0]  # type: ignore[return-value]


async def port(ctx: Context, ident: str, who: Who, guard: Guard = find.allow) -> tuple[Port, Node]:
    """A port and its node as values, if the caller may see them and the guard lets them pass."""
    by_uuid = is_uuid(ident)
    rows = await ctx.door.store.fetch(_DOCS[by_uuid], (ident.lower() if by_uuid else ident,))
    if not rows:
        raise _missing(ident)
    found, node = PORTS.value(rows[0][0]), NODES.value(rows[0][1])
    if not find.may_see(who, node.owner, node.lessee):
        raise _missing(ident)
    guard(node)
    return found, node


async def page(
    ctx: Context, what: str, where: Sequence[Where], page: Page, who: Who
) -> Sequence[Line]:
    """Columns of a page of ports that the caller may see."""
    conditions = list(where)
    if not who.sees_all:
        conditions.append(Where(_MINE, (who.project_id, who.project_id)))
    if page.marker is not None:
        await port(ctx, page.marker, who)
    return await PORTS.select(ctx.door.store, what, conditions, page)


async def create(
    ctx: Context, fields: dict[str, Any], *, who: Who, cause: Cause, guard: Guard
) -> Port:
    """A new port of a node, whose UUID or name is `node_uuid`."""
    ident = fields["node_uuid"]
    uuid = fields.get("uuid") or new_uuid()

    async def decide(change: Change) -> tuple[Port, Node]:
        node = await _node(ctx, ident, who, guard)
        made = {**fields, "uuid": uuid, "node_uuid": node.uuid, "created_at": iso(change.now)}
        new = Port(**made)
        change.put(PORTS.insert(new))
        change.put(NODES.swap(node, node.touched()))
        change.tell(*(facts.port_crud("create", s, new, node.owner) for s in ("start", "end")))
        return new, node

    try:
        return (await ctx.door.attempt(cause, ident, decide))[0]
    except Duplicate as clash:
        new, node = await decide(ctx.door.change(cause))
        await _announce_failure(ctx, cause, "create", new, node)
        raise _duplicate(clash, new) from clash


async def _node(ctx: Context, ident: str, who: Who, guard: Guard) -> Node:
    """The node that a request's body names: one that is not there is a wrong body."""
    try:
        return await find.node(ctx, ident, who, guard)
    except NotFound as missing:
        raise Invalid(missing.sentence) from missing


async def update(
    ctx: Context,
    ident: str,
    changes: Callable[[Port], dict[str, Any]],
    *,
    refuse_inspecting: bool,
    who: Who,
    cause: Cause,
    guard: Guard,
) -> Port:
    """Change the port, or say why not; it announces both."""

    async def decide(change: Change) -> Port:
        before, node = await port(ctx, ident, who, guard)
        new = {k: v for k, v in changes(before).items() if v != getattr(before, k)}
        if not new:
            return before
        home = node
        if "node_uuid" in new:
            home = await _node(ctx, new["node_uuid"], who, guard)
        for place in (node, home):
            refusal = _why_not(before, place, new, refuse_inspecting=refuse_inspecting)
            if refusal is not None:
                await _announce_failure(ctx, cause, "update", before, node)
                raise refusal
        after = before.changed(change.now, new)
        change.put(PORTS.swap(before, after))
        change.put(NODES.hold(node))
        if home is not node:
            change.put(NODES.swap(home, home.touched()))
        change.tell(facts.port_crud("update", "start", before, node.owner))
        change.tell(facts.port_crud("update", "end", after, home.owner))
        return after

    try:
        return await ctx.door.attempt(cause, ident, decide)
    except Duplicate as clash:
        before, node = await port(ctx, ident, who)
        await _announce_failure(ctx, cause, "update", before, node)
        raise _duplicate(clash, before.changed(0, changes(before))) from clash


def _why_not(
    port: Port, node: Node, changes: dict[str, Any], *, refuse_inspecting: bool
) -> Conflict | None:
    state = node.provision_state
    if state == P.INSPECTING and refuse_inspecting:
        return Conflict(
            f"Cannot update port {port.uuid} on node {node.uuid} while it is in state {state};"
            " try again when it is done.",
            retry_after_s=5,
        )
    if node.maintenance:
        return None
    if "address" in changes and (state == P.ACTIVE or node.instance_uuid is not None):
        return Conflict(
            f"The address of port {port.uuid} can not be changed while node {node.uuid} is active"
            " or has an instance_uuid; undeploy it first, or set maintenance."
        )
    rewired = sorted(WIRING & set(changes))
    if rewired and state not in REWIRABLE:
        return Conflict(
            f"Port {port.uuid} can not have {', '.join(rewired)} updated while node {node.uuid} is"
            f" in state {state}; bring it to one of {', '.join(REWIRABLE)}, or set maintenance."
        )
    return None


async def remove(ctx: Context, ident: str, *, who: Who, cause: Cause, guard: Guard) -> None:
    """Forget a port that nothing is attached to."""

    async def decide(change: Change) -> None:
        found, node = await port(ctx, ident, who, guard)
        if found.vif is not None and not node.maintenance:
            await _announce_failure(ctx, cause, "delete", found, node)
            raise Conflict(
                f"Cannot delete the port {found.uuid} as it is bound to VIF {found.vif} for use;"
                " detach that first, or set the node's maintenance."
            )
        change.put(PORTS.remove(found))
        change.put(NODES.hold(node))
        change.tell(*_removed(found, node))

    await ctx.door.attempt(cause, ident, decide)


async def remove_all(ctx: Context, change: Change, node: Node) -> None:
    """The ports of a node go with it, in the same change."""
    for found in await PORTS.find(ctx.door.store, Where("node_uuid = ?", (node.uuid,))):
        change.put(PORTS.remove(found))
        change.tell(*_removed(found, node))


def _removed(port: Port, node: Node) -> list[Fact]:
    return [facts.port_crud("delete", status, port, node.owner) for status in ("start", "end")]


async def _announce_failure(
    ctx: Context, cause: Cause, action: str, port: Port, node: Node
) -> None:
    """Nothing changed, and that is announced too."""
    change = ctx.door.change(cause)
    change.tell(*(facts.port_crud(action, s, port, node.owner) for s in ("start", "error")))
    await ctx.door.commit(change)


def _duplicate(clash: Duplicate, port: Port) -> Conflict:
    field = clash.column.rpartition(".")[2]
    if field == "address":
        return Conflict(
            f"A port with MAC address {port.address} already exists; a MAC address belongs to one"
            " port only, so look for it with `baremetal port list --address`."
        )
    if field == "name":
        return Conflict(f"A port with name {port.name} already exists; choose another name.")
    return Conflict(f"A port with UUID {port.uuid} already exists; leave it out to get a new one.")
