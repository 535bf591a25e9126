"""The driver of simulated machines: `fake-hardware`. It keeps to the same contract as those of real
ones.
"""

from siderite.baremetal.domain.driver_card import DriverCard
from siderite.baremetal.domain.node import INTERFACES
from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import Failed
from siderite.baremetal.domain.outcome import Outcome
from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.domain.power import PowerState
from siderite.baremetal.domain.power import PowerTarget
from siderite.baremetal.domain.steps import Family
from siderite.baremetal.domain.steps import Step
from siderite.baremetal.drivers.contract import Driver
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.properties import SIMULATED
from siderite.baremetal.drivers.simulated import effects
from siderite.baremetal.drivers.simulated.bmc import SimulatedBmc
from siderite.baremetal.drivers.simulated.console import SimulatedConsole
from siderite.baremetal.drivers.simulated.machines import OFF
from siderite.baremetal.drivers.simulated.machines import Machines

_MAINTAIN = [
    Step("deploy", "erase_devices", abortable=True, in_band=True),
    Step("deploy", "burnin_cpu", abortable=True, in_band=True),
    Step("deploy", "burnin_memory", abortable=True, in_band=True),
    Step("raid", "create_configuration"),
    Step("raid", "delete_configuration"),
    Step("bios", "apply_configuration"),
    Step("bios", "factory_reset"),
    Step("firmware", "update"),
    Step("management", "reset_bmc"),
    Step("management", "clear_job_queue"),
    Step("power", "noop"),
]

STEPS: dict[Family, list[Step]] = {
    Family.CLEAN: [
        Step("deploy", "erase_devices_metadata", 99, abortable=True, in_band=True),
        *_MAINTAIN,
        Step("vendor", "log_passthrough"),
    ],
    Family.DEPLOY: [
        Step("deploy", "write_image", 80, in_band=True),
        *_MAINTAIN[3:],
    ],
    Family.SERVICE: _MAINTAIN,
    Family.INSPECT: [Step("inspect", "inspect", 100, in_band=True)],
    Family.ADOPT: [Step("deploy", "take_over", 100)],
    Family.RESCUE: [Step("rescue", "boot_rescue", 100, in_band=True)],
    Family.UNRESCUE: [Step("rescue", "boot_instance", 100)],
    Family.TEARDOWN: [Step("deploy", "tear_down", 100)],
    Family.VERIFY: [],
}

_CAN_RUN_UNREACHABLE_S = 2.0
_OFF_AFTERWARDS = {Family.CLEAN, Family.INSPECT}
"""Work that a ramdisk is booted for on a machine that is off, as its record says meanwhile."""


class _Simulated:
    """Power and steps of simulated machines."""

    def __init__(self, machines: Machines) -> None:
        self._machines = machines

    async def read(self, at: Endpoint) -> PowerState:
        if self._machines.script(at).unreachable:
            return PowerState.UNKNOWN
        return PowerState(self._machines.power(at))

    async def set(self, at: Endpoint, to: PowerTarget, token: str) -> Outcome:
        script = self._machines.script(at)
        if script.audit:
            self._machines.write_down(at.node, token)
        if script.unreachable:
            return Wait(f"the BMC of node {at.node} does not answer", _CAN_RUN_UNREACHABLE_S)
        why = script.failure(f"power.{to}", "power")
        if why is not None:
            return Failed(f"the BMC refused {to}: {why}")
        latency = script.latency(self._machines.chance(), f"power.{to}", "power")
        run = self._machines.run(at, f"power.{to}", token, latency, calls=False)
        if run.lost:  # a BMC that has power again is told again
            run = self._machines.run_anew(at, token, latency)
        if not run.ended:
            return Wait(
                f"the machine is busy with {to}", max(0.01, run.ends - self._machines.clock())
            )
        self._machines.set_power(at, to.leads_to.value)
        return Done()

    async def steps(self, at: Endpoint, family: Family) -> list[Step]:
        return STEPS[family]

    async def frame(self, at: Endpoint, family: Family, chosen: list[Step]) -> list[Step]:
        return chosen

    async def run(self, at: Endpoint, family: Family, step: Step, token: str) -> Outcome:
        script = self._machines.script(at)
        if script.audit:
            self._machines.write_down(at.node, token)
        name = f"{step.interface}.{step.step}"
        if script.unreachable and not step.in_band:
            return Wait(f"the BMC of node {at.node} does not answer", _CAN_RUN_UNREACHABLE_S)
        why = script.failure(name, family)
        if why is not None:
            return Failed(why)
        latency = script.latency(self._machines.chance(), name, family)
        calls = bool(step.in_band and (script.ramdisk or script.silent))
        run = self._machines.run(at, name, token, latency, calls=calls and not script.silent)
        if run.lost and not calls:
            return Failed("the machine lost power meanwhile: see to its power, and ask again")
        if run.lost:
            return Wait(f"the machine lost power during {name}", 5.0, callback=True)
        if not run.ended or (calls and script.silent):
            doing = "the ramdisk" if calls else "the machine"
            left = max(0.01, run.ends - self._machines.clock())
            return Wait(f"{doing} is busy with {name}", left, callback=calls)
        if calls and family in _OFF_AFTERWARDS and not at.stays_on:
            self._machines.set_power(at, OFF)
        return effects.ended(self._machines, at, step)

    async def forget(self, at: Endpoint, token: str, *, back: bool = False) -> None:
        self._machines.forget(at.node, token)


def simulated_driver(machines: Machines, consoles: SimulatedConsole) -> Driver:
    """The hardware type `fake-hardware` over these machines."""
    simulated = _Simulated(machines)
    interfaces: dict[str, tuple[str, ...]] = {kind: ("fake",) for kind in INTERFACES}
    for kind in ("bios", "console", "firmware", "inspect", "raid", "rescue", "vendor"):
        interfaces[kind] = ("fake", f"no-{kind}")
    interfaces["network"] = ("noop", "flat")
    interfaces["storage"] = ("noop", "fake")
    bmc = SimulatedBmc(machines)
    return Driver(
        DriverCard("fake-hardware", interfaces, properties=SIMULATED),
        power=simulated, steps=simulated,
        boot_devices=bmc, boot_modes=bmc, secure_boot=bmc, nmi=bmc, indicators=bmc, sensors=bmc,
        virtual_media=bmc, console=consoles, bios=bmc, firmware=bmc,
    )  # fmt: skip
