"""Making servers, and taking them away."""

import msgspec
from msgspec.structs import replace

from siderite.compute import store as rows
from siderite.compute.domain import facts
from siderite.compute.domain.job import ActionEvent
from siderite.compute.domain.outcome import Done
from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.outcome import Outcome
from siderite.compute.domain.outcome import Wait
from siderite.compute.domain.placement import MOST
from siderite.compute.domain.placement import Placement
from siderite.compute.domain.power import Power
from siderite.compute.domain.server import Fault
from siderite.compute.domain.server import Server
from siderite.compute.domain.server_machine import Event
from siderite.compute.domain.server_machine import V
from siderite.compute.usecases.placement import pending
from siderite.compute.usecases.project import quota
from siderite.compute.usecases.server import interrupting
from siderite.compute.usecases.server import leaving
from siderite.compute.usecases.server.leaving import Left
from siderite.compute.usecases.server.progress import Report
from siderite.compute.usecases.server.progress import Run
from siderite.compute.workers.ends import BEHIND
from siderite.compute.workers.ends import Plan
from siderite.compute.workers.ends import at_end
from siderite.compute.workers.ends import at_error
from siderite.compute.workers.ends import broken
from siderite.compute.workers.ends import done
from siderite.compute.workers.ends import failed
from siderite.compute.workers.ends import free_all
from siderite.compute.workers.ends import left_behind
from siderite.compute.workers.ends import left_there
from siderite.compute.workers.hands import Hands
from siderite.compute.workers.hands import NotOurs
from siderite.compute.workers.hands import guest_of
from siderite.compute.workers.hands import place_of
from siderite.compute.workers.placing import place_new
from siderite.compute.workers.steps import Told
from siderite.compute.workers.steps import asking
from siderite.core.fact import Fact
from siderite.core.times import iso

_spawn = asking(lambda driver, at, guest, run: driver.life.spawn(at, guest, run.job.token))


async def _made(hands: Hands, run: Run, told: Report) -> Report:
    changes = {
        **told.changes,
        "power_state": int(Power.RUNNING),
        "launched_at": iso(hands.ctx.door.clock()),
        "fault": None,
        "tried": [],  # where it could not be made it may well be moved to, another day
    }
    return Report(Event.DONE, ends=True, changes=changes, facts=at_end(run))


async def _not_made(hands: Hands, run: Run, why: Failed) -> Report:
    """Try another host, as often as the options allow; then it is an error."""
    server = run.server
    forced = server.request.forced_host or server.request.wanted_host
    attempts = len(server.tried) + 1
    if server.host is None or not why.elsewhere or forced:
        told = await failed(hands, run, why)
        return replace(told, ops=[*told.ops, *left_there(hands, run)])
    if attempts >= hands.ctx.settings.build_attempts:
        reason = (
            f"Exceeded maximum number of retries: {attempts} hosts were tried, the last said:"
            f" {why.reason}"
        )
        return await failed(hands, run, Failed(reason))
    since = hands.ctx.door.clock()
    undo = {"host": server.host, "node": server.node, "since": since}
    job = run.job.at_step(0).with_args(undo=undo)
    event = ActionEvent(
        "compute__do_build_and_run_instance", job.events[-1].start_time,
        iso(hands.ctx.door.clock()), "Error", server.host, why.reason,
    )  # fmt: skip
    again = ActionEvent("compute__do_build_and_run_instance", iso(hands.ctx.door.clock()))
    return Report(
        Event.RESCHEDULE,
        job=replace(job, events=[*job.events[:-1], event, again]),
        changes={
            "tried": [*server.tried, _where(server)],
            "host": None, "node": None, "driver": None, "claim": None, "availability_zone": "",
            "wait_reason": f"host {server.host} could not make it, another is sought: {why.reason}",
        },
        ops=await free_all(hands, server),
        facts=at_error(run, why.reason),
    )  # fmt: skip


def _where(server: Server) -> str | None:
    """What is not tried again: a host of bare metal has many nodes, of which one has failed."""
    return server.host if server.flavor.resource_class is None else server.node


async def _nowhere(hands: Hands, run: Run, found: Placement) -> Report:
    """No host would take it: PENDING if that is switched on, else an error."""
    server = run.server
    pends = hands.ctx.settings.use_pending_state and not server.tried
    sentence = found.sentence
    if server.tried:
        sentence = f"Exceeded maximum number of retries. {sentence}{_last_word(run)}"
    at = iso(hands.ctx.door.clock())
    job = run.job
    event = ActionEvent("conductor_schedule_and_build_instances", job.events[-1].start_time)
    examples = found.examples
    details = "; ".join(f"{node}: {why}" for node, why in sorted(examples.items()))[:4000]

    def told(server: Server) -> list[Fact]:
        return [
            facts.select_destinations("start", server),
            facts.select_destinations("error", server, refusals=examples),
            facts.no_valid_host(server, "build_instances", sentence),
        ]

    return Report(
        Event.PEND if pends else Event.FAIL,
        job=replace(job, events=[*job.events[:-1], event]),
        changes={
            "refusals": found.some(MOST) if pends else examples,
            "fault": Fault(500, sentence, at, details),
            "wait_reason": sentence if pends else None,
            "deadline": pending.deadline(hands.ctx, server) if pends else None,
        },
        ops=left_there(hands, run),
        ends=True,
        error=sentence,
        details=details,
        facts=told,
    )


def _last_word(run: Run) -> str:
    """Why it could not be made on the host that was tried last."""
    said = [event.details for event in run.job.events if event.result == "Error" and event.details]
    return f" The last one that was tried said: {said[-1]}" if said else ""


BUILD = Plan((place_new, _spawn), end=_made, fail=_not_made, no_host=_nowhere)


async def destroy_everywhere(hands: Hands, run: Run) -> Told:
    """Leave nothing of the guest on any host where it has a claim. What is on one that an
    administrator has forced down is removed when that is back, which may be never.
    """
    left_to: NotOurs | None = None
    gone, behind = list(run.job.args.get("gone", ())), list(run.job.args.get(BEHIND, ()))
    for slot, host, node, _ in await rows.claims(hands.ctx.door.store, run.server.uuid):
        if slot in gone:
            continue
        may_stay = await hands.is_forced_down(host)
        try:
            outcome = await _destroyed(hands, run, (slot, host, node))
        except NotOurs as why:
            if not may_stay:
                left_to = why
                continue
            outcome = Wait(str(why), 0.0)
        if isinstance(outcome, Wait) and may_stay:
            if outcome.call_off is not None:
                await outcome.call_off()
            behind.append((host, node))
        elif not isinstance(outcome, Done):
            return outcome
        gone.append(slot)
    if left_to is not None:
        raise NotOurs(left_to.host, **{"gone": gone, BEHIND: behind})
    return Report(job=run.job.with_args(**{BEHIND: behind})) if behind else Report()


async def _destroyed(hands: Hands, run: Run, at: tuple[str, str, str]) -> Outcome:
    slot, host, node = at
    place = await place_of(hands, host)
    if isinstance(place, Failed):
        return Done()  # a host that was removed keeps nothing of ours
    guest = guest_of(hands, run.server, node=node)
    return await place.driver.life.destroy(place.at, guest, f"{run.job.op}/{slot}")


async def _discard(hands: Hands, run: Run) -> None:
    """An image that was being made of the server will not be filled."""
    args = run.job.args
    if interrupting.DISCARD in args:
        await hands.images.discard(args[interrupting.DISCARD])
    if interrupting.REMOVE in args:
        await hands.images.remove(args[interrupting.REMOVE])


async def _gone(hands: Hands, run: Run, told: Report) -> Report:
    server = run.server
    at = iso(hands.ctx.door.clock())
    await _discard(hands, run)
    if server.shelved_image is not None:
        await hands.images.remove(server.shelved_image)
    return Report(
        Event.DONE,
        changes={
            "deleted_at": at, "terminated_at": at, "power_state": int(Power.NOSTATE), "ports": [],
            "claim": None, "move": None,
        },
        ops=[
            *await free_all(hands, server),
            rows.give_addresses(server.uuid),
            *quota.give_back(server),
            *left_behind(hands, run),
            *(() if server.move is None else (leaving.settled(server.move, "confirmed", at),)),
        ],
        ends=True,
        facts=at_end(run),
    )  # fmt: skip


async def _not_gone(hands: Hands, run: Run, why: Failed) -> Report:
    """It may yet be mended: then nothing may be left at the other end of a move."""
    await _discard(hands, run)
    told, server = await failed(hands, run, why), run.server
    ops, changes = quota.count_again(server), {**told.changes, "uncounted": False}
    noted = run.job.args.get(leaving.KIND)
    if noted is not None:
        left = msgspec.convert(noted, Left)
        ops += leaving.behind(server, left, hands.ctx.door.clock())
        changes["move"] = None
    if server.counted is not None:  # also of a resize for which no place had been found yet
        ops.append(quota.becomes(server, server.flavor))
        changes["counted"] = None
    return replace(told, ops=[*told.ops, *ops], changes=changes)


DELETE = Plan((destroy_everywhere,), end=_gone, fail=_not_gone)


async def _switched_off(hands: Hands, run: Run) -> Told:
    """Off; on a host that an administrator has forced down, when that is back."""
    host, node = run.server.host, run.server.node or ""
    if host is None:
        return Report()
    may_stay = await hands.is_forced_down(host)
    try:
        told = await _off(hands, run)
    except NotOurs:
        if not may_stay:
            raise
        told = Wait("it is left as it is", 0.0)
    if not (may_stay and isinstance(told, Wait)):
        return told
    if told.call_off is not None:
        await told.call_off()
    job = run.job.with_args(**{BEHIND: [(host, node)]})
    return Report(job=job, changes={"power_state": int(Power.NOSTATE)})


_off = asking(
    lambda driver, at, guest, run: driver.power.off(at, guest, run.job.token),
    power=Power.SHUTDOWN,
)


async def _set_aside(hands: Hands, run: Run, told: Report) -> Report:
    """It can be restored, if there is quota for it then: it is not counted any more."""
    await _discard(hands, run)
    told = await done(hands, run, told)
    behind = left_behind(hands, run, only_off=True)
    return replace(
        told, ops=[*told.ops, *quota.give_back(run.server), *behind],
        changes={**told.changes, "uncounted": True},
    )  # fmt: skip


async def _not_set_aside(hands: Hands, run: Run, why: Failed) -> Report:
    """It is as it was, but for a move that waited to be confirmed: that has ended with this."""
    await _discard(hands, run)
    is_moved = run.server.vm_state == V.RESIZED
    return await (broken if is_moved else failed)(hands, run, why)


SOFT_DELETE = Plan((_switched_off,), end=_set_aside, fail=_not_set_aside)
