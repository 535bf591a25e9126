"""The steps of real machines: those that a ramdisk does, and those around it.

Deploy interface `direct` writes a disk image from the ramdisk; `ramdisk` boots an ISO image and
leaves it running; `noop` leaves the machine alone. What only one kind of BMC can do (its firmware
settings, say) comes from its driver as `extra`.
"""

from collections.abc import Awaitable
from collections.abc import Callable
from collections.abc import Mapping
from itertools import takewhile

import msgspec

from siderite.baremetal.domain.hardware import HardwareError
from siderite.baremetal.domain.hardware import Unreachable
from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import Failed
from siderite.baremetal.domain.outcome import Outcome
from siderite.baremetal.domain.outcome import StillThere
from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.domain.power import PowerTarget
from siderite.baremetal.domain.steps import Family
from siderite.baremetal.domain.steps import Json
from siderite.baremetal.domain.steps import Step
from siderite.baremetal.drivers.agent import image
from siderite.baremetal.drivers.agent.boot import Booter
from siderite.baremetal.drivers.agent.boot import belongs
from siderite.baremetal.drivers.agent.boot import gone
from siderite.baremetal.drivers.agent.boot import is_guest
from siderite.baremetal.drivers.agent.client import Agent
from siderite.baremetal.drivers.agent.client import AgentSilent
from siderite.baremetal.drivers.agent.client import silent
from siderite.baremetal.drivers.agent.iso import NoRamdisk
from siderite.baremetal.drivers.agent.iso import config_drive
from siderite.baremetal.drivers.agent.rescue import STEPS as RESCUE_STEPS
from siderite.baremetal.drivers.agent.rescue import Rescue
from siderite.baremetal.drivers.bmc import ASK_AGAIN_S
from siderite.baremetal.drivers.bmc import outcome_of
from siderite.baremetal.drivers.contract import Endpoint
from siderite.core.log import get_logger

log = get_logger("agent")

Extra = Mapping[str, Callable[[Endpoint, Step, str], Awaitable[Outcome]]]

INSPECT = Step("inspect", "inspect", 100)
"""Inspection by the BMC alone, for drivers that can."""
_LOOK = Step("inspect", "inspect", 100, abortable=True, in_band=True)
_BOOT = Step("deploy", "boot_ramdisk", abortable=True)
_LEAVE = Step("deploy", "tear_down_agent", switches=PowerTarget.OFF)
_START = Step("deploy", "boot_instance")
_IN_BAND = [
    Step("deploy", "erase_devices", abortable=True, in_band=True),
    Step("deploy", "burnin_cpu", abortable=True, in_band=True),
    Step("deploy", "burnin_disk", abortable=True, in_band=True),
    Step("deploy", "burnin_memory", abortable=True, in_band=True),
    Step("deploy", "burnin_network", abortable=True, in_band=True),
]
_CLEAN = [
    Step("deploy", "erase_devices_metadata", 99, abortable=True, in_band=True),
    *_IN_BAND,
]
_DIRECT = [
    Step("deploy", "deploy", 100),
    Step("deploy", "write_image", 80, in_band=True),
    Step("deploy", "prepare_instance_boot", 60),
    Step("deploy", "tear_down_agent", 40, switches=PowerTarget.OFF),
    Step("deploy", "boot_instance", 20),
]
_STEPS: dict[tuple[str, Family], list[Step]] = {
    ("direct", Family.DEPLOY): _DIRECT,
    ("direct", Family.CLEAN): _CLEAN,
    ("direct", Family.SERVICE): _IN_BAND[1:],
    ("ramdisk", Family.DEPLOY): [Step("deploy", "deploy", 100)],
    ("ramdisk", Family.CLEAN): _CLEAN,
    **{
        (kind, family): [Step("deploy", name, 100, switches=switches)]
        for kind in ("direct", "ramdisk")
        for family, name, switches in (
            (Family.TEARDOWN, "tear_down", PowerTarget.OFF),
            (Family.ADOPT, "take_over", None),
        )
    },
}


_STARTING = ("bios", "firmware")
"""Interfaces whose steps start the machine anew: no ramdisk outlives them."""
_SWITCHING = ("power_off", "reboot")
"""Steps that Siderite itself carries out, and no ramdisk outlives either."""
_STAYS_ON = (
    "the machine must stay on (disable_power_off). Its medium is out, so a reboot ends it: ask for"
    " one when the disk may start."
)


def _starts(step: Step) -> bool:
    return step.interface in _STARTING and step.children is None


def _switches(step: Step) -> bool:
    return step.step in _SWITCHING and step.children is None


def _ends_ramdisk(step: Step) -> bool:
    return _starts(step) or _switches(step)


def _needs_ramdisk(step: Step) -> bool:
    return step.in_band or step.step == "prepare_instance_boot"


def _booted(chosen: list[Step], *, late: bool) -> list[Step]:
    """The steps with a ramdisk's boot wherever one that needs it would find none: right before
    that if `late`, or if the machine was switched on purpose, else as soon as one can run.
    """
    framed: list[Step] = []
    runs = was_switched = False
    for at, step in enumerate(chosen):
        if _ends_ramdisk(step):
            runs, was_switched = False, _switches(step)
        elif (step.interface, step.step) == ("deploy", "deploy"):
            runs = True
        elif not runs and (_needs_ramdisk(step) or not (late or was_switched)):
            rest = takewhile(lambda later: not _ends_ramdisk(later), chosen[at:])
            runs = any(map(_needs_ramdisk, rest))
            framed += [_BOOT] if runs else []
        framed.append(step)
    return framed


def _too_late(at: Endpoint, chosen: list[Step]) -> Failed | None:
    """A step that starts the machine when its workload is there already would start that before its
    time, and a later one would cut it off.
    """
    brings = "deploy" if at.interfaces.get("deploy") == "ramdisk" else "write_image"
    workload: Step | None = None
    for step in chosen:
        if workload is not None and _starts(step):
            first = workload.priority
            return Failed(
                f"step {step.interface}.{step.step} starts the machine, and after"
                f" deploy.{workload.step} (priority {first}) that would start its workload:"
                f" give it a priority above {first}, or ask for it by clean or service"
            )
        if (step.interface, step.step) == ("deploy", brings):
            workload = step
    return None


def _off(at: Endpoint) -> Json:
    """What follows for a node whose machine was to go off."""
    return {} if at.stays_on else {"power_state": "power off"}


class AgentSteps:
    """What can be done to a machine with a BMC and a ramdisk."""

    def __init__(
        self, booter: Booter, agent: Agent, own: Mapping[Family, list[Step]], extra: Extra
    ) -> None:
        self._booter = booter
        self._agent = agent
        self._own = own
        self._extra = extra
        self._around: Extra = {
            "deploy.deploy": self._deploy,
            "deploy.boot_ramdisk": self._boot,
            "deploy.write_image": self._write_image,
            "deploy.prepare_instance_boot": self._prepare_disk,
            "deploy.tear_down_agent": self._leave,
            "deploy.boot_instance": self._start,
            "deploy.tear_down": self._tear_down,
            "deploy.take_over": self._take_over,
            "rescue.rescue": Rescue(booter, agent).rescue,
            "rescue.tear_down_agent": self._leave,
            "rescue.boot_instance": self._start,
        }

    async def steps(self, at: Endpoint, family: Family) -> list[Step]:
        """What can be done for this kind of work."""
        if family is Family.INSPECT and at.interfaces.get("inspect") == "agent":
            return [_LOOK]
        if family in RESCUE_STEPS:
            return RESCUE_STEPS[family]
        kind = at.interfaces.get("deploy") or "direct"
        # A node whose interface is such as no-bios is not to be touched there.
        own = [
            step
            for step in self._own.get(family, [])
            if at.interfaces.get(step.interface) != f"no-{step.interface}"
        ]
        return [*_STEPS.get((kind, family), []), *own]

    async def frame(self, at: Endpoint, family: Family, chosen: list[Step]) -> list[Step] | Failed:
        """A ramdisk is booted before, and left after, steps that need one. Cleaning that switched
        the machine on ends with it off; one that must stay on leaves its ramdisk for its disk. A
        service also leaves one that the service before has left, as it had failed or was held.
        """
        if family is Family.DEPLOY and (late := _too_late(at, chosen)) is not None:
            return late
        in_band = any(step.in_band for step in chosen)
        starts = any(map(_starts, chosen))
        if family is Family.CLEAN and starts and not in_band and not at.stays_on:
            return [*chosen, _LEAVE]
        if not in_band and not (family is Family.SERVICE and is_guest(at)):
            return chosen
        if family is Family.DEPLOY:
            return _booted(chosen, late=True)  # it has a step that boots the first
        after = [_LEAVE, _START] if family is Family.SERVICE or at.stays_on else [_LEAVE]
        if family is Family.INSPECT:
            return [*chosen, *after]  # its one step is the ramdisk's boot
        return [*_booted(chosen, late=False), *after]

    async def run(self, at: Endpoint, family: Family, step: Step, token: str) -> Outcome:
        """Begin, or tell of, one run of a step. One that failed leaves its ramdisk, which says so
        again to whoever asks again; what becomes of that is decided with the failure's commit.
        """
        name = f"{step.interface}.{step.step}"
        own = self._around.get(name) or self._extra.get(name)
        try:
            if family is Family.INSPECT and step.in_band:
                return await self._booter.boot(at, token, inspects=True)
            if own is not None:
                return await own(at, step, token)
            return await self._agent.step(at, family, step, token)
        except HardwareError as why:
            return outcome_of(why)
        except NoRamdisk as why:
            return Wait(str(why), ASK_AGAIN_S) if why.passing else Failed(str(why))
        except image.NoImage as why:
            return Failed(str(why))
        except OSError as why:
            reason = why.strerror or type(why).__name__
            log.warning("a file for a boot cannot be made", node=at.node, error=reason)
            return Wait(
                f"a file that the machine needs cannot be made ({reason}): look at the disk of"
                " the data directory, whose folder boot it goes to",
                ASK_AGAIN_S,
            )

    async def forget(
        self, at: Endpoint, token: str, *, back: bool = False
    ) -> Wait | Done | StillThere | None:
        """The run was given up: no ramdisk of its work stays behind, once the BMC has followed; nor
        one that the work before has left, where the workload is to be back.
        """
        is_unwanted = is_guest(at) and (back or not token)
        if not (is_unwanted or (token and belongs(at, token))):
            return None  # there is none, or other work has booted its own since
        try:
            waiting = await self._booter.give_up(at, token or at.node, back=back)
            stays = waiting is None and not back and await self._booter.runs_on(at)
        except Unreachable as why:
            return Wait(why.sentence, why.again_in or ASK_AGAIN_S)
        except HardwareError as why:
            return StillThere(why.sentence)
        if stays:
            return StillThere(_STAYS_ON, gone())
        return waiting or Done(_off(at), gone())

    async def _boot(self, at: Endpoint, step: Step, token: str) -> Outcome:
        return await self._booter.boot(at, token)

    async def _deploy(self, at: Endpoint, step: Step, token: str) -> Outcome:
        if at.interfaces.get("deploy") != "ramdisk":
            return await self._booter.boot(at, token)
        iso = at.instance_info.get("boot_iso")
        if not iso:
            return Failed("instance_info lacks boot_iso, the address of the image to boot")
        return await self._booter.boot(at, token, str(iso))

    async def _write_image(self, at: Endpoint, step: Step, token: str) -> Outcome:
        args: Json = {"image_info": await self._booter.ramdisks.image_info(at)}
        drive = await config_drive(at.instance_info.get("configdrive"), at.node)
        if drive is not None:
            args["configdrive"] = drive
        told = msgspec.structs.replace(step, args={**args, **step.args})
        return await self._agent.step(at, Family.DEPLOY, told, token)

    async def _prepare_disk(self, at: Endpoint, step: Step, token: str) -> Outcome:
        """A whole-disk image brings its boot loader; it only has to reach the disk."""
        try:
            await self._agent.tell(at, "standby.sync")
        except AgentSilent as why:
            return silent(at, why)
        return Done()

    async def _leave(self, at: Endpoint, step: Step, token: str) -> Outcome:
        waiting = await self._booter.off(at, token)
        return waiting or Done(_off(at), gone())

    async def _start(self, at: Endpoint, step: Step, token: str) -> Outcome:
        return await self._booter.disk(at, token)

    async def _tear_down(self, at: Endpoint, step: Step, token: str) -> Outcome:
        return await self._leave(at, step, token)

    async def _take_over(self, at: Endpoint, step: Step, token: str) -> Outcome:
        """The workload runs already; nothing is touched."""
        return Done()
