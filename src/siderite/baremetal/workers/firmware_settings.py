"""Boot mode and secure boot that were asked for.

A BMC that changes them by a task is asked until that has ended. One that leaves its task for the
machine's next start has done what it can until then.
"""

import msgspec

from siderite.baremetal.domain.hardware import BootMode
from siderite.baremetal.domain.hardware import HardwareError
from siderite.baremetal.domain.hardware import Unreachable
from siderite.baremetal.domain.node import Node
from siderite.baremetal.drivers.contract import Driver
from siderite.baremetal.drivers.contract import Drivers
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.contract import Task
from siderite.baremetal.drivers.contract import TaskEnd
from siderite.baremetal.drivers.contract import Tasks
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.life import progress
from siderite.baremetal.usecases.machine import firmware_settings
from siderite.baremetal.usecases.machine.firmware_settings import SettingJob
from siderite.baremetal.usecases.machine.hardware import unsupported
from siderite.baremetal.workers.hardware import ability
from siderite.baremetal.workers.hardware import bounded
from siderite.core.errors import SideriteError
from siderite.core.work import Work

_RETRY_S = 2.0
_SOON_S = 0.2
_MOST_LOOKS = 10
"""How often a task may be found not to run, before it is left for the machine's next start."""


class _Later(msgspec.Struct, frozen=True):
    """It has not changed yet: what is to be asked then, why, and when."""

    job: SettingJob
    reason: str
    again_in: float


class FirmwareSettings:
    """The handler of such work."""

    def __init__(self, ctx: Context, drivers: Drivers) -> None:
        self._ctx = ctx
        self._drivers = drivers

    async def handle(self, held: Work) -> None:
        """Have the machine changed; a BMC that is away or busy with it is asked again until the
        deadline.
        """
        node = await progress.load_or_abandon(self._ctx, held)
        if node is None:
            return
        job = msgspec.json.decode(held.job, type=SettingJob)
        error: str | None = None
        try:
            later = await self._go_on(node, job)
        except Unreachable as why:
            later = _Later(job, why.sentence, why.again_in or _RETRY_S)
        except SideriteError as why:
            later, error = None, why.sentence
        if later is not None and self._ctx.door.clock() + later.again_in < held.deadline:
            await firmware_settings.waits(
                self._ctx, held, later.job, later.reason, again_in=later.again_in
            )
            return
        error = error if later is None else later.reason
        text = None if error is None else f"Failed to change {job.field} to {job.value}: {error}"
        await firmware_settings.ended(self._ctx, held, job, text)

    async def _go_on(self, node: Node, job: SettingJob) -> _Later | None:
        """One round trip further; None once the machine has changed."""
        driver = self._drivers.get(node.driver)
        name = firmware_settings.ABILITY[job.field]
        if driver is None or ability(driver, node, name) is None:
            raise unsupported(node, name)
        at = Endpoint.of(node)
        if job.task is not None and driver.tasks is not None:
            return await self._follow(at, driver.tasks, job, msgspec.convert(job.task, Task))
        task = await self._set(at, driver, job)
        if task is None:
            return None
        begun = msgspec.structs.replace(job, task=msgspec.to_builtins(task))
        return _Later(begun, f"the BMC has begun with {task.doing}", _SOON_S)

    async def _follow(
        self, at: Endpoint, tasks: Tasks, job: SettingJob, task: Task
    ) -> _Later | None:
        patience_s = self._ctx.settings.hardware_timeout_s
        end = await bounded(at, task.doing, tasks.ask(at, task), patience_s)
        if end is TaskEnd.DONE:
            return None
        if end is TaskEnd.LOST:
            anew = msgspec.structs.replace(job, task=None)
            return _Later(anew, f"the BMC has forgotten its task for {task.doing}", _RETRY_S)
        if end.is_running:
            return _Later(job, end.reason, end.again_in)
        if job.looks >= _MOST_LOOKS:
            return None
        looked = msgspec.structs.replace(job, looks=job.looks + 1)
        return _Later(looked, end.reason, end.again_in)

    async def _set(self, at: Endpoint, driver: Driver, job: SettingJob) -> Task | None:
        if job.field == "boot_mode" and driver.boot_modes is not None:
            call = driver.boot_modes.set_boot_mode(at, BootMode(str(job.value)))
        elif driver.secure_boot is not None:
            call = driver.secure_boot.set_secure_boot(at, bool(job.value))
        else:
            raise HardwareError
        doing = job.field.replace("_", " ")
        return await bounded(at, doing, call, self._ctx.settings.hardware_timeout_s)
