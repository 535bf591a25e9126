"""Migrations: the record of servers that change their size or host."""

from collections.abc import Sequence

import msgspec

from siderite.compute import store as rows
from siderite.compute.domain import facts
from siderite.compute.domain.job import job_of
from siderite.compute.domain.job import job_text
from siderite.compute.domain.server import Move
from siderite.compute.domain.server import Server
from siderite.compute.domain.server_machine import Event
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.placement import placing
from siderite.compute.usecases.placement.placing import NotYet
from siderite.compute.usecases.server import acting
from siderite.compute.usecases.server import find
from siderite.compute.usecases.server.kinds import ABORT
from siderite.compute.usecases.server.kinds import ASKED
from siderite.compute.usecases.server.kinds import FORCE
from siderite.compute.usecases.server.kinds import KINDS
from siderite.compute.usecases.server.kinds import TOLD
from siderite.compute.usecases.server.kinds import unheeded
from siderite.core import work
from siderite.core.errors import Busy
from siderite.core.errors import Conflict
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.store import Line
from siderite.core.store import Op
from siderite.core.store import Value
from siderite.core.times import iso
from siderite.core.transition import Cause
from siderite.core.transition import Change
from siderite.core.transition import apply
from siderite.core.who import Who
from siderite.core.work import Work

COLUMNS = (
    "id, uuid, server, project_id, user_id, kind, status, source_host, source_node, target_host,"
    " target_node, old_flavor, new_flavor, created_at, updated_at"
)
_UUID, _KIND, _STATUS = 1, 5, 6  # their places in the columns
_ACTIONS = {
    ABORT: ("live_migration_cancel", "compute_live_migration_abort"),
    FORCE: ("live_migration_force_complete", "compute_live_migration_force_complete"),
}
EVICTED_S = 90 * 24 * 3600.0
"""How long it is tried to remove what a server left behind on a host that is down."""


_EVICTED = "evicted"


class Evicted(msgspec.Struct, frozen=True, omit_defaults=True):
    """A guest that was evacuated from a host that is down, or deleted there, and may still be there
    when the host comes back.
    """

    server: str
    host: str
    node: str
    only_off: bool = False
    """Its server can be restored: the guest stays, but may not run on."""


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
    return rows.migration_becomes(migration, status, iso(ctx.door.clock()))


def leaves_behind(
    ctx: Context, server: Server, host: str, node: str, *, only_off: bool = False
) -> Op:
    """The work that removes a guest that was evacuated or deleted from its old host when that is
    back; or only switches it off, if its server can be restored.
    """
    now = ctx.door.clock()
    job = Evicted(server.uuid, host, node, only_off)
    return work.add(
        _old_place(server, host), _EVICTED, _EVICTED,
        job=msgspec.json.encode(job).decode(), now=now, due=now + 5.0, deadline=now + EVICTED_S,
        reason="the old host is down",
    )  # fmt: skip


def _old_place(server: Server, host: str) -> str:
    return f"{server.uuid}@{host}"


async def is_behind(ctx: Context, server: Server, host: str) -> bool:
    """Whether a host still has what the server left behind when it was evacuated from there."""
    return bool(await work.of_machine(ctx.door.store, _old_place(server, host)))


async def untouched(ctx: Context, server: Server) -> Sequence[Op]:
    """`NotYet` while what it left behind somewhere is just being removed; else ops by which nobody
    has begun that when they are committed. Who begins it afterwards sees what came of the commit.
    """
    of_it = (_EVICTED, f"{server.uuid}@%")
    ((count, leased),) = await ctx.door.store.fetch(
        "SELECT count(*), count(owner) FROM work WHERE lane = ? AND machine LIKE ?", of_it
    )
    if leased:
        raise NotYet("what was left of it on another host is just being removed")
    holds = "UPDATE work SET due = due WHERE lane = ? AND machine LIKE ? AND owner IS NULL"
    return [Op(holds, of_it, int(str(count)))] if count else ()


async def takes_over(ctx: Context, server: Server, host: str) -> Sequence[Op]:
    """What it left there is its own again."""
    return [*await untouched(ctx, server), *work.drop(_old_place(server, host), _EVICTED)]


async def page(ctx: Context, where: str, args: Sequence[Value], *, limit: int) -> Sequence[Line]:
    """Migrations that meet a condition, newest first."""
    return await ctx.door.store.fetch(
        f"SELECT {COLUMNS} FROM server_migrations WHERE {where} ORDER BY id DESC LIMIT {limit}",  # noqa: S608
        args,
    )


async def of_server(ctx: Context, server: Server, number: int) -> Line | None:
    """A migration of a server by its number."""
    rows = await page(ctx, "server = ? AND id = ?", [server.uuid, number], limit=1)
    return rows[0] if rows else None


async def check_live(ctx: Context, uuid: str, host: str | None, *, who: Who) -> None:
    """Refuse a live migration that cannot be, in the answer to the request for it."""
    server = await find.server(ctx, uuid, who)
    kind = KINDS["live_migrate"]
    acting.check_lock(server, who)
    acting.check_state(server, kind.event, kind.word or kind.action)
    acting.check_place(ctx, server, kind)
    if await acting.is_down(ctx, server.host):
        raise Invalid(acting.cannot_leave(server))
    if host is not None and await acting.is_down(ctx, host):
        raise Invalid(f"Compute service of {host} is unavailable at this time. Name another host.")
    avoid = {server.host or "": placing.HERE}
    found = await placing.find_place(ctx, server, host=host, avoid=avoid, is_move=True)
    if not found.ranked:
        raise Invalid(found.sentence)


async def tell(
    ctx: Context, uuid: str, number: int, what: str, *, who: Who, cause: Cause
) -> Server:
    """Have a live migration under way aborted, or ended soon; the worker does it."""

    async def decide(change: Change) -> Server:
        server = await find.server(ctx, uuid, who)
        acting.check_lock(server, who)
        row = await of_server(ctx, server, number)
        if row is None:
            raise NotFound(
                f"Migration {number} for server {uuid} could not be found. `server migration list`"
                " shows all."
            )
        if (row[_KIND], row[_STATUS]) != ("live-migration", "running"):
            word = "abort" if what == ABORT else "force complete"
            raise Invalid(
                f"Migration {number} of server {uuid} is a {row[_KIND]!s} with the status"
                f" {row[_STATUS]!s}: cannot {word} it; only a live migration that is running."
            )
        if server.task_state != "migrating":
            raise Conflict(
                f"Instance {uuid} is in task_state {server.task_state}, not migrating; look again."
            )
        items = await work.of_machine(ctx.door.store, server.uuid)
        item = next((one for one in items if one.lane == ctx.rules.lane), None)
        if item is None or job_of(item.job).op != row[_UUID]:
            raise Busy(f"Migration {number} of server {uuid} is just ending; look again.")
        return _told(ctx, change, server, item, what)

    return await ctx.door.attempt(cause, uuid, decide)


def _told(ctx: Context, change: Change, server: Server, item: Work, what: str) -> Server:
    job = job_of(item.job)
    action, event = _ACTIONS[what]
    why = "its end was asked for" if what == ABORT else "it was asked to end soon"
    change.put(acting.note(change, server, action, event))
    after = apply(
        change, ctx.rules, server, Event.HURRY, kind=item.kind, reason=why,
        job=job_text(job.with_args(**{ASKED: what})), changes={"wait_reason": why},
    ).value  # fmt: skip
    if job.args.get(ASKED) != what:
        change.tell(*unheeded(after, job, why), facts.phase(TOLD[what], "start", after))
    return after
