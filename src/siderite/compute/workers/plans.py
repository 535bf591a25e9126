"""What each kind of work on a server does, step by step."""

from typing import Any

from msgspec.structs import replace

from siderite.compute.domain import facts
from siderite.compute.domain.outcome import Done
from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.outcome import Outcome
from siderite.compute.domain.power import Power
from siderite.compute.domain.server import Server
from siderite.compute.domain.server_machine import Event
from siderite.compute.domain.server_machine import V
from siderite.compute.drivers.contract import At
from siderite.compute.drivers.contract import Driver
from siderite.compute.drivers.contract import Guest
from siderite.compute.usecases.server import leaving
from siderite.compute.usecases.server import rebuilding
from siderite.compute.usecases.server import unwanted
from siderite.compute.usecases.server.progress import Report
from siderite.compute.usecases.server.progress import Run
from siderite.compute.workers import building
from siderite.compute.workers import ends
from siderite.compute.workers import evacuating
from siderite.compute.workers import live
from siderite.compute.workers import moving
from siderite.compute.workers.ends import Plan
from siderite.compute.workers.ends import at_end
from siderite.compute.workers.hands import Hands
from siderite.compute.workers.hands import guest_of
from siderite.compute.workers.hands import place_of
from siderite.compute.workers.placing import another_place
from siderite.compute.workers.placing import moves_to
from siderite.compute.workers.steps import Told
from siderite.compute.workers.steps import asking
from siderite.compute.workers.steps import at_home
from siderite.compute.workers.steps import missing
from siderite.compute.workers.steps import on_to_next
from siderite.compute.workers.steps import settled
from siderite.compute.workers.steps import shut_down
from siderite.compute.workers.steps import then_next
from siderite.core.fact import Fact
from siderite.core.times import iso


async def _pause(driver: Driver, at: At, guest: Guest, run: Run) -> Outcome:
    part = driver.pause
    return missing("pause") if part is None else await part.pause(at, guest, run.job.token)


async def _unpause(driver: Driver, at: At, guest: Guest, run: Run) -> Outcome:
    part = driver.pause
    return missing("unpause") if part is None else await part.unpause(at, guest, run.job.token)


async def _suspend(driver: Driver, at: At, guest: Guest, run: Run) -> Outcome:
    part = driver.suspend
    return missing("suspend") if part is None else await part.suspend(at, guest, run.job.token)


async def _resume(driver: Driver, at: At, guest: Guest, run: Run) -> Outcome:
    part = driver.suspend
    return missing("resume") if part is None else await part.resume(at, guest, run.job.token)


async def _rescue(driver: Driver, at: At, guest: Guest, run: Run) -> Outcome:
    part, asked = driver.rescue, run.job.args
    if part is None:
        return missing("rescue")
    guest = replace(guest, admin_password=asked["password"])  # as its user was told
    return await part.rescue(at, guest, asked.get("image"), run.job.token)


async def _unrescue(driver: Driver, at: At, guest: Guest, run: Run) -> Outcome:
    part = driver.rescue
    return missing("unrescue") if part is None else await part.unrescue(at, guest, run.job.token)


async def _snapshot(driver: Driver, at: At, guest: Guest, run: Run) -> Outcome:
    part, image = driver.snapshot, run.job.args["image"]
    if part is None:
        return missing("make images of servers")
    return await part.snapshot(at, guest, image, run.job.token)


async def _password(driver: Driver, at: At, guest: Guest, run: Run) -> Outcome:
    part, word = driver.password, run.job.args["password"]
    if part is None:
        return missing("set passwords")
    return await part.set_password(at, guest, word, run.job.token)


_on = asking(lambda d, at, guest, run: d.power.on(at, guest, run.job.token), power=Power.RUNNING)
_reset = asking(
    lambda d, at, guest, run: d.power.reset(at, guest, run.job.token), power=Power.RUNNING
)


# Rebuild


async def _anew(hands: Hands, run: Run) -> Told:
    place = await place_of(hands, run.server.host)
    if isinstance(place, Failed):
        return place
    guest = replace(
        guest_of(hands, run.server), keeps_ephemeral=bool(run.job.args.get(rebuilding.KEEPS))
    )
    outcome = await place.driver.life.rebuild(place.at, guest, run.job.token)
    return Report(changes=dict(outcome.found)) if isinstance(outcome, Done) else outcome


async def _rebuilt(hands: Hands, run: Run, told: Report) -> Report:
    runs = run.server.vm_state != V.STOPPED
    changes: dict[str, Any] = {
        **told.changes,
        "power_state": int(Power.RUNNING if runs else Power.SHUTDOWN),
        "launched_at": iso(hands.ctx.door.clock()),
        "fault": None,
    }
    return Report(
        Event.DONE, ends=True, changes=changes, facts=at_end(run),
        details=run.job.args.get("shutdown"),
    )  # fmt: skip


# Images of servers


async def _stored(hands: Hands, run: Run, told: Report) -> Report:
    return Report(Event.DONE, ends=True, facts=at_end(run))


async def _not_stored(hands: Hands, run: Run, why: Failed) -> Report:
    await hands.images.discard(run.job.args["image"])
    return await ends.failed(hands, run, why)


async def _backed_up(hands: Hands, run: Run, told: Report) -> Report:
    """Of each kind of backup the newest are kept, as many as were asked for."""
    kind, rotation = run.job.args["backup_type"], run.job.args["rotation"]
    every = [*run.server.backups.get(kind, []), run.job.args["image"]]
    old, kept = every[: max(0, len(every) - rotation)], every[max(0, len(every) - rotation) :]
    for image in old:
        await hands.images.remove(image)
    stored = await _stored(hands, run, told)
    return replace(stored, changes={"backups": {**run.server.backups, kind: kept}})


# Shelving


async def _shelve_disk(hands: Hands, run: Run) -> Told:
    told = await asking(_snapshot)(hands, run)
    if not isinstance(told, Report):
        return told
    image, old = run.job.args["image"], run.server.shelved_image
    if old not in (None, image):  # it was shelved, and said to be active by an administrator
        await hands.images.remove(old)
    changes = {"shelved_image": image, "shelved_at": iso(hands.ctx.door.clock())}
    if hands.ctx.settings.shelved_offload_time_s != 0:
        return Report(ends=True, changes=changes)

    def announced(server: Server) -> list[Fact]:
        return [
            facts.phase("shelve", "end", server),
            facts.phase("shelve_offload", "start", server),
        ]

    return Report(Event.OFFLOAD, changes=changes, facts=announced)


async def _not_shelved(hands: Hands, run: Run, why: Failed) -> Report:
    """It stays as it is; so does its image, once that is filled."""
    if run.server.vm_state == V.SHELVED:
        return await ends.failed(hands, run, why)
    return await _not_stored(hands, run, why)


async def _shelved(hands: Hands, run: Run, told: Report) -> Report:
    if told.ends:
        return replace(told, event=Event.DONE, facts=at_end(run))
    return await _offloaded(hands, run, told)


async def _surely_off(hands: Hands, run: Run) -> Told:
    """It was shut down when it was shelved; a host that an administrator has forced down is not
    asked whether that is so still.
    """
    if await hands.is_forced_down(run.server.host or ""):
        return Report()
    return await shut_down(hands, run)


async def _offloaded(hands: Hands, run: Run, told: Report) -> Report:
    return Report(
        Event.DONE,
        ends=True,
        changes={
            "host": None, "node": None, "claim": None, "power_state": int(Power.NOSTATE),
            "fault": None,
        },
        ops=[*await ends.free_all(hands, run.server), *ends.left_behind(hands, run)],
        facts=lambda server: [facts.phase("shelve_offload", "end", server)],
        details=run.job.args.get("shutdown"),
    )  # fmt: skip


async def _place_again(hands: Hands, run: Run) -> Told:
    if run.server.host is not None:
        await leaving.check(hands.ctx, run.server)
        return Report(Event.NEXT)
    args = run.job.args
    _, found = await another_place(hands, run, host=args.get("host"), zone=args.get("zone"))
    return replace(found, event=Event.NEXT)


async def _back(hands: Hands, run: Run) -> Told:
    """From its image, where it has a place now; or as it is, if it never left its host. One that
    was interrupted when it was about to leave may have nothing there any more.
    """
    server = run.server
    to = {"host": server.host, "node": server.node} if server.host else run.job.args["to"]
    there = await place_of(hands, to["host"])
    if isinstance(there, Failed):
        return there
    guest = guest_of(
        hands, server, node=to["node"], zone=to.get("zone"), image=server.shelved_image,
        is_running=True,
    )  # fmt: skip
    if server.host is not None and await there.driver.life.state(there.at, guest) is not None:
        return await _on(hands, run)
    outcome = await there.driver.life.spawn(there.at, guest, run.job.token)
    return Report(changes=dict(outcome.found)) if isinstance(outcome, Done) else outcome


async def _unshelved(hands: Hands, run: Run, told: Report) -> Report:
    image, now = run.server.shelved_image, hands.ctx.door.clock()
    ops = [] if image is None else [unwanted.remove(run.server, image, now)]
    moved = {} if run.server.host is not None else moves_to(run)
    changes: dict[str, Any] = {
        **told.changes, **moved, "power_state": int(Power.RUNNING), "shelved_image": None,
        "shelved_at": None, "launched_at": iso(now), "fault": None,
    }  # fmt: skip
    return Report(Event.DONE, ends=True, changes=changes, facts=at_end(run), ops=ops)


async def _restored(hands: Hands, run: Run) -> Told:
    """One that was shelved when it was deleted is that again; others run."""
    if run.server.shelved_image is None or run.server.shelved_at is None:
        return await _on(hands, run)
    return Report(Event.OFFLOAD if run.server.host is None else Event.DONE_SHELVED)


async def _not_unshelved(hands: Hands, run: Run, why: Failed) -> Report:
    """It stays shelved; what was made and claimed for it is removed."""
    return ends.failure(run, why.reason, Event.FAIL, ends.left_there(hands, run))


PLANS: dict[str, Plan] = {
    "build": building.BUILD,
    "delete": building.DELETE,
    "soft_delete": building.SOFT_DELETE,
    "restore": Plan((at_home(_restored),)),
    "start": Plan((at_home(_on),)),
    "stop": Plan((shut_down,)),
    "force_stop": Plan((shut_down,)),
    "reboot": Plan((at_home(shut_down), _on)),
    "reboot_hard": Plan((settled(_reset),)),
    "pause": Plan((asking(_pause, power=Power.PAUSED),)),
    "unpause": Plan((asking(_unpause, power=Power.RUNNING),)),
    "suspend": Plan((asking(_suspend, power=Power.SUSPENDED),)),
    "resume": Plan((asking(_resume, power=Power.RUNNING),)),
    "rescue": Plan((settled(shut_down), asking(_rescue, power=Power.RUNNING)), fail=ends.broken),
    "unrescue": Plan((asking(_unrescue, power=Power.RUNNING),), fail=ends.broken),
    "rebuild": Plan((settled(then_next(shut_down)), _anew), end=_rebuilt, fail=ends.broken),
    "resize": moving.RESIZE,
    "migrate": moving.RESIZE,
    "confirm_resize": moving.CONFIRM,
    "revert_resize": moving.REVERT,
    "live_migrate": live.LIVE_MIGRATE,
    "evacuate": evacuating.EVACUATE,
    "create_image": Plan((on_to_next, asking(_snapshot)), end=_stored, fail=_not_stored),
    "create_backup": Plan((on_to_next, asking(_snapshot)), end=_backed_up, fail=_not_stored),
    "shelve": Plan(
        (at_home(then_next(shut_down)), _shelve_disk, building.destroy_everywhere),
        end=_shelved, fail=_not_shelved,
    ),
    "shelve_offload": Plan((_surely_off, building.destroy_everywhere), end=_offloaded),
    "unshelve": Plan((_place_again, _back), end=_unshelved, fail=_not_unshelved),
    "change_password": Plan((asking(_password),)),
}  # fmt: skip
"""By the kind of work."""
