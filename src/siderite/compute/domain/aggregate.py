"""Hosts put together: by a zone that users may ask for, and by metadata that flavors ask for."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from siderite.core.errors import Conflict
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


@dataclass(frozen=True, slots=True)
class Place:
    """What all aggregates of a host say of it."""

    zone: str | None
    metadata: Mapping[str, frozenset[str]]


def places_of(aggregates: Sequence[Aggregate]) -> dict[str, Place]:
    """The places of the hosts that are in any of these."""
    names = {host for aggregate in aggregates for host in aggregate.hosts}
    return {name: _place([one for one in aggregates if name in one.hosts]) for name in names}


def _place(aggregates: Sequence[Aggregate]) -> Place:
    metadata: dict[str, set[str]] = {}
    zone = None
    for aggregate in aggregates:
        zone = aggregate.zone or zone
        for key, value in aggregate.metadata.items():
            metadata.setdefault(key, set()).add(value)
    return Place(zone, {k: frozenset(v) for k, v in metadata.items()})


def check_zones(after: Aggregate, others: Iterable[Aggregate]) -> None:
    """Refuse what would put a host into two zones."""
    if after.zone is None:
        return
    for other in others:
        if other.uuid == after.uuid or other.zone in (None, after.zone):
            continue
        both = sorted(set(after.hosts) & set(other.hosts))
        if both:
            raise Conflict(
                f"One or more hosts already in availability zone(s) ['{other.zone}']: {both[0]} is"
                f" there by aggregate {other.name}."
            )
