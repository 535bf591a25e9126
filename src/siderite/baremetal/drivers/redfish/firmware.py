"""Flashing firmware over Redfish: the step `firmware.update`.

One part after the other. What a BMC had before it is told (the part's version, its tasks) is
recorded on the node first: whoever carries on after a crash, or after an answer that was lost,
finds by it whether the BMC was told, and does not tell it twice. Then its task is followed, over
restarts of ours and of the BMC, which is away for minutes if the firmware is its own. Other parts
take theirs at a start of the machine, so that is started anew, once for each; and the part is given
time to show its new version.
"""

import zlib
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import msgspec

from siderite.baremetal.domain.firmware import Update
from siderite.baremetal.domain.firmware import updates
from siderite.baremetal.domain.hardware import FirmwareComponent
from siderite.baremetal.domain.hardware import Found
from siderite.baremetal.domain.hardware import Unreachable
from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import Failed
from siderite.baremetal.domain.outcome import Outcome
from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.domain.power import PowerState
from siderite.baremetal.domain.power import PowerTarget
from siderite.baremetal.domain.steps import Step
from siderite.baremetal.drivers.bmc import ASK_AGAIN_S
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.contract import Task
from siderite.baremetal.drivers.contract import TaskEnd
from siderite.baremetal.drivers.contract import UnderWay
from siderite.baremetal.drivers.redfish import update_service
from siderite.baremetal.drivers.redfish.parts import VAGUE_S
from siderite.baremetal.drivers.redfish.parts import Parts
from siderite.core.errors import Invalid

MEMORY = "firmware_update"
STEPS = [Step("firmware", "update")]
PATIENCE = 30
"""How often a task that does not run is asked for before the machine is started for it."""
LOOKS = 3
"""How often a part is looked for before it is said to be missing."""
SETTLE_S, LOOK_S = 300.0, 5.0
"""How long a part may take to show another version, and how often it is looked at meanwhile."""
FORGOTTEN_S = 120.0
"""For how long a BMC must know nothing of its task, whenever it is asked, before that is believed:
one that starts its services anew answers so meanwhile, and the machine may still be flashed.
"""
SURE_S = 600.0
"""For how long a BMC's tasks tell whether it was told; it forgets them in time."""
_MOST_TASKS = 20


class Phase(StrEnum):
    """What is next for a part."""

    LOOK = "look"
    TELL = "tell"
    FOLLOW = "follow"
    START = "start"
    SETTLE = "settle"


class Place(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far it is, as the node has it."""

    token: str
    index: int = 0
    phase: Phase = Phase.LOOK
    was: str | None = None
    """The version before."""
    known: list[int] | None = None
    """The BMC's tasks before, each as a number; None if it has no list of them."""
    since: float = 0.0
    task: Task | None = None
    patience: int = PATIENCE
    has_started: bool = False
    is_lost: bool = False
    """The BMC forgot its task before it was seen to end."""
    lost_at: float | None = None
    """When it last said that it knows nothing of it."""
    lost_s: float = 0.0
    """For how long it has said so, again and again. What nobody asked in does not count."""

    @property
    def key(self) -> str:
        """Names this part of this run."""
        return f"{self.token}/{self.index}"

    def at(self, phase: Phase, reason: str, **changes: Any) -> Wait:
        """Go on from there, at once, when that is recorded."""
        after = msgspec.structs.replace(self, phase=phase, **changes)
        switches = PowerTarget.REBOOT if phase is Phase.START else None
        return Wait(reason, 0.0, remember={MEMORY: msgspec.to_builtins(after)}, switches=switches)


class RedfishFirmware:
    """Flashes parts of a machine."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._noted: set[str] = set()
        """Parts whose BMC has no list of tasks, and was surely not told yet."""

    async def update(self, at: Endpoint, step: Step, token: str) -> Outcome:
        """Give parts the firmware that `settings` of the step's arguments names, in this order."""
        try:
            wanted = updates(step.args.get("settings"))
        except Invalid as why:
            return Failed(why.sentence)
        place = _place(at, token)
        if place.index >= len(wanted):
            found = Found(firmware=list(await self._parts.inside.components(at)))
            starts = any(one.component != "bmc" for one in wanted)
            return Done({"power_state": "power on"} if starts else {}, {MEMORY: None}, found)
        wish = wanted[place.index]
        match place.phase:
            case Phase.LOOK:
                return await self._look(at, place, wanted)
            case Phase.TELL:
                return await self._tell(at, place, wish)
            case Phase.FOLLOW:
                return await self._follow(at, place, wish)
            case Phase.START:
                return await self._start(at, place, wish)
            case Phase.SETTLE:
                return await self._settle(at, place, wish)

    async def _look(self, at: Endpoint, place: Place, wanted: Sequence[Update]) -> Outcome:
        parts = {one.component: one for one in await self._parts.inside.components(at)}
        lacks = [one.component for one in wanted[place.index :] if one.component not in parts]
        if lacks:
            has = ", ".join(parts) or "none"
            reason = f"{at.bmc} shows no firmware of {lacks[0]!r}; it has: {has}."
            # One that has just begun anew may not show all yet.
            is_over = place.patience <= PATIENCE - LOOKS
            return Failed(reason) if is_over else _fewer(place, reason, LOOK_S)
        wish = wanted[place.index]
        paths = await self._parts.lines.system(at, "its tasks", update_service.tasks)
        known = None if paths is None else sorted(map(_number, paths))
        if known is None:
            self._noted.add(place.key)
        return place.at(
            Phase.TELL, f"the BMC is to be told of new firmware for {wish.component}",
            was=parts[wish.component].current_version, known=known, since=self._parts.clock(),
            patience=PATIENCE,
        )  # fmt: skip

    async def _tell(self, at: Endpoint, place: Place, wish: Update) -> Outcome:
        """Tell the BMC, unless it shows that it was told."""
        doing = f"new firmware for {wish.component}"
        if place.known is None:
            if place.key not in self._noted:
                has_changed = _changed(await self._parts.inside.components(at), place, wish)
                return self._next_after_end(place, wish) if has_changed else _unknown(at, wish)
        else:
            task = await self._was_told(at, place, wish, doing)
            if task is not None:
                return place.at(Phase.FOLLOW, "the BMC has a task for it", task=task)
            if _changed(await self._parts.inside.components(at), place, wish):
                return self._next_after_end(place, wish)
            if not -VAGUE_S <= self._parts.clock() - place.since <= SURE_S:
                return _unknown(at, wish)
        try:
            task = await self._order(at, place, wish, doing)
        except Unreachable as why:
            if not why.is_busy:
                raise
            return self._not_now(place, why)
        if task is None:
            return self._next_after_end(place, wish)
        return place.at(Phase.FOLLOW, "the BMC was told, and has a task for it", task=task)

    async def _order(self, at: Endpoint, place: Place, wish: Update, doing: str) -> Task | None:
        def tell(system: Any) -> None:
            update_service.tell(
                system, wish.component, wish.url, begins=lambda: self._noted.discard(place.key)
            )

        return await self._parts.lines.order(at, doing, tell)

    def _not_now(self, place: Place, why: Unreachable) -> Wait:
        """It has not begun: that is as sure now as it was before it was told."""
        if place.known is None:
            self._noted.add(place.key)
        after = msgspec.structs.replace(place, since=self._parts.clock())
        again_in = why.again_in or ASK_AGAIN_S
        return Wait(why.sentence, again_in, remember={MEMORY: msgspec.to_builtins(after)})

    async def _was_told(self, at: Endpoint, place: Place, wish: Update, doing: str) -> Task | None:
        """The task that the BMC has made of this very order, if there is one."""
        paths = await self._parts.lines.system(at, "its tasks", update_service.tasks)
        new = [path for path in paths or () if _number(path) not in (place.known or ())]
        for path in new[-_MOST_TASKS:]:
            answer = await self._parts.lines.page(at, "one of its tasks", path)
            if answer is not None and update_service.is_update(answer, wish.url):
                return Task(path, doing)
        return None

    async def _follow(self, at: Endpoint, place: Place, wish: Update) -> Outcome:
        if place.task is None:
            return self._next_after_end(place, wish)
        try:
            end = await self._parts.tasks.ask(at, place.task)
            if end is TaskEnd.LOST:
                return await self._lost(at, place, wish, place.task)
        except Unreachable as why:
            if place.lost_at is None:
                raise
            # What it knew before it went away says nothing of what it knows when it is back.
            after = msgspec.structs.replace(place, lost_at=None, lost_s=0.0)
            again_in = why.again_in or ASK_AGAIN_S
            return Wait(why.sentence, again_in, remember={MEMORY: msgspec.to_builtins(after)})
        if not isinstance(end, UnderWay):
            return self._next_after_end(place, wish)
        if place.lost_at is not None:
            return place.at(Phase.FOLLOW, end.reason, lost_at=None, lost_s=0.0)
        if end.is_running or wish.component == "bmc" or place.has_started:
            return end.wait
        if place.patience > 0:
            return _fewer(place, end.reason, end.again_in)
        return place.at(Phase.START, "the machine is to start, which its BMC waits for")

    async def _lost(self, at: Endpoint, place: Place, wish: Update, task: Task) -> Wait:
        """The BMC knows nothing of its task: the part may be flashed all the same, so the machine
        is not started before that is sure.
        """
        if _changed(await self._parts.inside.components(at), place, wish):
            return self._next_after_end(place, wish)
        # Of one that had no list of its tasks before, nobody can say which of them are new.
        is_listed = place.known is not None
        found = await self._was_told(at, place, wish, task.doing) if is_listed else None
        if found is not None and found.monitor != task.monitor:
            reason = "the BMC has a task for it"
            return place.at(Phase.FOLLOW, reason, task=found, lost_at=None, lost_s=0.0)
        now = self._parts.clock()
        last = now if place.lost_at is None else place.lost_at
        lost_s = place.lost_s + min(max(now - last, 0.0), LOOK_S)
        if lost_s >= FORGOTTEN_S:
            return self._next_after_end(place, wish, is_lost=True)
        after = msgspec.structs.replace(place, lost_at=now, lost_s=lost_s)
        return Wait(
            f"the BMC knows nothing of its task for {wish.component}, which may go on all the same:"
            f" it is given {FORGOTTEN_S:g} s",
            LOOK_S, remember={MEMORY: msgspec.to_builtins(after)},
        )  # fmt: skip

    def _next_after_end(self, place: Place, wish: Update, *, is_lost: bool = False) -> Wait:
        """The BMC is done with it: the machine starts with what is new, if it has not."""
        starts = wish.component != "bmc" and not place.has_started
        phase = Phase.START if starts else Phase.SETTLE
        return place.at(
            phase, f"the BMC has ended the update of {wish.component}",
            task=None, since=self._parts.clock(), is_lost=is_lost, lost_at=None, lost_s=0.0,
        )  # fmt: skip

    async def _start(self, at: Endpoint, place: Place, wish: Update) -> Outcome:
        outcome = await self._parts.switch.set(at, PowerTarget.REBOOT, place.key)
        if not isinstance(outcome, Done):
            return outcome
        phase = Phase.SETTLE if place.task is None else Phase.FOLLOW
        waiting = place.at(
            phase, f"the machine starts with new firmware for {wish.component}",
            has_started=True, since=self._parts.clock(),
        )  # fmt: skip
        memory = {**outcome.remember, **waiting.remember}
        return msgspec.structs.replace(waiting, remember=memory, power=PowerState.ON)

    async def _settle(self, at: Endpoint, place: Place, wish: Update) -> Outcome:
        """Until the part shows another version, or as long as it was to be given."""
        has_changed = _changed(await self._parts.inside.components(at), place, wish)
        now = self._parts.clock()
        if now < place.since - VAGUE_S:
            return place.at(Phase.SETTLE, "the clock was set back meanwhile", since=now)
        took = now - place.since
        limit = SETTLE_S if wish.wait is None else wish.wait
        if took < limit and (wish.wait is not None or not has_changed):
            shows = "another version" if has_changed else f"version {place.was}"
            reason = f"{wish.component} shows {shows}; it is given {limit:g} s"
            return Wait(reason, min(LOOK_S, limit - took))
        if place.is_lost and not has_changed:
            return _unknown(at, wish)
        after = Place(place.token, place.index + 1)
        return after.at(Phase.LOOK, f"the update of {wish.component} has ended")


def _place(at: Endpoint, token: str) -> Place:
    memory = at.driver_internal_info.get(MEMORY)
    if isinstance(memory, dict) and memory.get("token") == token:
        return msgspec.convert(memory, Place)
    return Place(token)


def _fewer(place: Place, reason: str, again_in: float) -> Wait:
    """Wait, with less patience for the next time."""
    after = msgspec.structs.replace(place, patience=place.patience - 1)
    return Wait(reason, again_in, remember={MEMORY: msgspec.to_builtins(after)})


def _changed(parts: Sequence[FirmwareComponent], place: Place, wish: Update) -> bool:
    versions = {one.component: one.current_version for one in parts}
    return versions.get(wish.component) not in (None, place.was)


def _number(path: str) -> int:
    return zlib.crc32(path.rstrip("/").encode())


def _unknown(at: Endpoint, wish: Update) -> Failed:
    return Failed(
        f"It cannot be told whether {at.bmc} has flashed {wish.component}: it shows the same"
        " version, and no task for it. Nothing was flashed twice; look at the BMC, then ask again."
    )
