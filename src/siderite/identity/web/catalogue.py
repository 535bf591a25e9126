"""The service catalogue: which APIs there are and where, as tokens carry it and as lists show it.

It follows from the configuration alone, so it is made once, and its ids are derived from its
names.
"""

from collections.abc import Sequence

import msgspec

from siderite.identity.domain import fixed_id

INTERFACES = ("public", "internal", "admin")


class CatalogEntry(msgspec.Struct, frozen=True):
    """One API: at a path of ours, or at a whole URL elsewhere."""

    type: str
    name: str
    url_path: str

    def url(self, public_url: str) -> str:
        """Where it is."""
        return self.url_path if "://" in self.url_path else public_url + self.url_path


class ServiceRecord(msgspec.Struct, frozen=True):
    """An API, as clients list it."""

    id: str
    type: str
    name: str


class Endpoint(msgspec.Struct, frozen=True):
    """One address of an API."""

    id: str
    service_id: str
    interface: str
    region: str
    url: str


class Catalogue:
    """Services and their endpoints; each service has the same URL on all interfaces."""

    def __init__(self, public_url: str, region: str, entries: Sequence[CatalogEntry]) -> None:
        self.region = region
        own = CatalogEntry("identity", "siderite-identity", "/identity/v3")
        every = (own, *(entry for entry in entries if entry.type != own.type))
        self.services = tuple(
            ServiceRecord(fixed_id(f"service/{entry.type}"), entry.type, entry.name)
            for entry in every
        )
        self.endpoints = tuple(
            Endpoint(
                id=fixed_id(f"endpoint/{region}/{service.type}/{interface}"),
                service_id=service.id,
                interface=interface,
                region=region,
                url=entry.url(public_url),
            )
            for service, entry in zip(self.services, every, strict=True)
            for interface in INTERFACES
        )

    def of_service(self, service_id: str) -> tuple[Endpoint, ...]:
        """The endpoints of one service."""
        return tuple(one for one in self.endpoints if one.service_id == service_id)
