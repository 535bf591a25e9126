"""Migrations: the record of servers that change their size or host."""

from collections.abc import Sequence

import msgspec

from siderite.compute.domain.server import Move
from siderite.compute.domain.server import Server
from siderite.compute.usecases.context import Context
from siderite.core import work
from siderite.core.store import Line
from siderite.core.store import Op
from siderite.core.store import Value
from siderite.core.times import iso

COLUMNS = (
    "id, uuid, server, project_id, user_id, kind, status, source_host, source_node, target_host,"
    " target_node, old_flavor, new_flavor, created_at, updated_at"
)
EVICTED_S = 90 * 24 * 3600.0
"""How long it is tried to remove what an evacuated server left behind."""


class Evicted(msgspec.Struct, frozen=True):
    """A guest that was evacuated from a host, and may still be there when it comes back."""

    server: str
    host: str
    node: str


def begins(ctx: Context, server: Server, move: Move, status: str) -> Op:
    """A server begins to move."""
    at = iso(ctx.door.clock())
    by = server.by
    return Op(
        "INSERT INTO server_migrations (uuid, server, project_id, user_id, kind, status,"
        " source_host, source_node, target_host, target_node, old_flavor, new_flavor, created_at,"
        " updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            move.migration, server.uuid, None if by is None else by.project,
            None if by is None else by.user, move.kind, status, move.source_host,
            move.source_node, move.target_host, move.target_node, move.old_flavor.flavorid,
            move.new_flavor.flavorid, at, at,
        ),
        1,
    )  # fmt: skip


def becomes(ctx: Context, migration: str, status: str) -> Op:
    """A migration is further on, or over."""
    return Op(
        "UPDATE server_migrations SET status = ?, updated_at = ? WHERE uuid = ?",
        (status, iso(ctx.door.clock()), migration),
    )


def leaves_behind(ctx: Context, server: Server, op: str) -> Op:
    """The work that removes an evacuated guest from its old host when that is back."""
    now = ctx.door.clock()
    job = Evicted(server.uuid, server.host or "", server.node or "")
    return work.add(
        f"{server.uuid}@{server.host}", "evicted", "evicted",
        job=msgspec.json.encode(job).decode(), now=now, due=now + 5.0, deadline=now + EVICTED_S,
        reason="the old host is down",
    )  # fmt: skip


async def page(ctx: Context, where: str, args: Sequence[Value], *, limit: int) -> Sequence[Line]:
    """Migrations that meet a condition, newest first."""
    return await ctx.door.store.fetch(
        f"SELECT {COLUMNS} FROM server_migrations WHERE {where} ORDER BY id DESC LIMIT {limit}",  # noqa: S608
        args,
    )
