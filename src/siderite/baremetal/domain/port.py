"""A port as a value: a network interface of a node, known by its MAC address."""

from siderite.baremetal.domain.node import Json
from siderite.baremetal.domain.node_machine import P
from siderite.baremetal.domain.record import Record

VIF = "tenant_vif_port_id"
"""Where `internal_info` keeps the virtual interface that a client attached."""
_VIFS = (
    "cleaning_vif_port_id", "provisioning_vif_port_id", "rescuing_vif_port_id",
    "inspection_vif_port_id", VIF,
)  # fmt: skip
"""All the places in `internal_info` that say what is attached to a port."""

WIRING = frozenset({
    "node_uuid", "portgroup_uuid", "pxe_enabled", "local_link_connection", "physical_network",
})  # fmt: skip
"""What says how a port is connected: it is changed only while nothing depends on it."""

REWIRABLE = (P.ENROLL, P.INSPECTING, P.INSPECTWAIT, P.MANAGEABLE)
"""States of its node in which a port's wiring may be changed."""


class Port(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that is recorded of a port."""

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

    @property
    def vif(self) -> str | None:
        """What is attached to it, by a client or for a while by the service."""
        return next((str(self.internal_info[k]) for k in _VIFS if self.internal_info.get(k)), None)

    @property
    def tenant_vif(self) -> str | None:
        """The virtual interface that a client attached to it."""
        return tenant_vif(self.internal_info, self.extra)


def tenant_vif(internal_info: Json, extra: Json) -> str | None:
    """The virtual interface that a client attached; old clients write it into `extra`."""
    found = internal_info.get(VIF) or extra.get("vif_port_id")
    return None if found is None else str(found)
