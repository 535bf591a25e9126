"""Booting a node's ramdisk, and getting rid of it again.

Off, medium in, on, and then the ramdisk calls (a machine that must stay on is reset in place of off
and on): how far it has come is recorded on the node
(`driver_internal_info.ramdisk`) before the next part begins, so that a crash repeats nothing that
matters. With virtual media the BMC is given an ISO image; without, the machine boots by network and
asks our iPXE address, which reads the same record.

What the BMC does by a task of its own is recorded too (`driver_internal_info.bmc_task`), and let
end before the next part begins.
"""

import contextlib
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

import msgspec

from siderite.baremetal.domain import agent
from siderite.baremetal.domain.hardware import BootDevice
from siderite.baremetal.domain.hardware import MediaDevice
from siderite.baremetal.domain.hardware import Refused
from siderite.baremetal.domain.hardware import Unreachable
from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import Outcome
from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.domain.power import PowerState
from siderite.baremetal.domain.power import PowerTarget
from siderite.baremetal.drivers.agent.client import FORGET
from siderite.baremetal.drivers.agent.ramdisks import Ramdisks
from siderite.baremetal.drivers.bmc import ASK_AGAIN_S
from siderite.baremetal.drivers.bmc import PowerOrder
from siderite.baremetal.drivers.contract import BootDevices
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.contract import Task
from siderite.baremetal.drivers.contract import TaskEnd
from siderite.baremetal.drivers.contract import Tasks
from siderite.baremetal.drivers.contract import UnderWay
from siderite.baremetal.drivers.contract import VirtualMedia
from siderite.baremetal.drivers.switch import MEMORY as RESET
from siderite.baremetal.drivers.switch import RESET_DONE
from siderite.baremetal.drivers.switch import SOON_S
from siderite.baremetal.drivers.switch import UNTOLD
from siderite.baremetal.drivers.switch import Switch
from siderite.core.clock import now as wall_clock
from siderite.core.ids import new_secret

MEMORY = "ramdisk"
TASK = "bmc_task"
_TOKEN = "agent_token"  # noqa: S105 - a key's name
SILENT_S = 5.0
DISK = "the machine is to boot its disk"
OUT = "the BMC takes the medium out"
TIDY_S = 120.0
"""For how long a task is waited for that ends what was given up."""
Json = Mapping[str, Any]


class Booter:
    """Boots ramdisks over a BMC."""

    def __init__(
        self,
        switch: Switch,
        boot_devices: BootDevices,
        media: VirtualMedia | None,
        ramdisks: Ramdisks,
        tasks: Tasks | None = None,
        *,
        clock: Callable[[], float] = wall_clock,
    ) -> None:
        self._switch = switch
        self._boot_devices = boot_devices
        self._media = media
        self._tasks = tasks
        self._clock = clock
        self.ramdisks = ramdisks

    def uses_media(self, at: Endpoint) -> bool:
        """Whether the node boots from virtual media, not by network."""
        return self._media is not None and at.interfaces.get("boot") != "ipxe"

    async def boot(
        self, at: Endpoint, token: str, iso: str = "", *, inspects: bool = False
    ) -> Outcome:
        """Boot the ramdisk (or this ISO image), and wait until it calls (or has power). One that
        inspects sends what it found, which ends the wait from outside.
        """
        memory = _memory(at, token)
        if memory is None:
            fresh = {"token": token, "phase": "off", "secret": new_secret(18)}
            if not iso and self._makes_medium(at):
                fresh[_TOKEN] = new_secret()
            reason = "the machine is to go off before it boots the ramdisk"
            return Wait(
                reason, 0.0, remember={**FORGET, TASK: None, MEMORY: fresh},
                switches=PowerTarget.REBOOT,
            )  # fmt: skip
        try:
            end = await self._end(at, token)
        except Refused as why:
            return _once_more(memory, why)
        if end is not None:
            return self._went_on(at, memory, end)
        if memory["phase"] == "off":
            waiting = await self._switch.toward(at, PowerOrder.OFF, token)
            return waiting or await self._prepare(at, memory, iso, inspects=inspects)
        if memory["phase"] == "boot":
            return await self._choose(at, memory)
        if memory["phase"] == "lost":
            return await self._found_again(at, memory, iso, inspects=inspects)
        called = at.driver_internal_info.get("agent_url") and at.driver_internal_info.get(
            "agent_last_heartbeat"
        )
        if inspects or not called:
            try:
                waiting = await self._switch.start(at, f"{token}/on")
            except Unreachable as why:
                again_in = why.again_in or ASK_AGAIN_S
                return Wait(why.sentence, again_in, remember=_phase(memory, "lost"))
            if waiting is not None:
                return _forgetting(at, f"{token}/on", waiting)
            if not iso:
                return Wait(
                    "the ramdisk boots and will call", SILENT_S, callback=True, power=PowerState.ON
                )
        return Done({"power_state": "power on"}, _phase(memory, "up"))

    def _makes_medium(self, at: Endpoint) -> bool:
        """Whether the ramdisk is on a medium made for it, which has its token: nobody else need be
        given one. Who boots another, or by network, asks for it.
        """
        return self.uses_media(at) and not self.ramdisks.ready_iso(at)

    async def _prepare(self, at: Endpoint, memory: Json, iso: str, *, inspects: bool) -> Wait:
        """Have what the machine, which is off, shall boot from."""
        secret = memory["secret"]
        if self._media is None or not self.uses_media(at):
            pair = await self.ramdisks.pair(at, secret, inspects=inspects)
            return _known_by(at, "", await self._choose(at, {**memory, "boot": pair}))
        token = "" if iso else _token(at, memory)
        url = await (
            self.ramdisks.given_iso(at, iso, secret)
            if iso
            else self.ramdisks.iso(at, secret, inspects=inspects, token=token)
        )
        try:
            task = await self._media.insert(at, MediaDevice.CDROM, url)
        except Refused as why:
            return _once_more(memory, why)
        if task is not None:
            then = memory["phase"] if task.more else "boot"
            return _known_by(at, token, _by_task(task, memory, then))
        return _known_by(at, token, await self._choose(at, memory))

    async def _choose(self, at: Endpoint, memory: Json) -> Wait:
        """Have the machine boot from it the next time."""
        device = BootDevice.CDROM if self.uses_media(at) else BootDevice.PXE
        task = await self._boot_devices.set_boot_device(at, device, persistent=False)
        if task is not None:
            return _by_task(task, {**memory, "phase": "boot"}, "on")
        return Wait("the machine is to boot the ramdisk", 0.0, remember=_phase(memory, "on"))

    async def _found_again(self, at: Endpoint, memory: Json, iso: str, *, inspects: bool) -> Wait:
        """The BMC was away while the machine was to start: if it began anew, it may have forgotten
        the medium and what to boot. A machine that runs by now had both.
        """
        power = await self._switch.read(at)
        if power is PowerState.ON and not at.stays_on:
            return Wait("the machine has started", 0.0, remember=_phase(memory, "on"))
        if power is PowerState.UNKNOWN:
            return Wait(UNTOLD, ASK_AGAIN_S)
        return await self._prepare(at, memory, iso, inspects=inspects)

    async def _end(self, at: Endpoint, token: str) -> Wait | TaskEnd | None:
        """How it goes with the task that the BMC has for this step; None if it has none."""
        note = at.driver_internal_info.get(TASK)
        if not isinstance(note, dict) or note.get("token") != token or self._tasks is None:
            return None
        end = await self._tasks.ask(at, msgspec.convert(note["task"], Task))
        return end.wait if isinstance(end, UnderWay) else end

    def _went_on(self, at: Endpoint, memory: Json, end: Wait | TaskEnd) -> Wait:
        if isinstance(end, Wait):
            return end
        note = at.driver_internal_info[TASK]
        phase = note["then"] if end is TaskEnd.DONE else memory["phase"]
        return Wait("the BMC has done that", 0.0, remember={**_phase(memory, phase), TASK: None})

    async def off(self, at: Endpoint, token: str) -> Wait | None:
        """Switch the machine off, medium out; None once that is so."""
        end = await self._end(at, token)
        waiting = None
        if end is None:
            waiting = await self._switch.toward(at, PowerOrder.OFF, f"{token}/off")
        return waiting or await self._out(at, token, end)

    async def out(self, at: Endpoint, token: str) -> Wait | None:
        """Take the medium out; None once that is so."""
        return await self._out(at, token, await self._end(at, token))

    async def _out(self, at: Endpoint, token: str, end: Wait | TaskEnd | None) -> Wait | None:
        if end is not None:
            return end if isinstance(end, Wait) else Wait(OUT, 0.0, remember={TASK: None})
        task = await self.empty(at)
        return None if task is None else Wait(OUT, SOON_S, remember=_noted(task, token))

    async def give_up(self, at: Endpoint, token: str, *, back: bool = False) -> Wait | None:
        """Switch the machine off and take its medium out; None once that is so. With `back` it is
        to start from its disk next. What the BMC does by a task, be it still one of the run that is
        given up, is let end, within reason.
        """
        key, known = f"{token}/gone", at.driver_internal_info.get(TASK) or {}
        if known.get("token") != key:
            waiting = await self._switch.toward(at, PowerOrder.OFF, f"{token}/off")
            waiting = waiting or await self._ended(at, token)
            if waiting is not None:
                return waiting
            with contextlib.suppress(Refused):  # it stays in a machine that no longer boots from it
                task = await self.empty(at)
                if task is not None:
                    return Wait(OUT, SOON_S, remember=self._noted_for_now(task, key, OUT))
        elif self._clock() < known.get("until", 0.0):
            waiting = await self._ended(at, key)
            if waiting is not None:
                return waiting
        if back and known.get("then") != DISK:
            with contextlib.suppress(Refused):  # then it starts as it does by itself
                task = await self._from_disk(at)
                if task is not None:
                    return Wait(DISK, SOON_S, remember=self._noted_for_now(task, key, DISK))
        return None

    async def _ended(self, at: Endpoint, token: str) -> Wait | None:
        """None once a task that is of no more interest has ended, well or not."""
        try:
            end = await self._end(at, token)
        except Refused:
            return None
        return end if isinstance(end, Wait) else None

    def _noted_for_now(self, task: Task, token: str, then: str) -> dict[str, Any]:
        noted = _noted(task, token, then)
        noted[TASK]["until"] = self._clock() + TIDY_S
        return noted

    async def runs_on(self, at: Endpoint) -> bool:
        """Whether a ramdisk that was given up runs in a machine that must stay on, or may."""
        memory = at.driver_internal_info.get(MEMORY) or {}
        if not at.stays_on or memory.get("phase") in ("off", "boot"):
            return False
        return await self._switch.read(at) is not PowerState.OFF

    async def disk(self, at: Endpoint, token: str) -> Outcome:
        """Have the machine, which is off, boot from its disk, now and later."""
        end = await self._end(at, token)
        if isinstance(end, Wait):
            return end
        starts = Wait(
            DISK, 0.0, remember={"disk_boot": token, TASK: None},
            switches=PowerTarget.REBOOT if at.stays_on else PowerTarget.ON,
        )  # fmt: skip
        if end is TaskEnd.DONE:
            return starts
        if at.driver_internal_info.get("disk_boot") != token:
            await self.empty(at)
            task = await self._from_disk(at)
            if task is not None:
                return Wait(DISK, SOON_S, remember=_noted(task, token))
            return starts
        waiting = await self._switch.start(at, token)
        return waiting or Done({"power_state": "power on"}, {"disk_boot": None, RESET: None})

    async def _from_disk(self, at: Endpoint) -> Task | None:
        """For good; where the BMC knows no such thing, for the next start."""
        choose = self._boot_devices.set_boot_device
        try:
            return await choose(at, BootDevice.DISK, persistent=True)
        except Refused:
            return await choose(at, BootDevice.DISK, persistent=False)

    async def empty(self, at: Endpoint) -> Task | None:
        """Take the medium out, and have no more files for it."""
        task = None
        if self._media is not None and self.uses_media(at):
            task = await self._media.eject(at, MediaDevice.CDROM)
        await self.ramdisks.remove(at)
        return task


def gone() -> dict[str, Any]:
    """What to remember once there is no ramdisk any more."""
    return {**FORGET, MEMORY: None, RESET: None, TASK: None}


def belongs(at: Endpoint, token: str) -> bool:
    """Whether the node's ramdisk was booted by the work that this token is of."""
    memory = at.driver_internal_info.get(MEMORY)
    return isinstance(memory, dict) and _work(str(memory.get("token"))) == _work(token)


def is_guest(at: Endpoint) -> bool:
    """Whether a ramdisk runs in place of the node's workload; where it is the workload, none is
    booted in its place.
    """
    has_one = isinstance(at.driver_internal_info.get(MEMORY), dict)
    return has_one and at.interfaces.get("deploy") != "ramdisk"


def _work(token: str) -> str:
    return token.rpartition("/")[0]


def _memory(at: Endpoint, token: str) -> Mapping[str, Any] | None:
    memory = at.driver_internal_info.get(MEMORY)
    return memory if isinstance(memory, dict) and memory.get("token") == token else None


def _phase(memory: Json, phase: str) -> dict[str, Any]:
    return {MEMORY: {**memory, "phase": phase}}


def _forgetting(at: Endpoint, token: str, waiting: Wait) -> Wait:
    """A machine that is reset, maybe once more as the answer to the first got lost, has no ramdisk
    yet: the token of one that it has started meanwhile would keep the next from it.
    """
    known, new = at.driver_internal_info.get(RESET) or {}, waiting.remember.get(RESET)
    was_reset = known.get("token") == token and known.get("half") == RESET_DONE
    if new is None or was_reset or new.get("seen"):
        return waiting
    kept = (agent.TOKEN, agent.PREGENERATED)
    own = at.driver_internal_info.get(agent.PREGENERATED)
    forget = {key: None for key in FORGET if not (own and key in kept)}
    return msgspec.structs.replace(waiting, remember={**forget, **waiting.remember})


def _token(at: Endpoint, memory: Json) -> str:
    """The token for a medium that is made. A worker of an older version, which began the boot, made
    it the node's at once.
    """
    info = at.driver_internal_info
    begun = info.get(agent.TOKEN) if info.get(agent.PREGENERATED) else None
    return str(memory.get(_TOKEN) or begun or "")


def _known_by(at: Endpoint, token: str, waiting: Wait) -> Wait:
    """The token becomes the node's only when it is on the medium, for whoever made that may be of a
    version that puts none there. Who was given one meanwhile is no ramdisk of ours, as the machine
    is off, and would keep ours from its own; one that must stay on forgets when it is reset.
    """
    if at.stays_on and token in ("", at.driver_internal_info.get(agent.TOKEN)):
        return waiting
    own = {agent.TOKEN: token, agent.PREGENERATED: True} if token else {}
    return msgspec.structs.replace(waiting, remember={**FORGET, **own, **waiting.remember})


def _once_more(memory: Json, why: Refused) -> Wait:
    """Who was killed right after an order gives it twice, and the BMC may refuse the second: it is
    looked at anew, once.
    """
    if memory.get("again"):
        raise why
    again = {**memory, "phase": "off", "again": True}
    return Wait(why.sentence, ASK_AGAIN_S, remember={MEMORY: again, TASK: None})


def _noted(task: Task, token: str, then: str = "") -> dict[str, Any]:
    return {TASK: {"token": token, "task": msgspec.to_builtins(task), "then": then}}


def _by_task(task: Task, memory: Json, then: str) -> Wait:
    """The boot goes on in this phase once the BMC has ended its task."""
    noted = _noted(task, memory["token"], then)
    return Wait(f"the BMC has begun with {task.doing}", SOON_S, remember={MEMORY: memory, **noted})
