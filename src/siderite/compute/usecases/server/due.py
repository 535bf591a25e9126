"""What becomes due by itself."""

import asyncio
from collections.abc import Callable
from collections.abc import Sequence

from siderite.compute.domain.host import Host
from siderite.compute.domain.server import Server
from siderite.compute.domain.server_machine import V
from siderite.compute.store import SERVERS
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.fleet import hosts
from siderite.compute.usecases.placement import outlook
from siderite.compute.usecases.server import acting
from siderite.compute.usecases.server import delete
from siderite.compute.usecases.server.acting import Ask
from siderite.core import work
from siderite.core.store import Line
from siderite.core.store import Op
from siderite.core.store import indexed
from siderite.core.times import iso
from siderite.core.transition import Cause
from siderite.core.who import Who
from siderite.core.work import Work

SYSTEM = Who("", "siderite", None, None, frozenset({"admin"}), system=True)
_SOME = 100
_PAGES = 10
_PAUSE_S = 3600.0
"""How long at most until what failed is tried again."""


Some = tuple[list[str], int]
"""Some servers that are due, those first that came first; and after which to go on, so that all
have their turn though the first ones can never be helped.
"""
NONE: Some = ([], 0)


async def _resting(
    ctx: Context, what: str, state: V, after: int, also: str = "", *args: str
) -> Sequence[Line]:
    """Columns of some servers in this state that nothing is done to, oldest first."""
    store = ctx.door.store
    return await store.fetch(
        f"SELECT {what} FROM servers {indexed(store, 'servers_state')}"  # noqa: S608
        f" WHERE vm_state = ? AND task_state IS NULL AND deleted = 0 AND id > ?{also}"
        " ORDER BY id LIMIT ?",
        (state, after, *args, _SOME),
    )


async def _some(ctx: Context, state: V, after: int, also: str = "", *args: str) -> Some:
    rows = await _resting(ctx, "uuid, id", state, after, also, *args)
    return [str(row[0]) for row in rows], int(str(rows[-1][1])) if len(rows) == _SOME else 0


async def _over(ctx: Context, state: V, after: int, is_over: Callable[[Server], bool]) -> Some:
    """Of those that were set aside, the ones whose time is over. Some pages are looked at."""
    found: list[str] = []
    for _ in range(_PAGES):
        rows = await _resting(ctx, "id, doc", state, after)
        servers = SERVERS.readable(row[1] for row in rows)
        found += [server.uuid for server in servers if server is not None and is_over(server)]
        after = int(str(rows[-1][0])) if len(rows) == _SOME else 0
        if found or not after:
            break
    return found, after


def _is_over(ctx: Context, server: Server, began: str, time_s: float) -> bool:
    """Whether it was set aside long enough ago: whatever else changes of it does not prolong that.
    What failed is not tried again at once.
    """
    now, fault = ctx.door.clock(), server.fault
    pause_s = min(time_s, _PAUSE_S)
    if fault is not None and max(began, iso(now - pause_s)) < fault.created:
        return False
    return began <= iso(now - time_s)


async def to_reclaim(ctx: Context, after: int = 0) -> Some:
    """Deleted servers whose time to be restored is over."""
    if ctx.settings.reclaim_interval_s <= 0:
        return NONE
    return await _over(ctx, V.SOFT_DELETED, after, lambda server: _is_lost(ctx, server))


def _is_lost(ctx: Context, server: Server) -> bool:
    began = server.soft_deleted_at or server.changed_at
    return _is_over(ctx, server, began, ctx.settings.reclaim_interval_s)


async def reclaim(ctx: Context, uuid: str) -> Server:
    """Such a server goes for good, unless it was restored since it was found to be one."""
    return await delete.ask(
        ctx, uuid, who=SYSTEM, cause=Cause(), force=True,
        still=lambda server: server.state == V.SOFT_DELETED and _is_lost(ctx, server),
    )  # fmt: skip


async def to_offload(ctx: Context, after: int = 0) -> Some:
    """Shelved servers whose time on their host is over."""
    time_s = ctx.settings.shelved_offload_time_s
    if time_s <= 0:
        return NONE
    return await _over(
        ctx, V.SHELVED, after,
        lambda server: _is_over(ctx, server, server.shelved_at or server.changed_at, time_s),
    )  # fmt: skip


async def offload(ctx: Context, uuid: str) -> Server:
    """Such a server leaves its host."""
    return await acting.ask(ctx, uuid, Ask("shelve_offload"), who=SYSTEM, cause=Cause())


async def pending_too_long(ctx: Context, after: int = 0) -> Some:
    """Servers that nobody found room for in time, counted from when they were asked for: neither a
    rebuild that finds no room nor a new name prolongs it. (Whether somebody makes room is asked of
    each.)
    """
    time_s = ctx.settings.pending_timeout_s
    if time_s <= 0:
        return NONE
    before = iso(ctx.door.clock() - time_s)
    return await _some(ctx, V.PENDING, after, " AND created_at <= ?", before)


async def to_wake(ctx: Context, after: int = 0) -> Some:
    """Servers that wait for room, that nobody takes care of and for which there is some, of all
    that wait: each look begins with the oldest, or room went to those whose page it was.
    """
    if not ctx.settings.wake_pending:
        return NONE
    found: list[str] = []
    view, now = await outlook.look(ctx), iso(ctx.door.clock())
    while True:
        rows = await _resting(ctx, "id, doc", V.PENDING, after)
        for server in SERVERS.readable(row[1] for row in rows):
            if server is None or (server.keeper is not None and (server.kept_until or "") > now):
                continue
            if await view.takes(server):
                found.append(server.uuid)
            await asyncio.sleep(0)  # as many may wait, others have their turn meanwhile
        if len(rows) < _SOME:
            return found, 0
        after = int(str(rows[-1][0]))


async def forget_old(ctx: Context) -> bool:
    """Forget some deleted servers whose records are old; whether there may be more. One that may be
    left on a host that it was evacuated from is remembered until that is back.
    """
    kept_s = ctx.settings.deleted_servers_keep_s
    if kept_s <= 0:
        return False
    before = iso(ctx.door.clock() - kept_s)
    store = ctx.door.store
    rows = await store.fetch(
        f"SELECT uuid FROM servers {indexed(store, 'servers_gone')}"  # noqa: S608
        " WHERE deleted = 1 AND terminated_at <= ? AND uuid NOT IN"
        " (SELECT substr(machine, 1, 36) FROM work WHERE lane = 'evicted')"
        " ORDER BY terminated_at LIMIT 100",
        (before,),
    )
    for row in rows:
        await store.commit(
            [
                Op("DELETE FROM instance_actions WHERE server = ?", (row[0],)),
                Op("DELETE FROM server_migrations WHERE server = ?", (row[0],)),
                SERVERS.forget(str(row[0])),
            ]
        )
    return len(rows) == _SOME


async def pass_on(ctx: Context, held: Work, host: Host) -> None:
    """Work that has no server to show its reason on is for workers of a host's group."""
    change = ctx.door.change(Cause())
    reason, _ = await hosts.why_passed_on(ctx, host)
    hosts.pass_on(change, held, host, held.job, reason)
    await ctx.door.commit(change)


async def later(
    ctx: Context, held: Work, reason: str, again_in: float, job: str | None = None
) -> None:
    """Work that has no server to show its reason on waits; with another job if there is one."""
    change = ctx.door.change(Cause())
    change.put(work.park(held, due=change.now + again_in, reason=reason, job=job))
    await ctx.door.commit(change)
