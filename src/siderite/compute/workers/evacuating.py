"""Servers that leave a host that is down."""

from msgspec.structs import replace

from siderite.compute import store as rows
from siderite.compute.domain.outcome import Done
from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.outcome import Wait
from siderite.compute.domain.power import Power
from siderite.compute.domain.server_machine import Event
from siderite.compute.domain.server_machine import V
from siderite.compute.usecases.server import migrations
from siderite.compute.usecases.server.progress import Report
from siderite.compute.usecases.server.progress import Run
from siderite.compute.workers import ends
from siderite.compute.workers.ends import Plan
from siderite.compute.workers.hands import Hands
from siderite.compute.workers.hands import guest_of
from siderite.compute.workers.hands import place_of
from siderite.compute.workers.host_watch import answers
from siderite.compute.workers.moving import came
from siderite.compute.workers.moving import move_to
from siderite.compute.workers.moving import stays
from siderite.compute.workers.placing import another_place
from siderite.compute.workers.steps import Told


async def _off_elsewhere(hands: Hands, run: Run) -> Wait | Failed | None:
    """Nothing of the server may run on where an earlier move of it was given up: on storage that
    hosts share, two guests would write to one disk. What is left there is removed later.
    """
    for slot, name, node, _ in await rows.claims(hands.ctx.door.store, run.server.uuid):
        if slot == run.server.claim or await hands.is_forced_down(name):
            continue
        place = await place_of(hands, name)
        if isinstance(place, Failed):
            continue
        guest = guest_of(hands, run.server, node=node)
        outcome = await place.driver.power.off(place.at, guest, f"{run.job.op}/{slot}/off")
        if isinstance(outcome, Wait):
            return outcome
        if isinstance(outcome, Failed):
            return Failed(
                f"the guest may run on host {name}, where an earlier move led, and cannot be"
                f" switched off there: {outcome.reason.rstrip('.')}; if that host is not to be"
                " trusted, force it down first"
            )
    return None


async def _choose_refuge(hands: Hands, run: Run) -> Told:
    server = run.server
    if await answers(hands, server.host or ""):
        return Failed(
            f"host {server.host} answers again, and may run its guest; if it is not to be trusted,"
            " force it down first"
        )
    runs_on = await _off_elsewhere(hands, run)
    if runs_on is not None:
        return runs_on
    at, found = await another_place(
        hands, run, host=run.job.args.get("host"), avoid={server.host or "": "it is down"}
    )
    move = move_to(run, "evacuation", at, server.flavor)
    begun = migrations.begins(hands.ctx, server, move, "accepted")
    return replace(found, event=Event.NEXT, ops=[*found.ops, begun])


async def _make_there(hands: Hands, run: Run) -> Told:
    to = run.job.args["to"]
    there = await place_of(hands, to["host"])
    if isinstance(there, Failed):
        return there
    guest = guest_of(
        hands, run.server, node=to["node"], zone=to["zone"], is_running=_runs_after(run)
    )
    outcome = await there.driver.life.spawn(there.at, guest, run.job.token)
    return Report(changes=dict(outcome.found)) if isinstance(outcome, Done) else outcome


def _runs_after(run: Run) -> bool:
    return run.server.vm_state != V.STOPPED and not run.job.args.get("stopped")


async def _evacuated(hands: Hands, run: Run, told: Report) -> Report:
    arrived = await came(hands, run, told)
    old, runs = run.server, _runs_after(run)
    power = int(Power.RUNNING if runs else Power.SHUTDOWN)
    return replace(
        arrived, event=Event.DONE if runs else Event.DONE_STOPPED,
        changes={**arrived.changes, "power_state": power},
        ops=[
            *arrived.ops,
            migrations.leaves_behind(hands.ctx, old, old.host or "", old.node or ""),
        ],
    )  # fmt: skip


async def _not_evacuated(hands: Hands, run: Run, why: Failed) -> Report:
    """Its files there can only be told from those of its own host when that is back."""
    told = await stays(hands, run, why)
    return replace(told, ops=[*told.ops, *ends.left_there(hands, run)])


EVACUATE = Plan((_choose_refuge, _make_there), end=_evacuated, fail=_not_evacuated)
