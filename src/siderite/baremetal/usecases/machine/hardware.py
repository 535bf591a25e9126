"""What a request may ask of a machine's hardware while its client waits.

The program fills `Hardware` in with the drivers it has (`workers.hardware`); no transaction is
open meanwhile. Every call raises `Unsupported` if the node's driver or its interface cannot do it,
and `HardwareError` if the machine does not answer in time or refuses.
"""

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Protocol

from siderite.baremetal.domain.driver_card import DriverCard
from siderite.baremetal.domain.hardware import BootDevice
from siderite.baremetal.domain.hardware import BootSetting
from siderite.baremetal.domain.hardware import Indicator
from siderite.baremetal.domain.hardware import Light
from siderite.baremetal.domain.hardware import MediaDevice
from siderite.baremetal.domain.hardware import Medium
from siderite.baremetal.domain.hardware import Sensor
from siderite.baremetal.domain.node import Node
from siderite.core.errors import Invalid
from siderite.core.errors import Unsupported

INTERFACE = {
    "boot_devices": "management",
    "boot_modes": "management",
    "secure_boot": "management",
    "nmi": "management",
    "indicators": "management",
    "sensors": "management",
    "virtual_media": "boot",
    "console": "console",
    "bios": "bios",
    "firmware": "firmware",
}
"""The interface of a node that an ability is part of: `no-console` and the like switch it off."""


def lacking(node: Node, kind: str, what: str) -> str:
    """What is said where the node's interface of a kind, or its driver, cannot do something."""
    return (
        f"Driver {node.driver} does not support {what} (disabled or not implemented): node"
        f" {node.uuid} has {kind}_interface {getattr(node, kind + '_interface')}."
    )


def unsupported(node: Node, ability: str) -> Unsupported:
    """The refusal of what the node's driver cannot do."""
    return Unsupported(lacking(node, INTERFACE[ability], ability.replace("_", " ")))


def gone(node: Node) -> Unsupported:
    """The refusal of anything of a node whose driver there is none of."""
    return Unsupported(f"Driver {node.driver} of node {node.uuid} is not there (any more).")


def card_of(cards: Mapping[str, DriverCard], node: Node) -> DriverCard:
    """The card of the node's driver."""
    card = cards.get(node.driver)
    if card is None:
        raise gone(node)
    return card


def check_reach(cards: Mapping[str, DriverCard], node: Node) -> None:
    """Refuse what is to be done by the node's BMC, if it is plain that nobody gets to that."""
    problem = card_of(cards, node).problem(node)
    if problem is not None:
        raise Invalid(f"Node {node.uuid} cannot be reached: {problem}")


class Hardware(Protocol):
    """The machines behind the nodes."""

    def can(self, node: Node, ability: str) -> bool:
        """Whether the node's driver has an ability, by its name in the drivers' contract."""
        ...

    async def boot_devices(self, node: Node) -> Sequence[BootDevice]: ...
    async def boot_device(self, node: Node) -> BootSetting: ...
    async def set_boot_device(
        self, node: Node, device: BootDevice, *, persistent: bool
    ) -> None: ...
    async def inject_nmi(self, node: Node) -> None: ...
    async def indicators(self, node: Node) -> Sequence[Indicator]: ...
    async def indicator(self, node: Node, component: str, name: str) -> Light: ...
    async def set_indicator(self, node: Node, component: str, name: str, to: Light) -> None: ...
    async def sensors(self, node: Node) -> Sequence[Sensor]: ...
    async def media(self, node: Node) -> Sequence[Medium]: ...
    async def insert(self, node: Node, device: MediaDevice, image_url: str) -> None: ...
    async def eject(self, node: Node, device: MediaDevice) -> None: ...
