"""Finding nodes: by uuid or name, and lists, within what the caller may see."""

from collections.abc import Callable
from collections.abc import Sequence

from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.wire import LENT
from siderite.baremetal.domain.wire import LENT_IF
from siderite.baremetal.domain.wire import NODE_FIELDS
from siderite.baremetal.store import NODES
from siderite.baremetal.usecases.context import Context
from siderite.core.errors import NotFound
from siderite.core.ids import is_uuid
from siderite.core.store import Line
from siderite.core.store import Value
from siderite.core.store.table import Page
from siderite.core.store.table import Where
from siderite.core.who import Who

_BODY = {
    True: "SELECT body, owner, lessee FROM nodes WHERE uuid = ?",
    False: "SELECT body, owner, lessee FROM nodes WHERE name = ?",
}


Guard = Callable[[Node], None]
"""Refuses, by raising, what the caller may not do to a node."""


def allow(node: Node) -> None:
    """The guard that lets everything pass."""


def may_see(who: Who, owner: str | None, lessee: str | None) -> bool:
    """Whether the caller may know of a node with this owner and lessee."""
    return who.sees_all or (who.project_id is not None and who.project_id in (owner, lessee))


def _missing(ident: str) -> NotFound:
    return NotFound(f"Node {ident[:200]} could not be found; `node list` shows those there are.")


async def body_of(ctx: Context, ident: str, who: Who) -> str:
    """A node as it is shown, rendered."""
    by_uuid = is_uuid(ident)
    rows = await ctx.door.store.fetch(_BODY[by_uuid], (ident.lower() if by_uuid else ident,))
    if not rows or not may_see(who, rows[0][1], rows[0][2]):  # type: ignore[arg-type]
        raise _missing(ident)
    return _as_seen(who, str(rows[0][0]), rows[0][1])


def shown(node: Node, who: Who) -> str:
    """A node as the caller may see it, rendered."""
    return _as_seen(who, NODE_FIELDS.render(node), node.owner)


def _as_seen(who: Who, body: str, owner: Value) -> str:
    """A node as it is shown: not all of it to a lessee."""
    if who.sees_all or owner == who.project_id:
        return body
    return NODE_FIELDS.redacted(body, LENT, LENT_IF)


async def node(ctx: Context, ident: str, who: Who, guard: Guard = allow) -> Node:
    """A node as a value, if the caller may see it and the guard lets it pass."""
    if is_uuid(ident):
        found = await NODES.get(ctx.door.store, ident.lower())
    else:
        rows = await ctx.door.store.fetch("SELECT doc FROM nodes WHERE name = ?", (ident,))
        found = NODES.value(rows[0][0]) if rows else None
    if found is None or not may_see(who, found.owner, found.lessee):
        raise _missing(ident)
    guard(found)
    return found


async def uuids(ctx: Context, idents: Sequence[str], who: Who) -> list[str]:
    """The UUIDs of nodes that the caller may all see, asked for at once."""
    if not idents:
        return []
    keys = [ident.lower() if is_uuid(ident) else ident for ident in idents]
    one_of = f"IN ({', '.join('?' * len(keys))})"
    rows = await ctx.door.store.fetch(
        f"SELECT uuid, name, owner, lessee FROM nodes WHERE uuid {one_of} OR name {one_of}",  # noqa: S608
        (*keys, *keys),
    )
    found = {
        key: str(uuid)
        for uuid, name, owner, lessee in rows
        if may_see(who, owner, lessee)  # type: ignore[arg-type]
        for key in (uuid, name)
        if key is not None
    }
    for ident, key in zip(idents, keys, strict=True):
        if key not in found:
            raise _missing(ident)
    return [found[key] for key in keys]


async def page(
    ctx: Context, what: str, where: Sequence[Where], page: Page, who: Who
) -> Sequence[Line]:
    """Columns of a page of nodes that the caller may see (`body` only after `uuid`), and of their
    bodies what they may see of those.
    """
    conditions = list(where)
    if not who.sees_all:
        conditions.append(Where("(owner = ? OR lessee = ?)", (who.project_id, who.project_id)))
    if page.marker is not None:
        await node(ctx, page.marker, who)
    if who.sees_all or "body" not in what:
        return await NODES.select(ctx.door.store, what, conditions, page)
    rows = await NODES.select(ctx.door.store, "uuid, body, owner", conditions, page)
    return [(uuid, _as_seen(who, str(body), owner)) for uuid, body, owner in rows]


async def children(ctx: Context, parent: Node, who: Who) -> list[str]:
    """The UUIDs of a node's children that the caller may see."""
    sql, args = "SELECT uuid FROM nodes WHERE parent_node = ?", [parent.uuid]
    if not who.sees_all:
        sql += " AND (owner = ? OR lessee = ?)"
        args += [str(who.project_id)] * 2
    return [str(row[0]) for row in await ctx.door.store.fetch(f"{sql} ORDER BY id", args)]


async def shards(ctx: Context) -> list[tuple[str | None, int]]:
    """How many nodes each shard has, and how many are in none, which are counted as the rest: both
    counts come from indices, without a look at the nodes.
    """
    sharded = (
        "SELECT shard, count(*) FROM nodes WHERE shard IS NOT NULL GROUP BY shard"
        " ORDER BY count(*) DESC, shard"
    )
    rows = await ctx.door.store.fetch(sharded)
    found: list[tuple[str | None, int]] = [(str(row[0]), int(row[1] or 0)) for row in rows]
    every = await ctx.door.store.fetch("SELECT count(*) FROM nodes")
    rest = int(every[0][0] or 0) - sum(count for _, count in found)
    return [*found, (None, rest)] if rest > 0 else found
