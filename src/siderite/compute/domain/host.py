"""Hosts have a driver and an address, and one or more hypervisor nodes that offer something."""

from collections.abc import Mapping
from typing import Any

import msgspec

from siderite.core.times import iso

DEFAULT_ZONE = "nova"
"""Where a host is that no aggregate puts elsewhere."""


class Host(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A compute host as it was added; the API's os-services shows it."""

    uuid: str
    version: int = 1
    created_at: str
    updated_at: str | None = None
    name: str
    driver: str
    uri: str = ""
    options: dict[str, str] = {}
    disabled: bool = False
    disabled_reason: str | None = None
    forced_down: bool = False
    conductor_group: str = ""
    """Whose workers alone act on it and its servers; "" is any."""

    def changed(self, now: float, changes: Mapping[str, Any]) -> "Host":
        """The host with these fields changed, one version on."""
        return msgspec.structs.replace(
            self, version=self.version + 1, updated_at=iso(now), **changes
        )


class Amount(msgspec.Struct, frozen=True):
    """What a server takes of a hypervisor node."""

    vcpus: int
    ram_mib: int
    disk_gib: int


class Hypervisor(msgspec.Struct, frozen=True):
    """A hypervisor node: what it offers, and what is claimed of it. Limits have the host's
    overcommitment in them; `vcpus`, `ram_mib` and `disk_gib` do not.
    """

    id: int
    uuid: str
    host: str
    node: str
    type: str
    version: int
    address: str
    cpu_info: str
    resource_class: str | None
    traits: frozenset[str]
    vcpus: int
    ram_mib: int
    disk_gib: int
    vcpus_limit: int
    ram_limit: int
    disk_limit: int
    vcpus_used: int
    ram_used: int
    disk_used: int
    servers: int
    is_available: bool
    why_not: str | None
    driver: str
    disabled: bool
    disabled_reason: str | None
    forced_down: bool
    seen_at: float
    conductor_group: str = ""
    zone: str = DEFAULT_ZONE
    aggregate_metadata: Mapping[str, frozenset[str]] = {}
    kept: Amount | None = None
    """What is kept there for others than the server that is to be placed."""

    def is_up(self, now: float, patience_s: float) -> bool:
        """Whether its host was heard of lately."""
        return not self.forced_down and now - self.seen_at <= patience_s

    @property
    def limits(self) -> Amount:
        """What can be claimed of it; a node that is given out whole is not overcommitted."""
        if self.resource_class is not None:
            return Amount(self.vcpus, self.ram_mib, self.disk_gib)
        return Amount(self.vcpus_limit, self.ram_limit, self.disk_limit)

    @property
    def used(self) -> Amount:
        """What is taken of it; all, of a node that is given out whole and has a server."""
        if self.resource_class is not None and self.servers:
            return self.limits
        return Amount(self.vcpus_used, self.ram_used, self.disk_used)


def carries(server: str) -> str:
    """Why a node that is given out whole is not available while it has this server."""
    return f"carries server {server}"
