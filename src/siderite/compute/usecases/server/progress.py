"""What workers report: each report is one commit that moves the server, its job, its action and its
facts on together (`core.report`).
"""

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import msgspec

from siderite.compute import store as rows
from siderite.compute.domain.host import Host
from siderite.compute.domain.job import ActionEvent
from siderite.compute.domain.job import Job
from siderite.compute.domain.job import events_text
from siderite.compute.domain.job import job_of
from siderite.compute.domain.job import job_text
from siderite.compute.domain.server import Fault
from siderite.compute.domain.server import Server
from siderite.compute.store import SERVERS
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.fleet import hosts
from siderite.core import work
from siderite.core.fact import Fact
from siderite.core.report import report as commit_report
from siderite.core.store import Op
from siderite.core.times import iso
from siderite.core.transition import Cause
from siderite.core.transition import Change
from siderite.core.transition import apply
from siderite.core.work import Work


class Run(msgspec.Struct, frozen=True):
    """What a worker knows of its work: the lease, the server and the job as last committed."""

    held: Work
    server: Server
    job: Job

    @property
    def kind(self) -> str:
        """What is being done."""
        return self.held.kind.removeprefix("server.")


Facts = Callable[[Server], list[Fact]]
"""What is announced of a server, as it is then."""


def nothing(server: Server) -> list[Fact]:
    """No facts."""
    return []


class Report(msgspec.Struct, frozen=True):
    """What becomes true: the machine's event (None: only the job goes on), and all that goes with
    it. `error` ends the action as failed; `details` say more of how it ended.
    """

    event: str | None = None
    job: Job | None = None
    changes: dict[str, Any] = msgspec.field(default_factory=dict)
    ops: Sequence[Op] = ()
    facts: Facts = nothing
    ends: bool = False
    error: str | None = None
    details: str | None = None


async def load(ctx: Context, uuid: str) -> Server | None:
    """A server."""
    return await SERVERS.get(ctx.door.store, uuid)


async def load_for(ctx: Context, held: Work) -> Server | None:
    """The server of a piece of work."""
    return held.known if isinstance(held.known, Server) else await load(ctx, held.machine)


async def _report(ctx: Context, run: Run, decide: Callable[[Change, Server], Server]) -> Server:
    """Commit what `decide` says of the server; again if only the server has changed."""

    async def decided(change: Change, server: Server) -> Server:
        return decide(change, server)

    return await commit_report(
        ctx.door, run.held, SERVERS, run.server, decide=decided, still=_may_try_again
    )


def _may_try_again(known: Server, fresh: Server) -> bool:
    # Of the same version: it was something else that has changed, a host's room for one.
    return fresh.version != known.version and fresh.state == known.state


async def report(ctx: Context, run: Run, told: Report) -> Run:
    """One commit of progress, or of the end."""
    job = told.job or run.job
    events = _closed(ctx, run, told) if told.ends else job.events

    def decide(change: Change, server: Server) -> Server:
        changes = dict(told.changes)
        if told.error is not None:
            at = iso(change.now)
            changes.setdefault("fault", Fault(500, told.error, at, told.details))
        if told.event is not None:
            applied = apply(
                change, ctx.rules, server, told.event, job=job_text(job), held=run.held,
                kind=run.held.kind, changes=changes,
            )  # fmt: skip
            after = applied.value
        else:
            after = server
            if changes or told.ops:  # whoever decided without knowing of these must decide again
                after = server.changed(change.now, changes)
                change.put(SERVERS.swap(server, after))
            change.put(work.keep(run.held, job=job_text(job)))
        for op in told.ops:
            change.put(op)
        if told.ends and job.request_id is not None:
            change.put(_action(change, server, job, events, failed=told.error is not None))
        change.tell(*told.facts(after))
        return after

    server = await _report(ctx, run, decide)
    deadline = run.held.deadline
    if told.event is not None and not told.ends:
        state = ctx.rules.machine.states[server.state]
        deadline = ctx.door.clock() + (state.deadline_s or 0.0) * ctx.settings.deadline_scale
    return Run(msgspec.structs.replace(run.held, deadline=deadline), server, job)


def _closed(ctx: Context, run: Run, told: Report) -> list[ActionEvent]:
    """The action's events, the last one ended."""
    job = told.job or run.job
    at = iso(ctx.door.clock())
    result = "Error" if told.error is not None else "Success"
    details = told.error if told.error is not None else told.details
    more = told.details if told.error is not None else None
    host = told.changes.get("host") or run.server.host
    return [
        *job.events[:-1],
        *(
            msgspec.structs.replace(
                event,
                finish_time=at,
                result=result,
                host=host or event.host,
                details=details,
                traceback=more,
            )
            for event in job.events[-1:]
        ),
    ]


def _action(
    change: Change, server: Server, job: Job, events: list[ActionEvent], *, failed: bool
) -> Op:
    return rows.action_goes_on(
        server.uuid, job.request_id or "", job.action, at=iso(change.now),
        message="Error" if failed else None, events=events_text(events),
    )  # fmt: skip


async def waits(
    ctx: Context,
    run: Run,
    job: Job,
    reason: str,
    again_in: float,
    *,
    facts: Facts = nothing,
) -> None:
    """Nothing moves yet: let go of the lease for a while, and show why."""

    def decide(change: Change, server: Server) -> Server:
        after = server
        if server.wait_reason != reason:
            after = server.changed(change.now, {"wait_reason": reason})
            change.put(SERVERS.swap(server, after))
        change.put(work.park(run.held, job=job_text(job), due=change.now + again_in, reason=reason))
        change.tell(*facts(after))
        return after

    await _report(ctx, run, decide)


async def pass_on(ctx: Context, run: Run, job: Job, host: Host) -> None:
    """This step is for workers of the host's conductor group; shown on the server only if there are
    none, since they take it at once.
    """
    reason, is_served = await hosts.why_passed_on(ctx, host)

    def decide(change: Change, server: Server) -> Server:
        after = server
        if not is_served and server.wait_reason != reason:
            after = server.changed(change.now, {"wait_reason": reason})
            change.put(SERVERS.swap(server, after))
        hosts.pass_on(change, run.held, host, job_text(job), reason)
        return after

    await _report(ctx, run, decide)


async def goes_on(ctx: Context, run: Run, job: Job, reason: str) -> Run:
    """It takes its time, here: keep the lease, and show why."""
    if reason == run.server.wait_reason and job == run.job:
        return run

    def decide(change: Change, server: Server) -> Server:
        after = server.changed(change.now, {"wait_reason": reason})
        change.put(SERVERS.swap(server, after))
        change.put(work.keep(run.held, job=job_text(job), reason=reason))
        return after

    server = await _report(ctx, run, decide)
    return Run(msgspec.structs.replace(run.held, reason=reason), server, job)


async def is_hurried(ctx: Context, run: Run) -> bool:
    """Whether we lost the lease only to the same step, of which more was asked meanwhile."""
    for item in await work.of_machine(ctx.door.store, run.held.machine):
        if item.lane == run.held.lane and item.kind == run.held.kind:
            return item.owner == run.held.owner and job_of(item.job).token == run.job.token
    return False


async def abandon(ctx: Context, held: Work) -> None:
    """The server is gone, and its work with it."""
    change = ctx.door.change(Cause(held.request_id))
    change.put(work.done(held))
    await ctx.door.commit(change)
