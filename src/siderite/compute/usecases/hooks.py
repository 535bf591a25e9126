"""What creating and placing servers asks of other records: keypairs, quotas, zones, groups.

Each is a Protocol with one implementation; a context without it has the plain one below.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from typing import Protocol

from siderite.core.store import Op


@dataclass(frozen=True, slots=True)
class Limits:
    """What a project may have; -1 is without limit."""

    instances: int = 10
    cores: int = 20
    ram_mib: int = 51200
    metadata_items: int = 128
    key_pairs: int = 100
    server_groups: int = 10
    server_group_members: int = 10


class Quotas(Protocol):
    """How much each project may have."""

    async def limits(self, project: str) -> Limits: ...


class Keys(Protocol):
    """Public keys by user and name."""

    async def public_key(self, user: str, name: str) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Place:
    """What aggregates say of a host."""

    zone: str | None = None
    metadata: Mapping[str, frozenset[str]] = field(default_factory=dict)


class Places(Protocol):
    """What aggregates say of all hosts, by the host's name; hosts in none may be missing."""

    async def of_hosts(self) -> Mapping[str, Place]: ...


@dataclass(frozen=True, slots=True)
class Group:
    """A server group: affinity, anti-affinity, soft-affinity, soft-anti-affinity."""

    uuid: str
    project: str
    policy: str
    max_server_per_host: int = 1


class Groups(Protocol):
    """Server groups by their UUID. Who is in one, the servers themselves say."""

    async def group(self, uuid: str) -> Group | None: ...

    async def join(self, uuid: str, count: int, limit: int) -> list[Op]:
        """The ops by which so many servers come into a group, if the limit still allows them."""
        ...

    async def turn(self, uuid: str) -> list[Op]:
        """The ops that hold only if nobody else of the group was placed since they were asked for;
        none if the group's policy is not strict.
        """
        ...


class Workers(Protocol):
    """The processes that carry out work."""

    async def serve(self, group: str) -> bool:
        """Whether one that acts for a conductor group is up."""
        ...


class PlainQuotas:
    """The same for every project."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    async def limits(self, project: str) -> Limits:
        return self._limits


class NoKeys:
    """There are none."""

    async def public_key(self, user: str, name: str) -> str | None:
        return None


class NoPlaces:
    """No aggregates."""

    async def of_hosts(self) -> Mapping[str, Place]:
        return {}


class AnyWorkers:
    """They are taken to be up."""

    async def serve(self, group: str) -> bool:
        return True


class NoGroups:
    """No groups."""

    async def group(self, uuid: str) -> Group | None:
        return None

    async def join(self, uuid: str, count: int, limit: int) -> list[Op]:
        return []

    async def turn(self, uuid: str) -> list[Op]:
        return []
