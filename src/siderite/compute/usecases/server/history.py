"""What was done to a server, and how it ended."""

from hashlib import sha224

import msgspec

from siderite.compute.domain.server import Server
from siderite.compute.store import ACTION_COLUMNS
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.server import find
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.store import Value
from siderite.core.who import Who


class Recorded(msgspec.Struct, frozen=True):
    """An instance action as it is stored; `events` is JSON."""

    server: str
    id: int
    request_id: str
    action: str
    user_id: str | None
    project_id: str | None
    started_at: str
    updated_at: str
    message: str | None
    events: str


class Ask(msgspec.Struct):
    """Which actions of a server."""

    server: str
    limit: int
    marker: str | None = None
    since: str | None = None
    before: str | None = None


async def server(ctx: Context, uuid: str, who: Who, *, deleted: bool) -> Server:
    """The server whose history it is; one that is gone only if asked for."""
    return await find.server(ctx, uuid, who, deleted=deleted)


async def page(ctx: Context, ask: Ask) -> list[Recorded]:
    """Actions, newest first."""
    where, args = "server = ?", list[Value]([ask.server])
    if ask.marker is not None:
        rows = await ctx.door.store.fetch(
            "SELECT id FROM instance_actions WHERE server = ? AND request_id = ? ORDER BY id",
            (ask.server, ask.marker),
        )
        if not rows:
            raise Invalid(f"marker [{ask.marker[:80]}] not found. Ask from the start.")
        where += " AND id < ?"
        args.append(rows[0][0])
    for sql, value in (("updated_at >= ?", ask.since), ("updated_at <= ?", ask.before)):
        if value is not None:
            where += " AND " + sql
            args.append(value)
    rows = await ctx.door.store.fetch(
        f"SELECT {ACTION_COLUMNS} FROM instance_actions WHERE {where}"  # noqa: S608
        f" ORDER BY id DESC LIMIT {ask.limit}",
        args,
    )
    return [Recorded(ask.server, *row) for row in rows]  # type: ignore[arg-type]


async def action(ctx: Context, server: str, request_id: str) -> Recorded:
    """The action that a request caused."""
    rows = await ctx.door.store.fetch(
        f"SELECT {ACTION_COLUMNS} FROM instance_actions WHERE server = ? AND request_id = ?"  # noqa: S608
        " ORDER BY id DESC LIMIT 1",
        (server, request_id),
    )
    if not rows:
        raise NotFound(
            f"Action {request_id[:80]} could not be found. `server event list` shows all."
        )
    return Recorded(server, *rows[0])  # type: ignore[arg-type]


def host_id(project: str, host: str | None) -> str:
    """A host as its users may know it."""
    return "" if host is None else sha224((project + host).encode()).hexdigest()
