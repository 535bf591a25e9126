"""The hardware type `redfish`."""

from siderite.baremetal.domain.driver_card import DriverCard
from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import Outcome
from siderite.baremetal.domain.steps import Family
from siderite.baremetal.domain.steps import Step
from siderite.baremetal.drivers.agent import Agent
from siderite.baremetal.drivers.agent import AgentSteps
from siderite.baremetal.drivers.agent import Booter
from siderite.baremetal.drivers.agent import Ramdisks
from siderite.baremetal.drivers.agent.ready import Ready
from siderite.baremetal.drivers.agent.steps import INSPECT
from siderite.baremetal.drivers.contract import Console
from siderite.baremetal.drivers.contract import Driver
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.properties import REDFISH
from siderite.baremetal.drivers.redfish.board import RedfishBoard
from siderite.baremetal.drivers.redfish.button import RedfishButton
from siderite.baremetal.drivers.redfish.console import RedfishConsole
from siderite.baremetal.drivers.redfish.firmware import STEPS as FIRMWARE_STEPS
from siderite.baremetal.drivers.redfish.firmware import RedfishFirmware
from siderite.baremetal.drivers.redfish.inside import RedfishInside
from siderite.baremetal.drivers.redfish.lines import Lines
from siderite.baremetal.drivers.redfish.media import RedfishMedia
from siderite.baremetal.drivers.redfish.parts import Parts
from siderite.baremetal.drivers.redfish.settings import STEPS
from siderite.baremetal.drivers.redfish.settings import RedfishSettings
from siderite.baremetal.drivers.redfish.tasks import RedfishTasks
from siderite.baremetal.drivers.switch import Switch

_INTERFACES: dict[str, tuple[str, ...]] = {
    "bios": ("redfish", "no-bios"),
    "boot": ("redfish-virtual-media", "ipxe"),
    "console": ("redfish", "no-console"),
    "deploy": ("direct", "ramdisk", "noop"),
    "firmware": ("redfish", "no-firmware"),
    "inspect": ("redfish", "agent", "no-inspect"),
    "management": ("redfish",),
    "network": ("noop", "flat"),
    "power": ("redfish",),
    "raid": ("no-raid",),
    "rescue": ("no-rescue", "agent"),
    "storage": ("noop",),
    "vendor": ("no-vendor",),
}


def redfish_driver(lines: Lines, ramdisks: Ramdisks, agent: Agent, sol: Console) -> Driver:
    """The hardware type over these lines; `sol` carries serial over LAN."""
    tasks = RedfishTasks(lines)
    switch = Switch(RedfishButton(lines), tasks=tasks)
    board, media, inside = RedfishBoard(lines), RedfishMedia(lines), RedfishInside(lines)
    parts = Parts(lines, switch, inside, tasks)
    settings = RedfishSettings(parts)

    async def inspect(at: Endpoint, step: Step, token: str) -> Outcome:
        properties, found = await inside.inspect(at)
        return Done({"properties": {**at.properties, **properties}}, found=found)

    out_of_band = [*STEPS, *FIRMWARE_STEPS]
    steps = AgentSteps(
        Booter(switch, board, media, ramdisks, tasks),
        agent,
        own={
            Family.INSPECT: [INSPECT],
            **dict.fromkeys((Family.CLEAN, Family.DEPLOY, Family.SERVICE), out_of_band),
        },
        extra={
            "inspect.inspect": inspect,
            "bios.apply_configuration": settings.apply,
            "bios.factory_reset": settings.reset,
            "firmware.update": RedfishFirmware(parts).update,
        },
    )
    ready = Ready(ramdisks)
    card = DriverCard(
        "redfish", _INTERFACES, ("redfish_address",), lacks=ready.lacks, properties=REDFISH
    )
    return Driver(
        card, power=switch, steps=steps, boot_devices=board, boot_modes=board, secure_boot=board,
        nmi=board, indicators=board, sensors=inside, virtual_media=media, bios=inside,
        firmware=inside, console=RedfishConsole(lines, sol), tasks=tasks,
    )  # fmt: skip
