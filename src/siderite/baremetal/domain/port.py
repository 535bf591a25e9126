"""A port as a value: a network interface of a node, known by its MAC address."""

from collections.abc import Mapping
from typing import Any

import msgspec

from siderite.baremetal.domain.node import Json
from siderite.baremetal.domain.node_machine import P
from siderite.core.times import iso

_VIFS = (
    "cleaning_vif_port_id", "provisioning_vif_port_id", "rescuing_vif_port_id",
    "inspection_vif_port_id", "tenant_vif_port_id",
)  # fmt: skip
"""Where `internal_info` keeps the virtual interface that is attached to a port."""

WIRING = frozenset({
    "node_uuid", "portgroup_uuid", "pxe_enabled", "local_link_connection", "physical_network",
})  # fmt: skip
"""What says how a port is connected: it is changed only while nothing depends on it."""

REWIRABLE = (P.ENROLL, P.INSPECTING, P.INSPECTWAIT, P.MANAGEABLE)
"""States of its node in which a port's wiring may be changed."""


class Port(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that is recorded of a port."""

    uuid: str
    version: int = 1
    created_at: str
    updated_at: str | None = None
    address: str
    node_uuid: str
    extra: Json = {}
    internal_info: Json = {}
    local_link_connection: Json = {}
    pxe_enabled: bool = True
    portgroup_uuid: str | None = None
    physical_network: str | None = None
    is_smartnic: bool = False
    name: str | None = None
    description: str | None = None
    vendor: str | None = None
    category: str | None = None
    available_for_dynamic_portgroup: bool = True

    def changed(self, now: float, changes: Mapping[str, Any]) -> "Port":
        """The port with these fields changed, one version on."""
        return msgspec.structs.replace(
            self, version=self.version + 1, updated_at=iso(now), **changes
        )

    @property
    def vif(self) -> str | None:
        """The virtual interface that is attached to it."""
        return next((str(self.internal_info[k]) for k in _VIFS if self.internal_info.get(k)), None)
