"""Removes what a move that was given up, or failed, has left at its other end."""

from collections.abc import Awaitable
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from siderite.compute.domain.outcome import Done
from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.outcome import Outcome
from siderite.compute.domain.outcome import Wait
from siderite.compute.domain.server import Move
from siderite.compute.domain.server import Server
from siderite.compute.domain.server_machine import V
from siderite.compute.drivers.contract import Guest
from siderite.compute.usecases.server import due
from siderite.compute.usecases.server import leaving
from siderite.compute.usecases.server import migrations
from siderite.compute.usecases.server import progress
from siderite.compute.usecases.server.leaving import Left
from siderite.compute.workers.hands import Hands
from siderite.compute.workers.hands import NotOurs
from siderite.compute.workers.hands import Place
from siderite.compute.workers.hands import apart
from siderite.compute.workers.hands import guest_of
from siderite.compute.workers.hands import is_at_home
from siderite.compute.workers.hands import is_lost
from siderite.compute.workers.hands import place_of
from siderite.compute.workers.holding import to_its_end
from siderite.compute.workers.steps import missing
from siderite.core.log import get_logger
from siderite.core.work import Work

log = get_logger("leaving")

_BUSY_S = 2.0
_AGAIN_S = 10.0
_HELD_S = 20.0
"""So long at most it holds the server up; what is not over then is called off, to be tried again.
"""
_LAST_S = 60.0
"""After its time, so long the host where the server is now is waited for."""
_LOST = "lost"
"""Of what was found: hosts and nodes where it is removed when they are back."""


class LeftWork:
    """The handler. Of a server that is deleted meanwhile nothing stays: its deletion has removed
    what is where it had a claim, and this is where it may have had none any more.
    """

    def __init__(self, hands: Hands) -> None:
        self._hands = hands

    async def handle(self, held: Work) -> None:
        """Remove it, if the server is at rest, or what is asked of it waits for that."""
        ctx = self._hands.ctx
        left = msgspec.json.decode(held.job, type=Left)
        server = await progress.load(ctx, held.machine)
        if server is None:
            await progress.abandon(ctx, held)
            return
        if server.task_state is not None and not (
            _is_on_its_own(server, left) or await leaving.is_waited_for(ctx, server, left.how)
        ):
            await due.later(ctx, held, f"the server is {server.task_state}", _BUSY_S)
            return
        late_s = ctx.door.clock() - held.deadline
        try:
            if late_s < 0:
                outcome = await self._remove(server, left)
            else:
                outcome = await self._when_it_is_back(server, left, is_last=late_s >= _LAST_S)
        except NotOurs as why:
            await due.pass_on(ctx, held, why.host)
            return
        if isinstance(outcome, Done):
            changes: dict[str, Any] = dict(outcome.found)
            lost = changes.pop(_LOST, ())
            behind = [migrations.leaves_behind(ctx, server, *at) for at in lost]
            await leaving.settle(ctx, held, server, left, changes=changes, behind=behind)
            return
        again_s = _AGAIN_S if isinstance(outcome, Failed) else outcome.again_in
        await due.later(ctx, held, outcome.reason, again_s)

    async def _remove(self, server: Server, left: Left) -> Outcome:
        token = f"{left.token}/left"
        source = None if left.move is None else left.move.source_host
        home = None if server.deleted else server.host
        waits = await apart(self._hands, left.host, home, source)
        if waits is not None:
            return waits
        if server.deleted or server.claim != left.claim or left.how == "leave":
            return await self._leave(server, left, token)
        if left.move is not None:
            return await self._held(partial(self._end_resize, server, left, left.move, token))
        return await self._held(partial(self._abort, server, left))

    async def _held(self, ask: Callable[[], Awaitable[Outcome]]) -> Outcome:
        """Nothing else is begun with the server before this has ended: what is removed may be in
        the folder where its next files are, on storage that hosts share.
        """
        return await to_its_end(self._hands, ask, self._hands.ctx.door.clock() + _HELD_S)

    async def _leave(self, server: Server, left: Left, token: str) -> Outcome:
        outcomes = [
            await self._held(partial(self._leave_one, server, at, token)) for at in _ends(left)
        ]
        open_ = [outcome for outcome in outcomes if not isinstance(outcome, Done)]
        return open_[0] if open_ else Done()

    async def _leave_one(self, server: Server, at: tuple[str, str], token: str) -> Outcome:
        host, node = at
        place = await place_of(self._hands, host)
        if isinstance(place, Failed) or _is_there(server, host, node):
            return Done()  # a host that was removed keeps nothing of ours
        guest = guest_of(self._hands, server, node=node)
        if server.host is None or server.deleted:
            return await place.driver.life.destroy(place.at, guest, token)
        home = await place_of(self._hands, server.host)
        if isinstance(home, Failed):
            return Done()
        return await place.driver.life.leave(place.at, guest, home.at, token)

    async def _end_resize(self, server: Server, left: Left, move: Move, token: str) -> Outcome:
        source = await place_of(self._hands, move.source_host)
        if isinstance(source, Failed):
            return Done()
        if source.driver.resize is None:
            return missing("resize")
        is_confirmed = left.how == "confirm"
        guest = guest_of(
            self._hands, server, node=move.source_node, is_running=server.vm_state == V.ACTIVE,
            flavor=move.new_flavor if is_confirmed else move.old_flavor,
        )  # fmt: skip
        other = await place_of(self._hands, server.host if is_confirmed else left.host)
        at = source.at if isinstance(other, Failed) else other.at
        gone = source if is_confirmed else other
        lost: dict[str, Any] = {}
        if isinstance(gone, Place) and source.at.host != at.host:
            lost = await self._lost(gone, replace(guest, node=left.node))
        if is_confirmed:  # on storage that hosts share, another one can do it
            outcome = await source.driver.resize.confirm(at if lost else source.at, guest, token)
            return Done(lost) if isinstance(outcome, Done) else outcome
        leaving_at = source.at if lost else at
        outcome = await source.driver.resize.revert(source.at, guest, leaving_at, token)
        if not isinstance(outcome, Done):
            return outcome
        return Done({**await leaving.undone(self._hands.ctx, server, left), **lost})

    async def _lost(self, place: Place, guest: Guest) -> dict[str, Any]:
        """A host that is down for good does not hold up the server at its other one."""
        is_so = await is_lost(self._hands, place, guest)
        return {_LOST: [(place.at.host, guest.node)]} if is_so else {}

    async def _abort(self, server: Server, left: Left) -> Outcome:
        here = await place_of(self._hands, server.host)
        there = await place_of(self._hands, left.host)
        if isinstance(here, Failed) or isinstance(there, Failed):
            return Done()
        if here.driver.live_migrate is None:
            return missing("migrate live")
        guest = guest_of(self._hands, server, node=left.node)
        outcome = await here.driver.live_migrate.abort(here.at, guest, there.at, left.token)
        if isinstance(outcome, Wait) and await is_at_home(self._hands, server):
            lost = await self._lost(there, guest)
            return Done(lost) if lost else outcome
        if not isinstance(outcome, Done):
            return outcome
        if outcome.found.get("left"):
            return Done({_LOST: [(there.at.host, guest.node)]})
        return Done(leaving.arrived(left) if outcome.found.get("arrived") else {})

    async def _when_it_is_back(self, server: Server, left: Left, *, is_last: bool) -> Outcome:
        """The server does not wait any longer. What is removed later must not be all there is of
        it, as where a live migration may have led, unless it was made at a third place since, or
        deleted.
        """
        log.warning("something may be left", server=server.uuid, host=left.host)
        has_left = server.claim != left.claim
        if left.how == "abort" and not has_left:
            return Done()
        if left.move is not None and left.how == "confirm" and not has_left:
            outcome = await self._held(partial(self._confirm_at_home, server, left, left.move))
            if isinstance(outcome, Wait) and not is_last:
                return outcome
        ends = _ends(left) if has_left else [(left.host, left.node)]
        return Done({_LOST: [(host, node) for host, node in ends if host != server.host]})

    async def _confirm_at_home(self, server: Server, left: Left, move: Move) -> Outcome:
        """On storage that hosts share, the note of the way back is there too; what is not removed
        would lead a later resize back too far.
        """
        home = await place_of(self._hands, server.host)
        if isinstance(home, Failed) or home.driver.resize is None:
            return Done()
        guest = guest_of(self._hands, server, flavor=move.new_flavor)
        return await home.driver.resize.confirm(home.at, guest, f"{left.token}/left/home")


def _ends(left: Left) -> list[tuple[str, str]]:
    """Where something of it may be if the server has a third place by now: one that was to be back
    where it came from has something there too.
    """
    ends = {left.host: left.node}
    if left.move is not None and left.claim != left.move.old_claim:
        ends.setdefault(left.move.source_host, left.move.source_node)
    return list(ends.items())


def _is_there(server: Server, host: str, node: str) -> bool:
    """Whether it is now where something was left of it. A host of bare metal has many nodes."""
    if server.host != host:
        return False
    return server.flavor.resource_class is None or server.node == node


def _is_on_its_own(server: Server, left: Left) -> bool:
    """Whether it is a node that could not be deployed: another one can only be once this one does
    not carry the server any more.
    """
    is_node = server.flavor.resource_class is not None
    return is_node and not left.has_claim and not _is_there(server, left.host, left.node)
