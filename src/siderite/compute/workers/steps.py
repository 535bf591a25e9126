"""The steps that plans are made of: each asks a driver for one thing and tells what follows."""

from collections.abc import Awaitable
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from siderite.compute.domain import facts
from siderite.compute.domain import shutdown as timing
from siderite.compute.domain.job import Job
from siderite.compute.domain.outcome import Done
from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.outcome import Outcome
from siderite.compute.domain.outcome import Wait
from siderite.compute.domain.power import Power
from siderite.compute.domain.server import Server
from siderite.compute.domain.server_machine import Event
from siderite.compute.domain.shutdown import Shutdown
from siderite.compute.drivers.contract import At
from siderite.compute.drivers.contract import Driver
from siderite.compute.drivers.contract import Guest
from siderite.compute.usecases.server import leaving
from siderite.compute.usecases.server.progress import Facts
from siderite.compute.usecases.server.progress import Report
from siderite.compute.usecases.server.progress import Run
from siderite.compute.usecases.server.progress import nothing
from siderite.compute.workers.hands import Hands
from siderite.compute.workers.hands import guest_of
from siderite.compute.workers.hands import place_of
from siderite.core import metrics
from siderite.core.fact import Fact


class Park(msgspec.Struct, frozen=True):
    """A wait that leaves the job changed."""

    reason: str
    again_in: float
    job: Job
    facts: Facts = nothing
    call_off: Callable[[], Awaitable[None]] | None = None
    """As of a `Wait`."""


Told = Report | Wait | Park | Failed
Step = Callable[[Hands, Run], Awaitable[Told]]
Call = Callable[[Driver, At, Guest, Run], Awaitable[Outcome]]
_UNKNOWN_S = 2.0
_SIGNALLED = "the guest was asked to shut down"


def asking(call: Call, *, power: Power | None = None) -> Step:
    """A step that asks the server's driver for one thing; `power` is what the guest then is."""

    async def step(hands: Hands, run: Run) -> Told:
        place = await place_of(hands, run.server.host)
        if isinstance(place, Failed):
            return place
        outcome = await call(place.driver, place.at, guest_of(hands, run.server), run)
        if not isinstance(outcome, Done):
            return outcome
        changes = dict(outcome.found)
        if power is not None:
            changes["power_state"] = int(power)
        return Report(changes=changes)

    return step


async def on_to_next(hands: Hands, run: Run) -> Told:
    """A step that only moves the machine to its next task."""
    return Report(Event.NEXT)


def missing(what: str) -> Failed:
    """What a step says that needs an ability which the driver lacks."""
    return Failed(f"the driver cannot {what}", elsewhere=False)


async def shut_down(hands: Hands, run: Run) -> Told:
    """Bring the guest down: signal it, look, signal again, and pull the plug when its time is over.

    The signals sent so far are in the job, so that a restart goes on with the time that is left.
    """
    place = await place_of(hands, run.server.host)
    if isinstance(place, Failed):
        return place
    driver, at, guest = place.driver, place.at, guest_of(hands, run.server)
    plan = run.job.shutdown or Shutdown(timeout_s=0.0)
    was_told = plan.began is not None
    while True:
        power = await driver.life.state(at, guest)
        if power is None:
            power = Power.SHUTDOWN  # the host has no such guest: nothing runs
        if power is Power.NOSTATE:
            return Wait("the state of the guest cannot be read: is the host reachable?", _UNKNOWN_S)
        now = hands.ctx.door.clock()
        plan = timing.rewound(plan, now)
        match timing.decide(plan, power, now):
            case timing.Down(how):
                return _down(run, replace(plan, ended=how), now)
            case timing.PullPlug(how):
                outcome = await driver.power.off(at, guest, f"{run.job.token}/off")
                if isinstance(outcome, Wait):
                    job = replace(run.job, shutdown=replace(plan, pulled=how))
                    return Park(outcome.reason, outcome.again_in, job, call_off=outcome.call_off)
                if isinstance(outcome, Failed):
                    return outcome
                return _down(run, replace(plan, ended=how), now)
            case timing.Look(again_in):
                job = replace(run.job, shutdown=plan)
                return Park(_SIGNALLED, again_in, job, nothing if was_told else _begun)
            case timing.Signal():
                token = f"{run.job.token}/signal-{plan.signals}"
                left_s = timing.left(plan, now)
                outcome = await driver.power.signal(at, guest, left_s, token)
                # The time begins with the first attempt: a host that is busy does not stop it.
                plan = replace(plan, began=now if plan.began is None else plan.began)
                if isinstance(outcome, Wait):
                    job = replace(run.job, shutdown=plan)
                    again_in = min(outcome.again_in, timing.left(plan, now))
                    return Park(outcome.reason, again_in, job, nothing if was_told else _begun)
                # A signal that could not be sent counts: the guest gets the next one, or the plug.
                plan = timing.signalled(plan, now)


def _begun(server: Server) -> list[Fact]:
    return [facts.phase("shutdown", "start", server)]


def _down(run: Run, plan: Shutdown, now: float) -> Report:
    took = 0.0 if plan.began is None else now - plan.began
    why = "as was asked for" if plan.timeout_s <= 0 else "as it was paused and could not hear them"
    after = f"after {plan.signals} signals, {why}" if plan.signals else "without a signal"
    details = {
        "clean": f"the guest shut down after {plan.signals} signals, in {took:.1f} s",
        "forced": f"powered off after {plan.signals} signals and {took:.1f} s",
        "hard": f"powered off {after}",
        "was off": "nothing ran",
    }[plan.ended or "hard"]
    job = replace(run.job, shutdown=plan).with_args(shutdown=details)
    how = plan.ended or "hard"
    metrics.shutdown(how, took)

    was_told = run.job.shutdown is not None and run.job.shutdown.began is not None

    def told(server: Server) -> list[Fact]:
        begun = [] if was_told else _begun(server)
        return [*begun, facts.shut_down(server, how, plan.signals, took)]

    return Report(
        job=job, changes={"power_state": int(Power.SHUTDOWN)}, details=details, facts=told
    )


def settled(step: Step) -> Step:
    """The same step, once an earlier move of the server is settled."""

    async def done(hands: Hands, run: Run) -> Told:
        await leaving.check(hands.ctx, run.server)
        return await step(hands, run)

    return done


def at_home(step: Step) -> Step:
    """The same step, once it is known that the guest is where its server is, with its own disk."""

    async def done(hands: Hands, run: Run) -> Told:
        await leaving.check_guest(hands.ctx, run.server)
        return await step(hands, run)

    return done


def then_next(step: Step) -> Step:
    """The same step, after which the machine goes on to its next task."""

    async def done(hands: Hands, run: Run) -> Told:
        told = await step(hands, run)
        return replace(told, event=Event.NEXT) if isinstance(told, Report) else told

    return done
