"""The hardware type `ipmi`."""

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
from siderite.baremetal.drivers.contract import Driver
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.ipmi.board import IpmiBoard
from siderite.baremetal.drivers.ipmi.console import SerialOverLan
from siderite.baremetal.drivers.ipmi.inside import IpmiInside
from siderite.baremetal.drivers.ipmi.tool import IpmiTool
from siderite.baremetal.drivers.properties import IPMI
from siderite.baremetal.drivers.switch import Switch

_INTERFACES: dict[str, tuple[str, ...]] = {
    "bios": ("no-bios",),
    "boot": ("ipxe",),
    "console": ("ipmitool-socat", "no-console"),
    "deploy": ("direct", "noop"),
    "firmware": ("no-firmware",),
    "inspect": ("agent", "ipmitool", "no-inspect"),
    "management": ("ipmitool",),
    "network": ("noop", "flat"),
    "power": ("ipmitool",),
    "raid": ("no-raid",),
    "rescue": ("no-rescue", "agent"),
    "storage": ("noop",),
    "vendor": ("no-vendor",),
}


def ipmi_driver(
    tool: IpmiTool, consoles: SerialOverLan, ramdisks: Ramdisks, agent: Agent
) -> Driver:
    """The hardware type that ipmitool drives."""
    board, inside = IpmiBoard(tool), IpmiInside(tool)
    switch = Switch(board)

    async def inspect(at: Endpoint, step: Step, token: str) -> Outcome:
        properties, found = await inside.inspect(at)
        return Done({"properties": {**properties, **at.properties}}, found=found)

    steps = AgentSteps(
        Booter(switch, board, None, ramdisks), agent,
        own={Family.INSPECT: [INSPECT]}, extra={"inspect.inspect": inspect},
    )  # fmt: skip
    lacks = Ready(ramdisks).lacks
    card = DriverCard("ipmi", _INTERFACES, ("ipmi_address",), lacks=lacks, properties=IPMI)
    return Driver(
        card, power=switch, steps=steps, boot_devices=board, nmi=board, indicators=board,
        sensors=board, console=consoles,
    )  # fmt: skip
