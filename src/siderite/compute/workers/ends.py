"""How plans end, well or not: what the server then shows, and what else becomes true with it."""

from collections.abc import Awaitable
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from siderite.compute import store as rows
from siderite.compute.domain import facts
from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.placement import Placement
from siderite.compute.domain.power_truth import Policy
from siderite.compute.domain.power_truth import policy_of
from siderite.compute.domain.server import Server
from siderite.compute.domain.server_machine import SERVER
from siderite.compute.domain.server_machine import Event
from siderite.compute.domain.server_machine import V
from siderite.compute.usecases.server import leaving
from siderite.compute.usecases.server import migrations
from siderite.compute.usecases.server.kinds import fact_of
from siderite.compute.usecases.server.progress import Facts
from siderite.compute.usecases.server.progress import Report
from siderite.compute.usecases.server.progress import Run
from siderite.compute.usecases.server.progress import nothing
from siderite.compute.workers.hands import Hands
from siderite.compute.workers.steps import Step
from siderite.core.fact import Fact
from siderite.core.store import Op

End = Callable[[Hands, Run, Report], Awaitable[Report]]
Fail = Callable[[Hands, Run, Failed], Awaitable[Report]]
BEHIND = "behind"
"""Of the work: hosts and nodes that a guest is left on, as they are down."""
NoHost = Callable[[Hands, Run, Placement], Awaitable[Report]]


def at_end(run: Run) -> Facts:
    """The fact that the action is over."""
    return _told(run, "end")


def at_error(run: Run, why: str) -> Facts:
    """The fact that the action failed."""
    return _told(run, "error", why)


def _told(run: Run, phase: str, why: str | None = None) -> Facts:
    name, asked = fact_of(run.kind, run.server), run.job.args
    if name is None or (run.kind == "build" and run.job.step == 0):  # it has not begun
        return nothing
    return lambda server: [facts.phase(name, phase, server, why=why, asked=asked)]


async def done(hands: Hands, run: Run, told: Report) -> Report:
    """The plain end: the machine's `done`."""
    details = told.details or run.job.args.get("shutdown")
    over = at_end(run)
    return replace(
        told, event=told.event or Event.DONE, ends=True, details=details,
        facts=lambda server: [*told.facts(server), *over(server)],
    )  # fmt: skip


async def failed(hands: Hands, run: Run, why: Failed) -> Report:
    """The plain failure: the server is as it was, with a fault that says what went wrong. One whose
    guest was shut down for it is stopped, unless it is to be put back where that is noticed.
    """
    plan, server = run.job.shutdown, run.server
    is_off = plan is not None and plan.ended is not None
    policy = policy_of(server.metadata, hands.ctx.settings.power_policy)
    is_put_back = server.vm_state == V.ACTIVE and policy is Policy.RECORD
    if is_off and not is_put_back and SERVER.can(server.state, Event.FAIL_STOPPED):
        return failure(run, why.reason, Event.FAIL_STOPPED)
    return failure(run, why.reason, Event.FAIL)


async def broken(hands: Hands, run: Run, why: Failed) -> Report:
    """A failure half-way: the server is in error."""
    return failure(run, why.reason, Event.BREAK)


def failure(run: Run, why: str, event: str, ops: tuple[Op, ...] = (), **changes: Any) -> Report:
    """The end of an action that failed."""
    return Report(
        event, ends=True, error=f"{run.job.action} failed: {why}", facts=at_error(run, why),
        ops=ops, changes=changes,
    )  # fmt: skip


async def no_host(hands: Hands, run: Run, found: Placement) -> Report:
    """No host would take a server that has a place: it stays as it is."""
    told = failure(run, found.sentence, Event.FAIL, refusals=found.examples)

    def announced(server: Server) -> list[Fact]:
        what = "rebuild_server" if run.kind == "evacuate" else "migrate_server"
        return [
            facts.select_destinations("start", server),
            facts.select_destinations("error", server, refusals=found.examples),
            facts.no_valid_host(server, what, found.sentence),
            *at_error(run, found.sentence)(server),
        ]

    return replace(told, facts=announced)


async def free_all(hands: Hands, server: Server, *, but: str | None = None) -> list[Op]:
    """The ops that give back the server's claims; each hypervisor row only once."""
    found = await rows.claims(hands.ctx.door.store, server.uuid)
    return rows.free_many(server.uuid, [claim for claim in found if claim[0] != but])


async def free_own(hands: Hands, run: Run) -> list[Op]:
    """The ops that give back what the work itself has claimed; what an earlier move left claimed is
    free when that is removed.
    """
    found = await rows.claims(hands.ctx.door.store, run.server.uuid)
    own = [claim for claim in found if claim[0] == run.job.args.get("claim")]
    return rows.free_many(run.server.uuid, own)


def left_there(hands: Hands, run: Run) -> tuple[Op, ...]:
    """The work that removes what was made of the server where it did not come to be, and gives the
    room back.
    """
    left = leaving.of(run.server, run.job)
    if left is None:
        return ()
    return tuple(leaving.behind(run.server, left, hands.ctx.door.clock()))


def left_behind(hands: Hands, run: Run, *, only_off: bool = False) -> list[Op]:
    """The work on what was left on hosts that are down, one for each: a server that is resized on
    its host has two claims there.
    """
    behind = dict(run.job.args.get(BEHIND, ()))
    return [
        migrations.leaves_behind(hands.ctx, run.server, host, node, only_off=only_off)
        for host, node in behind.items()
    ]


class Plan(msgspec.Struct, frozen=True):
    """What a kind of work does, and how it ends."""

    steps: tuple[Step, ...]
    end: End = done
    fail: Fail = failed
    no_host: NoHost = no_host
