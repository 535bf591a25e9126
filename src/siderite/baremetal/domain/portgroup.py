"""A portgroup as a value: several ports of a node that are used as one."""

from siderite.baremetal.domain.node import Json
from siderite.baremetal.domain.port import tenant_vif
from siderite.baremetal.domain.record import Record


class Portgroup(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that is recorded of a portgroup."""

    node_uuid: str
    name: str | None = None
    address: str | None = None
    extra: Json = {}
    internal_info: Json = {}
    standalone_ports_supported: bool = True
    mode: str = "active-backup"
    properties: Json = {}
    physical_network: str | None = None
    category: str | None = None
    dynamic_portgroup: bool = False

    @property
    def tenant_vif(self) -> str | None:
        """The virtual interface that a client attached to it."""
        return tenant_vif(self.internal_info, self.extra)
