"""What a driver is: small Protocols. What a driver cannot do, it does not have.

Every call may be repeated: after a crash the worker asks again with the same token, and a driver
that knows the token answers how that run is going in place of starting it anew. No call waits for
hardware longer than a network round trip: a long thing answers `Wait` and is asked again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from typing import Any
from typing import Protocol

from siderite.baremetal.domain.driver_card import DriverCard
from siderite.baremetal.domain.node import INTERFACES
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.outcome import Outcome
from siderite.baremetal.domain.power import PowerState
from siderite.baremetal.domain.power import PowerTarget
from siderite.baremetal.domain.steps import Family
from siderite.baremetal.domain.steps import Step


@dataclass(frozen=True, slots=True)
class Endpoint:
    """All that a driver needs to know of a node."""

    node: str
    driver_info: Mapping[str, Any]
    properties: Mapping[str, Any]
    instance_info: Mapping[str, Any]
    driver_internal_info: Mapping[str, Any] = field(default_factory=dict)
    """What drivers, and the ramdisk's calls, have left there."""
    interfaces: Mapping[str, str] = field(default_factory=dict)
    """The node's interface of each kind, by name."""

    @classmethod
    def of(cls, node: Node) -> "Endpoint":
        """The endpoint of a node."""
        return cls(
            node.uuid,
            node.driver_info,
            node.properties,
            node.instance_info,
            node.driver_internal_info,
            {kind: getattr(node, f"{kind}_interface") or "" for kind in INTERFACES},
        )


class Power(Protocol):
    """Switching and reading power."""

    async def read(self, at: Endpoint) -> PowerState:
        """What the hardware says; UNKNOWN if it cannot tell. Changes nothing."""
        ...

    async def set(self, at: Endpoint, to: PowerTarget, token: str) -> Outcome:
        """Begin, or tell of, one change of power. Repeating it with the token is harmless."""
        ...


class Steps(Protocol):
    """The pieces of provisioning."""

    async def steps(self, at: Endpoint, family: Family) -> list[Step]:
        """What the driver can do for this kind of work; those with a priority are done unasked."""
        ...

    async def run(self, at: Endpoint, family: Family, step: Step, token: str) -> Outcome:
        """Begin, or tell of, one run of a step. Repeating it with the token is harmless."""
        ...

    async def forget(self, at: Endpoint, token: str) -> None:
        """The run is no longer wanted: stop it if that can be done, and leave no ramdisk behind."""
        ...


@dataclass(frozen=True, slots=True)
class Driver:
    """A hardware type: its card for others to read, and what it can do."""

    card: DriverCard
    power: Power
    steps: Steps


Drivers = Mapping[str, Driver]
