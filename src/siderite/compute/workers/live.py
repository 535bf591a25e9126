"""To another host while it runs; and what can be said to a migration that is under way."""

from msgspec.structs import replace

from siderite.compute.domain import facts
from siderite.compute.domain.outcome import Done
from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.server_machine import V
from siderite.compute.usecases.placement.placing import HERE
from siderite.compute.usecases.server import acting
from siderite.compute.usecases.server import kinds
from siderite.compute.usecases.server import leaving
from siderite.compute.usecases.server import migrations
from siderite.compute.usecases.server.progress import Facts
from siderite.compute.usecases.server.progress import Report
from siderite.compute.usecases.server.progress import Run
from siderite.compute.workers.ends import Plan
from siderite.compute.workers.hands import Hands
from siderite.compute.workers.hands import guest_of
from siderite.compute.workers.hands import is_at_home
from siderite.compute.workers.host_watch import answers
from siderite.compute.workers.moving import both_places
from siderite.compute.workers.moving import came
from siderite.compute.workers.moving import move_to
from siderite.compute.workers.moving import stays
from siderite.compute.workers.placing import another_place
from siderite.compute.workers.steps import Told
from siderite.compute.workers.steps import missing

_ABORTED = "it was aborted, as was asked for"
_LEFT = "; host {} does not answer: what it has of it is removed when it does"


async def _choose(hands: Hands, run: Run) -> Told:
    server, home = run.server, run.server.host or ""
    if await acting.is_down(hands.ctx, home) and not await answers(hands, home):
        return Failed(acting.cannot_leave(server))
    at, found = await another_place(hands, run, host=run.job.args.get("host"), avoid={home: HERE})
    move = move_to(run, "live-migration", at, server.flavor)
    begun = migrations.begins(hands.ctx, server, move, "running")
    return replace(found, ops=[*found.ops, begun])


async def _move(hands: Hands, run: Run) -> Told:
    both = await both_places(hands, run)
    if not isinstance(both, tuple):
        return both
    here, there = both
    mover = here.driver.live_migrate
    if mover is None:
        return missing("migrate live")
    asked = run.job.args.get(kinds.ASKED)
    guest = guest_of(
        hands, run.server, node=run.job.args["to"]["node"],
        is_running=run.server.vm_state == V.ACTIVE,
    )  # fmt: skip
    if asked == kinds.ABORT:
        outcome = await mover.abort(here.at, guest, there.at, run.job.token)
        if isinstance(outcome, Done) and not outcome.found.get("arrived"):
            left = _LEFT.format(there.at.host) if outcome.found.get("left") else ""
            return Failed(_ABORTED + left, elsewhere=False)
        return Report() if isinstance(outcome, Done) else outcome
    if asked == kinds.FORCE:
        forced = await mover.force(here.at, guest, run.job.token)
        if not isinstance(forced, Done):
            return forced
    outcome = await mover.live_migrate(here.at, guest, there.at, run.job.token)
    return Report() if isinstance(outcome, Done) else outcome


async def _came(hands: Hands, run: Run, told: Report) -> Report:
    report = await came(hands, run, told)
    return replace(report, facts=_and_what_was_asked(run, report))


async def _stays(hands: Hands, run: Run, why: Failed) -> Report:
    is_aborted = why.reason.startswith(_ABORTED)
    told = await stays(hands, run, why, "cancelled" if is_aborted else "error")
    told = replace(told, facts=_and_what_was_asked(run, told))
    if is_aborted:
        told = replace(told, changes={**told.changes, "fault": None})
    left = leaving.of(run.server, run.job)
    if left is None or why.reason == _ABORTED:
        return told
    now = hands.ctx.door.clock()
    if is_aborted or await is_at_home(hands, run.server):
        left = replace(left, how="leave")
        return replace(told, ops=[*told.ops, *leaving.behind(run.server, left, now)])
    # It may be at the other end, whose room it needs then.
    ops = [migrations.becomes(hands.ctx, run.job.op, "error")]
    return replace(told, ops=[*ops, *leaving.behind(run.server, left, now)])


def _and_what_was_asked(run: Run, told: Report) -> Facts:
    """The end of what was said to the migration comes with its own end."""
    asked = run.job.args.get(kinds.ASKED)
    name = None if asked is None else kinds.TOLD[asked]
    if name is None:
        return told.facts
    return lambda server: [*told.facts(server), facts.phase(name, "end", server)]


LIVE_MIGRATE = Plan((_choose, _move), end=_came, fail=_stays)
