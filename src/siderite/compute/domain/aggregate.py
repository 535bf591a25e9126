"""Hosts put together: by a zone that users may ask for, and by metadata that flavors ask for."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import msgspec

from siderite.compute.domain.host import DEFAULT_ZONE
from siderite.core.errors import SideriteError
from siderite.core.times import iso

ZONE = "availability_zone"


class Aggregate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A named set of hosts. Its zone is one of its metadata."""

    uuid: str
    version: int = 1
    created_at: str
    updated_at: str | None = None
    name: str
    metadata: dict[str, str] = {}
    hosts: list[str] = []

    @property
    def zone(self) -> str | None:
        """The zone that its hosts are in by it."""
        return self.metadata.get(ZONE)

    def changed(self, now: float, changes: Mapping[str, Any]) -> "Aggregate":
        """The aggregate with these fields changed, one version on."""
        return msgspec.structs.replace(
            self, version=self.version + 1, updated_at=iso(now), **changes
        )


class Place(msgspec.Struct, frozen=True, eq=False):
    """What all aggregates of a host say of it; hosts of the same aggregates share one."""

    zone: str
    aggregate_metadata: Mapping[str, frozenset[str]]
    hosts: frozenset[str]
    """All that are there; of those in no aggregate they are not known."""


NOWHERE = Place(DEFAULT_ZONE, {}, frozenset())
"""Where hosts are that are in no aggregate."""


class Atlas:
    """Where hosts are by their aggregates."""

    def __init__(self, aggregates: Sequence[Aggregate] = ()) -> None:
        memberships: dict[str, tuple[int, ...]] = {}
        for at, aggregate in enumerate(aggregates):
            for host in aggregate.hosts:
                memberships[host] = (*memberships.get(host, ()), at)
        together: dict[tuple[int, ...], list[str]] = {}
        for host, numbers in memberships.items():
            together.setdefault(numbers, []).append(host)
        self.places = [
            _place([aggregates[at] for at in numbers], hosts) for numbers, hosts in together.items()
        ]
        self._of = {host: place for place in self.places for host in place.hosts}

    def place(self, host: str) -> Place:
        """Where a host is."""
        return self._of.get(host, NOWHERE)


def _place(aggregates: Sequence[Aggregate], hosts: Sequence[str]) -> Place:
    metadata: dict[str, set[str]] = {}
    zone = None
    for aggregate in aggregates:
        zone = aggregate.zone or zone
        for key, value in aggregate.metadata.items():
            metadata.setdefault(key, set()).add(value)
    said = {key: frozenset(values) for key, values in metadata.items()}
    return Place(zone or DEFAULT_ZONE, said, frozenset(hosts))


def check_zones(
    after: Aggregate, others: Iterable[Aggregate], refusal: type[SideriteError]
) -> None:
    """Refuse what would put a host into two zones, that of the aggregate and of others."""
    if after.zone is None:
        return
    for other in others:
        if other.zone in (None, after.zone):
            continue
        both = sorted(set(after.hosts) & set(other.hosts))
        if both:
            raise refusal(
                f"One or more hosts already in availability zone(s) ['{other.zone}']: {both[0]} is"
                f" there by aggregate {other.name}; remove it from that first."
            )


def rezoned(before: Aggregate, after: Aggregate, others: Sequence[Aggregate]) -> list[str]:
    """The hosts that come into another zone with a change of an aggregate, beside these others."""
    then, now = Atlas([*others, before]), Atlas([*others, after])
    touched = dict.fromkeys((*before.hosts, *after.hosts))
    return [host for host in touched if then.place(host).zone != now.place(host).zone]
