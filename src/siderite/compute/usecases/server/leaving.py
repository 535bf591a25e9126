"""What a move that was given up, or failed, has left at its other end: work of its own removes it,
and gives the room back that was claimed for it.
"""

from collections.abc import Sequence
from typing import Any
from typing import Literal

import msgspec

from siderite.compute import store as rows
from siderite.compute.domain import facts
from siderite.compute.domain.job import Job
from siderite.compute.domain.job import job_of
from siderite.compute.domain.server import Move
from siderite.compute.domain.server import Server
from siderite.compute.domain.server_machine import V
from siderite.compute.store import SERVERS
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.fleet import aggregates
from siderite.compute.usecases.placement.placing import NotYet
from siderite.compute.usecases.project import quota
from siderite.compute.usecases.server.kinds import work_kind
from siderite.core import work
from siderite.core.store import Op
from siderite.core.times import iso
from siderite.core.transition import Cause
from siderite.core.work import Work

KIND = "left"
PATIENCE_S = 24 * 3600.0
"""For so long it is tried; then the room is free in any case."""
_WAITING = frozenset(
    work_kind(kind)
    for kind in (
        "resize", "migrate", "live_migrate", "unshelve", "rebuild", "rescue", "reboot_hard",
    )
)  # fmt: skip
"""Work whose first step waits for it."""
_STARTING = frozenset(work_kind(kind) for kind in ("start", "reboot", "restore", "shelve"))
"""Work whose first step waits for it if the guest may be elsewhere, or is to have another disk."""
_ELSEWHERE = frozenset({"revert", "abort"})
_OPEN = _ELSEWHERE | {"confirm"}


_UNDO = ":undo"
"""How slots end of what has no claim any more: of a build that failed there and is to be undone."""


class Left(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is to be done about a place where the server is not, or not for long. `slot` is the
    claim of it, `claim` that of the place where the server was when this was noted.
    """

    how: Literal["revert", "confirm", "abort", "leave"]
    slot: str
    host: str
    node: str
    claim: str | None
    token: str
    to: dict[str, Any] = {}
    move: Move | None = None

    @property
    def has_claim(self) -> bool:
        """Whether it is found by its claim, too."""
        return not self.slot.endswith(_UNDO)


def of(server: Server, job: Job | None) -> Left | None:
    """What is left at another place if the server's move ends here and now. A deletion knows what
    the move was that it ended.
    """
    noted = None if job is None else job.args.get(KIND)
    if noted is not None:
        return msgspec.convert(noted, Left)
    undo = None if job is None else job.args.get("undo")
    if job is not None and undo is not None:
        # Several hosts may have been tried: what each keeps is removed apart.
        slot = f"{job.op}:{len(server.tried)}{_UNDO}"
        return Left("leave", slot, undo["host"], undo["node"], server.claim, slot)
    move = server.move
    if move is not None:
        return _of_resize(server, move)
    if job is None or "claim" not in job.args:
        return None
    to = job.args["to"]
    how: Literal["abort", "leave"] = "abort" if job.action == "live-migration" else "leave"
    return Left(
        how, job.args["claim"], to["host"], to["node"], server.claim, job.at_step(1).token, to
    )


def _of_resize(server: Server, move: Move) -> Left:
    """It is undone, unless the server is as it should be: then there is no way back any more."""
    host, node = move.target_host or "", move.target_node or ""
    if server.claim == move.old_claim:
        slot = f"{move.migration}:new"
        return Left("revert", slot, host, node, server.claim, move.migration, move=move)
    is_done = server.vm_state == V.RESIZED and server.task_state != "resize_reverting"
    if not is_done:
        slot = server.claim or ""
        return Left("revert", slot, host, node, server.claim, move.migration, move=move)
    return Left(
        "confirm", move.old_claim or "", move.source_host, move.source_node, server.claim,
        move.migration, move=move,
    )  # fmt: skip


def behind(server: Server, left: Left, now: float) -> list[Op]:
    """The work that removes it; and a move that waited to be confirmed is not to be any more."""
    removal = work.add(
        server.uuid, f"{KIND}/{left.slot}", KIND, job=msgspec.json.encode(left).decode(), now=now,
        deadline=now + PATIENCE_S, reason=f"what is left on host {left.host} is to be removed",
    )  # fmt: skip
    if left.move is None:
        return [removal]
    status = "confirmed" if left.how == "confirm" else "reverted"
    return [removal, settled(left.move, status, iso(now))]


async def check(ctx: Context, server: Server) -> None:
    """`NotYet` while the end of an earlier move is not settled: where the guest is, and which of
    its disks counts, is only known then. For the first step of those that wait for it.
    """
    reason = await _open(ctx, server)
    if reason is not None:
        raise NotYet(f"an earlier move is not settled: {reason}")
    now = await SERVERS.get(ctx.door.store, server.uuid)
    if now is not None and now.version != server.version:
        raise NotYet("an earlier move was settled just now")


async def check_guest(ctx: Context, server: Server) -> None:
    """The same for those that start a guest, or keep what is on its disk: it may run at the other
    end, or its disk be given up for an older one. Who only waits to be confirmed does not matter.
    """
    reason = await _open(ctx, server, _ELSEWHERE)
    if reason is not None:
        raise NotYet(f"an earlier move is not settled: {reason}")


async def is_open(ctx: Context, server: Server) -> bool:
    """Whether the server's guest may be elsewhere, as an earlier move is not settled."""
    return await _open(ctx, server) is not None


async def _open(ctx: Context, server: Server, hows: frozenset[str] = _OPEN) -> str | None:
    for item in await work.of_machine(ctx.door.store, server.uuid):
        if item.kind == KIND and _matters(server, msgspec.json.decode(item.job, type=Left), hows):
            return item.reason
    return None


def _matters(server: Server, left: Left, hows: frozenset[str]) -> bool:
    """Of a server that has fled since, it is known where it is: what is left elsewhere is only to
    be removed, which may have to wait until a host is back.
    """
    return left.how in hows and left.claim == server.claim


async def is_left_at(ctx: Context, server: Server, host: str) -> bool:
    """Whether something of the server is to be removed from a host where it did not come to be."""
    for item in await work.of_machine(ctx.door.store, server.uuid):
        if item.kind == KIND and msgspec.json.decode(item.job, type=Left).host == host:
            return True
    return False


async def is_waited_for(ctx: Context, server: Server, how: str = "") -> bool:
    """Whether what is asked of the server has not begun, and will not before this is settled."""
    waiting = _WAITING | _STARTING if how in _ELSEWHERE else _WAITING
    for item in await work.of_machine(ctx.door.store, server.uuid):
        if item.lane == ctx.rules.lane:
            return item.kind in waiting and job_of(item.job).step == 0
    return False


async def undone(ctx: Context, server: Server, left: Left) -> dict[str, Any]:
    """The changes of a server that is back where it came from, if it had left."""
    move = left.move
    if move is None or server.claim == move.old_claim:
        return {}
    return await back(ctx, move)


async def back(ctx: Context, move: Move) -> dict[str, Any]:
    """The fields of a server that is in its old place, and its old size."""
    atlas = await aggregates.atlas(ctx)
    return {
        "host": move.source_host, "node": move.source_node, "claim": move.old_claim,
        "flavor": move.old_flavor, "availability_zone": atlas.place(move.source_host).zone,
    }  # fmt: skip


def arrived(left: Left) -> dict[str, Any]:
    """The changes of a server whose migration was faster than its end."""
    return {
        "host": left.to["host"], "node": left.to["node"], "driver": left.to["driver"],
        "availability_zone": left.to["zone"], "claim": left.slot,
    }  # fmt: skip


def settled(move: Move, status: str, at: str) -> Op:
    """Of the record of a move that waits to be confirmed."""
    return Op(
        "UPDATE server_migrations SET status = ?, updated_at = ? WHERE uuid = ?"
        " AND status = 'finished'",
        (status, at, move.migration),
    )


async def settle(
    ctx: Context, held: Work, server: Server, left: Left, *, changes: dict[str, Any],
    behind: Sequence[Op] = (),
) -> None:  # fmt: skip
    """Nothing is left there, or it is seen to by other work: the room is free, and the server is
    where it is.
    """
    change = ctx.door.change(Cause(held.request_id))
    change.put(work.done(held))
    after = server
    if changes:
        after = server.changed(change.now, changes)
        change.put(SERVERS.swap(server, after))
        change.tell(facts.update(server, after))
    else:
        change.put(SERVERS.hold(server))
    if after.flavor != server.flavor and server.counted is None and not server.uncounted:
        change.put(quota.becomes(server, after.flavor))
    old = None if left.move is None else left.move.old_claim
    gone = {left.slot, left.claim, old} - {after.claim}
    found = [one for one in await rows.claims(ctx.door.store, server.uuid) if one[0] in gone]
    change.put(*rows.free_many(server.uuid, found), *behind)
    await ctx.door.commit(change)
