"""Consoles: switched on and off by clients, and on again when the process that carried one is gone.

A console that is on has a row which names its home: the process that carries it. Homes tell that
they live; a console whose home does not any more is given a new one, once, whichever process sees
it first. One whose node gets another `driver_info` has no place any more: its home lets go of it,
and it is given a new one in the same way.
"""

import os
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import msgspec

from siderite.baremetal.domain import facts
from siderite.baremetal.domain.hardware import ConsoleInfo
from siderite.baremetal.domain.node import Node
from siderite.baremetal.store import NODES
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.machine.hardware import check_reach
from siderite.baremetal.usecases.machine.hardware import unsupported
from siderite.baremetal.usecases.node import find
from siderite.baremetal.usecases.node.find import Guard
from siderite.core import work
from siderite.core.errors import Busy
from siderite.core.store import Lost
from siderite.core.store import Op
from siderite.core.transition import Cause
from siderite.core.transition import Change
from siderite.core.who import Who
from siderite.core.work import Work

LANE = "console"
RESTORE_PATIENCE_S = 600.0

_PUT = (
    "INSERT INTO consoles (node_uuid, home, type, url) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (node_uuid) DO UPDATE SET home = excluded.home, type = excluded.type,"
    " url = excluded.url"
)
_ORPHANS = (
    "SELECT node_uuid, home FROM consoles WHERE NOT EXISTS"
    " (SELECT 1 FROM console_homes WHERE console_homes.home = consoles.home)"
    " AND NOT EXISTS (SELECT 1 FROM work WHERE work.machine = consoles.node_uuid"
    " AND work.lane = 'console') ORDER BY node_uuid LIMIT 1000"
)
_PLACE = (
    "SELECT home, type, url FROM consoles WHERE node_uuid = ? AND url IS NOT NULL AND EXISTS"
    " (SELECT 1 FROM console_homes WHERE console_homes.home = consoles.home)"
)
_TAKE = (
    "UPDATE consoles SET home = ?, type = NULL, url = NULL WHERE node_uuid = ? AND home = ?"
    " AND NOT EXISTS (SELECT 1 FROM work WHERE work.machine = consoles.node_uuid"
    " AND work.lane = 'console')"
)
_CARRIED = (
    "SELECT node_uuid, url IS NULL AND NOT EXISTS (SELECT 1 FROM work"
    " WHERE work.machine = consoles.node_uuid AND work.lane = 'console')"
    " FROM consoles WHERE home = ?"
)
_LET_GO = (
    "UPDATE consoles SET home = '' WHERE node_uuid = ? AND home = ? AND url IS NULL"
    " AND NOT EXISTS (SELECT 1 FROM work WHERE work.machine = consoles.node_uuid"
    " AND work.lane = 'console')"
)
_GONE = "DELETE FROM consoles WHERE node_uuid = ? AND home = ?"
_LIVE = (
    "INSERT INTO console_homes (home, host, pid, seen) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (home) DO UPDATE SET seen = excluded.seen"
)


class ConsoleJob(msgspec.Struct, frozen=True, omit_defaults=True):
    """The job in the work row."""

    enabled: bool
    restore: bool = False

    @property
    def action(self) -> str:
        """How it is announced."""
        return "console_restore" if self.restore else "console_set"


async def ask(
    ctx: Context, ident: str, *, enabled: bool, who: Who, cause: Cause, guard: Guard
) -> None:
    """Have the console switched on or off; the work follows."""

    async def decide(change: Change) -> None:
        node = await find.node(ctx, ident, who, guard)
        if not ctx.hardware.can(node, "console"):
            raise unsupported(node, "console")
        if enabled:
            check_reach(ctx.cards, node)
        for item in await work.of_machine(ctx.door.store, node.uuid):
            if item.lane == LANE and item.kind != work.GONE:
                if not enabled and msgspec.json.decode(item.job, type=ConsoleJob).restore:
                    _give_up_restoring(change, node)
                    return
                why = str(item.reason).rstrip(".")
                raise Busy(f"The console of node {node.uuid} is being changed: {why}.")
        if node.console_enabled == enabled:
            return
        after = node.changed(change.now, {"last_error": None})
        change.put(NODES.swap(node, after))
        _begin(ctx, change, after, ConsoleJob(enabled), ctx.settings.power_timeout_s)

    await ctx.door.attempt(cause, ident, decide)


def _give_up_restoring(change: Change, node: Node) -> None:
    """Nobody carries the console, and nobody wants it any more: no machine is asked for that."""
    after = node.changed(change.now, {"console_enabled": False, "last_error": None})
    change.put(NODES.swap(node, after), forget(node.uuid), *work.drop(node.uuid, LANE))
    change.tell(
        facts.console("console_restore", "error", node),
        facts.console("console_set", "start", node),
        facts.console("console_set", "end", after),
    )


def _begin(ctx: Context, change: Change, node: Node, job: ConsoleJob, patience_s: float) -> None:
    change.tell(facts.console(job.action, "start", node))
    verb = "restored" if job.restore else "switched on" if job.enabled else "switched off"
    change.work(
        work.add(
            node.uuid, LANE, "console", job=msgspec.json.encode(job).decode(), now=change.now,
            deadline=change.now + patience_s, reason=f"the console is to be {verb}",
            request_id=change.cause.request_id, pool=ctx.rules.pool(node),
        )
    )  # fmt: skip


async def info(ctx: Context, ident: str, who: Who, guard: Guard) -> tuple[bool, ConsoleInfo | None]:
    """Whether a node's console is on, and where it is: nowhere while nobody carries it."""
    node = await find.node(ctx, ident, who, guard)
    if not node.console_enabled:
        return False, None
    rows = await ctx.door.store.fetch(_PLACE, (node.uuid,))
    if not rows or (ctx.door.store.dialect == "sqlite" and not _is_ours(ctx, str(rows[0][0]))):
        return True, None
    return True, ConsoleInfo(str(rows[0][1]), str(rows[0][2]))


def home_of(ctx: Context) -> str:
    """How the name of a home in this process begins."""
    return f"{ctx.door.host}:{os.getpid()}:"


def _is_ours(ctx: Context, home: str) -> bool:
    """On SQLite there is one process only: any other home is gone, though it may not have left."""
    return home.startswith(home_of(ctx))


def wanted(uuid: str) -> Op:
    """A node is made with its console on: no process carries it yet."""
    return Op(_PUT, (uuid, "", None, None), 1)


def anew(uuid: str) -> Op:
    """What the console was opened with is no more: it is opened anew by what there is now."""
    return Op("UPDATE consoles SET type = NULL, url = NULL WHERE node_uuid = ?", (uuid,))


def changes_hands(node: Node, changes: Mapping[str, Any]) -> bool:
    """Whether somebody has the node until these changes who then has not. They know where its
    console is, which asks nobody who they are: it ends.
    """
    return any(
        name in changes and getattr(node, name) not in (None, changes[name])
        for name in ("owner", "lessee")
    )


def forget(uuid: str) -> Op:
    """The console has no reader any more; its home notices and lets go of it."""
    return Op("DELETE FROM consoles WHERE node_uuid = ?", (uuid,))


async def waits(ctx: Context, held: Work, reason: str, again_in: float) -> None:
    """The machine does not answer: let go of the work for a while."""
    change = ctx.door.change(Cause(held.request_id))
    change.put(work.park(held, due=change.now + again_in, reason=reason))
    await ctx.door.commit(change)


async def ended(
    ctx: Context,
    held: Work,
    job: ConsoleJob,
    *,
    home: str,
    at: ConsoleInfo | None = None,
    by: Node | None = None,
    error: str | None = None,
) -> None:
    """The console is on at this place, off, or cannot be changed. `by` is the node as it was when
    that was tried: if it is reached in another way by now, the console has no place yet.
    """

    async def decide(change: Change) -> None:
        change.put(work.done(held))
        node = await NODES.get(ctx.door.store, held.machine)
        if node is None:
            change.put(forget(held.machine))
            return
        changes: dict[str, Any] = {"console_enabled": job.enabled}
        if error is not None:
            # One that cannot be had again is off, and says so; otherwise nothing changed.
            changes = {"last_error": error}
            if job.restore:
                changes["console_enabled"] = False
        after = node.changed(change.now, changes)
        change.put(NODES.swap(node, after))
        if at is not None and error is None:
            is_old = by is not None and by.driver_info != node.driver_info
            place = (None, None) if is_old else (at.type, at.url)
            change.put(Op(_PUT, (node.uuid, home, *place), 1))
        elif not after.console_enabled:
            change.put(forget(node.uuid))
        change.tell(facts.console(job.action, "error" if error else "end", after))

    await ctx.door.attempt(Cause(held.request_id), held.machine, decide, held=held)


async def live(ctx: Context, home: str, pid: int) -> None:
    """A home tells that it lives."""
    change = ctx.door.change(Cause())
    change.put(Op(_LIVE, (home, ctx.door.host, pid, change.now), 1))
    await ctx.door.commit(change)


async def homes(ctx: Context) -> Sequence[tuple[str, str, int, float]]:
    """Every home: its name, its machine, its process and when it was last heard of."""
    rows = await ctx.door.store.fetch("SELECT home, host, pid, seen FROM console_homes")
    return [tuple(row) for row in rows]  # type: ignore[misc]


async def leave(ctx: Context, gone: Sequence[str]) -> None:
    """These homes are no more."""
    change = ctx.door.change(Cause())
    for home in gone:
        change.put(Op("DELETE FROM console_homes WHERE home = ?", (home,)))
    await ctx.door.commit(change)


async def carried_by(ctx: Context, home: str) -> dict[str, bool]:
    """The nodes whose consoles a home shall carry, and which of them are to be opened anew."""
    rows = await ctx.door.store.fetch(_CARRIED, (home,))
    return {str(uuid): bool(is_old) for uuid, is_old in rows}


async def let_go(ctx: Context, home: str, uuid: str) -> None:
    """A home does not carry this console any more: it is opened anew."""
    change = ctx.door.change(Cause())
    change.put(Op(_LET_GO, (uuid, home)))
    await ctx.door.commit(change)


async def restore(ctx: Context, home: str) -> int:
    """Have every console that lost its home started anew; how many there were."""
    rows = await ctx.door.store.fetch(_ORPHANS)
    for uuid, old in rows:
        change = ctx.door.change(Cause())
        node = await NODES.get(ctx.door.store, str(uuid))
        # Only one finds the old home still there, so a console is restored once; and none does if a
        # client has asked for it to be switched meanwhile.
        if node is None or not node.console_enabled:
            change.put(Op(_GONE, (uuid, old), 1))
        else:
            # Counted, lest whoever ends the node's work just now does not end this.
            change.put(Op(_TAKE, (home, uuid, old), 1), NODES.swap(node, node.touched()))
            _begin(ctx, change, node, ConsoleJob(True, restore=True), RESTORE_PATIENCE_S)
        try:
            await ctx.door.commit(change)
        except Lost:
            continue
    return len(rows)
