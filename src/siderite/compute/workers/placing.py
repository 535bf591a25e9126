"""Steps that find a place and claim it, in the commit that moves the server on."""

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from siderite.compute import store as rows
from siderite.compute.domain import facts
from siderite.compute.domain.flavor import Flavor
from siderite.compute.domain.host import Hypervisor
from siderite.compute.domain.outcome import Done
from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.outcome import Wait
from siderite.compute.domain.placement import Placement
from siderite.compute.domain.server import Server
from siderite.compute.domain.server import amount_of
from siderite.compute.domain.server_machine import Event
from siderite.compute.usecases.placement import placing
from siderite.compute.usecases.placement.placing import NotYet
from siderite.compute.usecases.server import leaving
from siderite.compute.usecases.server import migrations
from siderite.compute.usecases.server.progress import Report
from siderite.compute.usecases.server.progress import Run
from siderite.compute.workers.hands import Hands
from siderite.compute.workers.hands import guest_of
from siderite.compute.workers.hands import place_of
from siderite.compute.workers.host_watch import ask_silent
from siderite.compute.workers.steps import Told
from siderite.core.fact import Fact
from siderite.core.store import Op

_SOME = 5
_UNDONE_S = 30.0
"""So long a host that does not answer is waited for where a server could not be made."""
_TIDIED_S = 120.0
"""So long an evacuation waits for what an earlier one left where it leads."""


class NoValidHost(Exception):
    """No host will do: for the handler, which knows what follows from that."""

    def __init__(self, placement: Placement) -> None:
        super().__init__(placement.sentence)
        self.placement = placement


async def undo_elsewhere(hands: Hands, run: Run) -> Told | None:
    """Leave nothing of a guest on the host where making it failed; None when that is done."""
    where = run.job.args.get("undo")
    if where is None:
        return None
    place = await place_of(hands, where["host"])
    if isinstance(place, Failed):
        return None
    guest = guest_of(hands, run.server, node=where["node"])
    outcome = await place.driver.life.destroy(place.at, guest, f"{run.job.op}/undo")
    return None if isinstance(outcome, Done) else outcome


async def _find(hands: Hands, server: Server, **how: Any) -> Placement:
    found = await placing.find_place(hands.ctx, server, **how)
    if found.is_for_want_of_news:
        await ask_silent(hands)
        found = await placing.find_place(hands.ctx, server, **how)
    return found


async def place_new(hands: Hands, run: Run) -> Told:
    """The first place of a server that is to be made. A host that could neither make it nor clear
    away what it has of it keeps it from no other: that is removed in its own time.
    """
    undoing, left = await undo_elsewhere(hands, run), leaving.of(run.server, run.job)
    behind: Sequence[Op] = ()
    if isinstance(undoing, Wait) and undoing.call_off is None:
        undoing = _waited_for(undoing, run, hands.ctx.door.clock())
    if left is not None and isinstance(undoing, Failed):
        behind = leaving.behind(run.server, left, hands.ctx.door.clock())
    elif undoing is not None:
        return undoing
    turn = await placing.turn(hands.ctx, run.server)
    found = await _find(hands, run.server)
    if not found.ranked:
        raise NoValidHost(found)
    at = found.ranked[0]
    claim = f"{run.job.op}:{len(run.server.tried)}"

    def told(server: Server) -> list[Fact]:
        return [
            facts.select_destinations("start", server),
            facts.select_destinations("end", server, host=at.host),
            facts.phase("create", "start", server),
        ]

    return Report(
        Event.NEXT,
        job=run.job.with_args(undo=None),
        changes={**lives_at(at, claim), "refusals": {}, "wait_reason": "is being made"},
        ops=[
            *turn,
            *behind,
            *rows.claim(
                run.server.uuid, claim, host=at.host, node=at.node, amount=run.server.amount
            ),
        ],
        facts=told,
    )


def _waited_for(undoing: Wait, run: Run, now: float) -> Wait | Failed:
    """A host that does not get to clearing away is waited for, but not for long."""
    left_s = run.job.args["undo"].get("since", 0.0) + _UNDONE_S - now
    if left_s <= 0:
        return Failed(undoing.reason)
    return Wait(undoing.reason, min(undoing.again_in, left_s))


def lives_at(at: Hypervisor, claim: str) -> dict[str, Any]:
    """The fields of a server that say where it is."""
    return {
        "host": at.host,
        "node": at.node,
        "driver": at.driver,
        "availability_zone": at.zone,
        "claim": claim,
    }


async def another_place(
    hands: Hands,
    run: Run,
    *,
    flavor: Flavor | None = None,
    host: str | None = None,
    zone: str | None = None,
    avoid: Mapping[str, str] | None = None,
) -> tuple[Hypervisor, Report]:
    """A further place for a server that has one (or had), and the claim of it."""
    if run.kind != "evacuate":  # which cannot wait for a host that is down
        await leaving.check(hands.ctx, run.server)
    # What it left is removed with all its files while it has no host: those may be of one folder.
    alone = await migrations.untouched(hands.ctx, run.server) if run.server.host is None else ()
    turn = await placing.turn(hands.ctx, run.server)
    found = await _find(
        hands, run.server, flavor=flavor, host=host, zone=zone, avoid=avoid,
        is_move=True, is_flight=run.kind == "evacuate",
    )  # fmt: skip
    if not found.ranked:
        raise NoValidHost(found)
    at, over = await _tidy(hands, run, found)
    claim = f"{run.job.op}:new"
    ops = rows.claim(
        run.server.uuid, claim, host=at.host, node=at.node,
        amount=amount_of(flavor or run.server.flavor),
    )  # fmt: skip
    job = run.job.with_args(
        to={"host": at.host, "node": at.node, "driver": at.driver, "zone": at.zone}, claim=claim
    )
    return at, Report(job=job, ops=[*turn, *alone, *ops, *over])


async def _tidy(hands: Hands, run: Run, found: Placement) -> tuple[Hypervisor, Sequence[Op]]:
    """The best of some places that have nothing of the server from before an evacuation or from a
    move that failed: that is removed as soon as its host is back, and must not be taken for what
    comes now.

    To remove it, the host where the server is may have to be asked. One that is to leave there as
    that is down does not wait for it for ever: it takes over what there is, which is then nobody
    else's to remove.
    """
    for at in found.ranked[:_SOME]:
        if not await _is_left_at(hands, run, at.host):
            return at, ()
    at = found.ranked[0]
    if run.kind == "evacuate" and hands.ctx.door.clock() >= run.held.created_at + _TIDIED_S:
        return at, await migrations.takes_over(hands.ctx, run.server, at.host)
    raise NotYet(f"what was left of it on host {at.host} is to be removed first")


async def _is_left_at(hands: Hands, run: Run, host: str) -> bool:
    if await migrations.is_behind(hands.ctx, run.server, host):
        return True
    # What an evacuation has left is not removed while the host that it flees from is down.
    return run.kind != "evacuate" and await leaving.is_left_at(hands.ctx, run.server, host)


def moves_to(run: Run) -> dict[str, Any]:
    """The fields of a server that has come to the place that its job claimed."""
    to = run.job.args["to"]
    return {
        "host": to["host"],
        "node": to["node"],
        "driver": to["driver"],
        "availability_zone": to["zone"],
        "claim": run.job.args["claim"],
    }
