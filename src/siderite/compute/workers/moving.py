"""Servers that change their size or their host."""

from typing import Any

import msgspec
from msgspec.structs import replace

from siderite.compute.domain import facts
from siderite.compute.domain.flavor import Flavor
from siderite.compute.domain.host import Hypervisor
from siderite.compute.domain.outcome import Done
from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.outcome import Wait
from siderite.compute.domain.placement import Placement
from siderite.compute.domain.power import Power
from siderite.compute.domain.server import Move
from siderite.compute.domain.server import Server
from siderite.compute.domain.server_machine import Event
from siderite.compute.domain.server_machine import V
from siderite.compute.drivers.contract import GONE
from siderite.compute.drivers.contract import Guest
from siderite.compute.usecases.placement.placing import HERE
from siderite.compute.usecases.project import quota
from siderite.compute.usecases.server import leaving
from siderite.compute.usecases.server import migrations
from siderite.compute.usecases.server.progress import Report
from siderite.compute.usecases.server.progress import Run
from siderite.compute.workers import ends
from siderite.compute.workers.ends import Plan
from siderite.compute.workers.ends import at_end
from siderite.compute.workers.hands import Hands
from siderite.compute.workers.hands import Place
from siderite.compute.workers.hands import apart
from siderite.compute.workers.hands import guest_of
from siderite.compute.workers.hands import is_lost
from siderite.compute.workers.hands import place_of
from siderite.compute.workers.placing import another_place
from siderite.compute.workers.placing import moves_to
from siderite.compute.workers.steps import Told
from siderite.compute.workers.steps import missing
from siderite.compute.workers.steps import shut_down
from siderite.compute.workers.steps import then_next
from siderite.core.fact import Fact

_PLACE, _SHUT_DOWN = 0, 1


def new_size(run: Run) -> Flavor:
    """The flavor that a resize leads to; a migration keeps its own."""
    told = run.job.args.get("flavor")
    return run.server.flavor if told is None else msgspec.convert(told, Flavor)


def _was_running(server: Server) -> bool:
    old = server.vm_state if server.move is None else server.move.old_vm_state
    return old != V.STOPPED


async def _choose(hands: Hands, run: Run) -> Told:
    """A place for the server in its new size; noted as a migration."""
    server, args = run.server, run.job.args
    is_migration = "flavor" not in args
    avoid = {server.host or "": HERE} if is_migration else None
    size = new_size(run)
    at, found = await another_place(
        hands, run, flavor=size, host=args.get("host"), avoid=avoid
    )  # fmt: skip
    move = move_to(run, "migration" if is_migration else "resize", at, size)

    def told(server: Server) -> list[Fact]:
        return [
            facts.select_destinations("start", server),
            facts.select_destinations("end", server, host=at.host),
        ]

    begun = migrations.begins(hands.ctx, server, move, "migrating")
    return replace(found, ops=[*found.ops, begun], changes={"move": move}, facts=told)


def move_to(run: Run, kind: str, at: Hypervisor, size: Flavor) -> Move:
    """The way that the server goes, as its record keeps it."""
    server = run.server
    return Move(
        migration=run.job.op, kind=kind, source_host=server.host or "",
        source_node=server.node or "", old_claim=server.claim, old_vm_state=server.vm_state,
        old_flavor=server.flavor, new_flavor=size, target_host=at.host, target_node=at.node,
    )  # fmt: skip


Both = tuple[Place, Place] | Failed | Wait


async def both_places(hands: Hands, run: Run) -> Both:
    """The place that the server is at, and the one that it goes to."""
    return await _two(hands, run.server.host, run.job.args["to"]["host"])


async def _two(hands: Hands, one: str | None, other: str | None) -> Both:
    waits = await apart(hands, one, other)
    if waits is not None:
        return waits
    first = await place_of(hands, one)
    second = await place_of(hands, other)
    if isinstance(first, Failed):
        return first
    return second if isinstance(second, Failed) else (first, second)


async def _prepare(hands: Hands, run: Run) -> Told:
    both = await both_places(hands, run)
    if not isinstance(both, tuple):
        return both
    here, there = both
    if here.driver.resize is None:
        return missing("resize")
    guest = guest_of(hands, run.server)
    outcome = await here.driver.resize.prepare(here.at, guest, there.at, run.job.token)
    return Report() if isinstance(outcome, Done) else outcome


async def _finish(hands: Hands, run: Run) -> Told:
    both = await both_places(hands, run)
    if not isinstance(both, tuple):
        return both
    here, there = both
    if there.driver.resize is None:
        return missing("resize")
    guest = guest_of(
        hands, run.server, flavor=new_size(run), node=run.job.args["to"]["node"],
        is_running=_was_running(run.server),
    )  # fmt: skip
    outcome = await there.driver.resize.finish(there.at, guest, here.at, run.job.token)
    return Report(changes=dict(outcome.found)) if isinstance(outcome, Done) else outcome


def _power(server: Server) -> int:
    return int(Power.RUNNING if _was_running(server) else Power.SHUTDOWN)


async def _resized(hands: Hands, run: Run, told: Report) -> Report:
    return Report(
        Event.DONE,
        ends=True,
        changes={
            **told.changes, **moves_to(run), "flavor": new_size(run),
            "power_state": _power(run.server), "fault": None, "counted": None,
        },
        ops=[migrations.becomes(hands.ctx, run.job.op, "finished")],
        facts=at_end(run),
        details=run.job.args.get("shutdown"),
    )  # fmt: skip


async def _not_resized(hands: Hands, run: Run, why: Failed) -> Report:
    """Before the disk was touched, the server is as it was; afterwards it is an error, and what was
    done is undone.
    """
    if run.job.step > _SHUT_DOWN:
        left = ends.left_there(hands, run)
        told = ends.failure(run, why.reason, Event.BREAK, left, counted=None, move=None)
        ops = [*told.ops, quota.becomes(run.server, run.server.flavor)]
        return replace(told, ops=[*ops, migrations.becomes(hands.ctx, run.job.op, "error")])
    return await _undone(hands, run, ends.failure(run, why.reason, Event.FAIL))


async def _undone(hands: Hands, run: Run, told: Report) -> Report:
    server = run.server
    ops = await ends.free_own(hands, run)
    ops.append(quota.becomes(server, server.flavor))
    ops.append(migrations.becomes(hands.ctx, run.job.op, "error"))
    return replace(told, ops=ops, changes={**told.changes, "move": None, "counted": None})


async def _no_host(hands: Hands, run: Run, found: Placement) -> Report:
    return await _undone(hands, run, await ends.no_host(hands, run, found))


RESIZE = Plan(
    (_choose, then_next(shut_down), then_next(_prepare), _finish),
    end=_resized, fail=_not_resized, no_host=_no_host,
)  # fmt: skip


async def _confirm(hands: Hands, run: Run) -> Told:
    move = run.server.move
    if move is None:
        return Failed("there is nothing to confirm (any more)")
    source = await place_of(hands, move.source_host)
    if isinstance(source, Failed):
        return Report()  # a host that was removed keeps nothing of ours
    if source.driver.resize is None:
        return missing("resize")
    guest = guest_of(hands, run.server, flavor=move.new_flavor, node=move.source_node)
    lost, at = await _lost(hands, run, source, guest), source.at
    if lost:  # on storage that hosts share, another one can do it
        home = await place_of(hands, run.server.host)
        at = source.at if isinstance(home, Failed) else home.at
    outcome = await source.driver.resize.confirm(at, guest, run.job.token)
    return Report(job=run.job.with_args(**lost)) if isinstance(outcome, Done) else outcome


async def _lost(hands: Hands, run: Run, other: Place, guest: Guest) -> dict[str, Any]:
    """For the job, the other end of a move that waits to be confirmed, if that is down for good: a
    server is not held up by the host that it does not need.
    """
    server, move = run.server, run.server.move
    if move is None or move.source_host == server.host or not await is_lost(hands, other, guest):
        return {}
    return {ends.BEHIND: [(other.at.host, guest.node)]}


def _after(server: Server) -> str:
    stopped = server.move is not None and server.move.old_vm_state == V.STOPPED
    return Event.DONE_STOPPED if stopped else Event.DONE


async def _confirmed(hands: Hands, run: Run, told: Report) -> Report:
    server = run.server
    ops = await ends.free_all(hands, server, but=server.claim)
    ops += ends.left_behind(hands, run)
    if server.move is not None:
        ops.append(migrations.becomes(hands.ctx, server.move.migration, "confirmed"))
    return Report(
        _after(server), ends=True, ops=ops, changes={"move": None, "fault": None},
        facts=at_end(run),
    )  # fmt: skip


CONFIRM = Plan((_confirm,), end=_confirmed)


async def _revert(hands: Hands, run: Run) -> Told:
    move = run.server.move
    if move is None:
        return Failed("there is nothing to revert (any more)")
    both = await _two(hands, move.source_host, run.server.host)
    if not isinstance(both, tuple):
        return both
    source, there = both
    if source.driver.resize is None:
        return missing("resize")
    guest = guest_of(
        hands, run.server, flavor=move.old_flavor, node=move.source_node,
        is_running=_was_running(run.server),
    )  # fmt: skip
    left = replace(guest, node=run.server.node or "")
    lost = await _lost(hands, run, there, left)
    leaving_at = source.at if lost else there.at
    outcome = await source.driver.resize.revert(source.at, guest, leaving_at, run.job.token)
    if not isinstance(outcome, Done):
        return outcome
    if outcome.found.get(GONE):
        return Failed(f"its disk is gone from host {move.source_host}; rebuild the server")
    return Report(job=run.job.with_args(**lost))


async def _reverted(hands: Hands, run: Run, told: Report) -> Report:
    server = run.server
    move = server.move
    if move is None:
        return await ends.done(hands, run, told)
    ops = await ends.free_all(hands, server, but=move.old_claim)
    ops += ends.left_behind(hands, run)
    ops.append(migrations.becomes(hands.ctx, move.migration, "reverted"))
    ops.append(quota.becomes(server, move.old_flavor))
    return Report(
        _after(server),
        ends=True,
        ops=ops,
        changes={
            **await leaving.back(hands.ctx, move),
            "move": None, "power_state": _power(server), "fault": None,
        },
        facts=at_end(run),
    )  # fmt: skip


async def _not_reverted(hands: Hands, run: Run, why: Failed) -> Report:
    """An error; reverting it is tried further."""
    left = ends.left_there(hands, run)
    return ends.failure(run, why.reason, Event.BREAK, left, move=None)


REVERT = Plan((_revert,), end=_reverted, fail=_not_reverted)


# What all moves end with


async def came(hands: Hands, run: Run, told: Report) -> Report:
    """It is at its new place, and the old one is free."""
    changes: dict[str, Any] = {**told.changes, **moves_to(run), "fault": None}
    ops = await ends.free_all(hands, run.server, but=run.job.args["claim"])
    ops.append(migrations.becomes(hands.ctx, run.job.op, "completed"))
    return Report(Event.DONE, ends=True, ops=ops, changes=changes, facts=at_end(run))


async def stays(hands: Hands, run: Run, why: Failed, status: str = "error") -> Report:
    """It is where it was; what was claimed elsewhere is given back."""
    told = ends.failure(run, why.reason, Event.FAIL)
    ops = await ends.free_own(hands, run)
    ops.append(migrations.becomes(hands.ctx, run.job.op, status))
    return replace(told, ops=ops)
