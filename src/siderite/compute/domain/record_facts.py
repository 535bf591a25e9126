"""What is announced of keypairs, aggregates, server groups and hosts, in Nova's payloads."""

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import msgspec

from siderite.compute.domain.aggregate import Aggregate
from siderite.compute.domain.facts import API
from siderite.compute.domain.host import DEFAULT_ZONE
from siderite.compute.domain.host import Host
from siderite.compute.domain.keypair import Keypair
from siderite.compute.domain.server_group import ServerGroup
from siderite.core.fact import Fact

EVENT_TYPES = ("keypair.*.*", "aggregate.*.*", "server_group.*", "service.*")


def _fact(
    event: str, kind: tuple[str, str, str], data: Mapping[str, Any], *, uuid: str,
    project: str | None = None,
) -> Fact:  # fmt: skip
    name, version, resource = kind
    payload = {
        "nova_object.name": name,
        "nova_object.namespace": "nova",
        "nova_object.version": version,
        "nova_object.data": data,
    }
    text = msgspec.json.encode(payload).decode()
    return Fact(event, API, resource, uuid, text, project=project)


def keypair(action: str, key: Keypair) -> tuple[Fact, Fact]:
    """`keypair.create`, `keypair.import` or `keypair.delete`, start and end."""
    data = {
        "user_id": key.user_id,
        "name": key.name,
        "public_key": key.public_key,
        "fingerprint": key.fingerprint,
        "type": key.kind,
    }
    kind = ("KeypairPayload", "1.0", "keypair")
    start, end = (
        _fact(f"keypair.{action}.{phase}", kind, data, uuid=key.uuid) for phase in ("start", "end")
    )
    return start, end


def aggregate(action: str, value: Aggregate, number: int | None) -> tuple[Fact, Fact]:
    """`aggregate.create` and so on, start and end."""
    start, end = (_aggregate(f"{action}.{phase}", value, number) for phase in ("start", "end"))
    return start, end


def _aggregate(event: str, value: Aggregate, number: int | None) -> Fact:
    data = {
        "id": number,
        "uuid": value.uuid,
        "name": value.name,
        "hosts": value.hosts,
        "metadata": value.metadata,
    }
    kind = ("AggregatePayload", "1.1", "aggregate")
    return _fact(f"aggregate.{event}", kind, data, uuid=value.uuid)


def caching(phase: str, value: Aggregate, number: int) -> Fact:
    """`aggregate.cache_images`, start or end: its hosts get images before servers need them."""
    return _aggregate(f"cache_images.{phase}", value, number)


class Cached(msgspec.Struct, frozen=True):
    """What a host got of the images that it was to have, and what not."""

    host: str
    images: list[str]
    failed: list[str]


def cached(value: Aggregate, number: int, found: Cached, place: tuple[int, int]) -> Fact:
    """`aggregate.cache_images.progress`: one host is done, which of how many."""
    data = {
        "id": number,
        "uuid": value.uuid,
        "name": value.name,
        "host": found.host,
        "images_cached": found.images,
        "images_failed": found.failed,
        "index": place[0],
        "total": place[1],
    }
    kind = ("AggregateCachePayload", "1.0", "aggregate")
    return _fact("aggregate.cache_images.progress", kind, data, uuid=value.uuid)


def server_group(action: str, group: ServerGroup, members: Sequence[str]) -> Fact:
    """`server_group.create` or `server_group.delete`."""
    data = {
        "uuid": group.uuid,
        "name": group.name,
        "user_id": group.user_id,
        "project_id": group.project_id,
        "policies": [group.policy],
        "policy": group.policy,
        "rules": group.rules,
        "members": list(members),
        "hosts": None,
    }
    kind = ("ServerGroupPayload", "1.1", "server_group")
    return _fact(f"server_group.{action}", kind, data, uuid=group.uuid, project=group.project_id)


def service(host: Host) -> Fact:
    """`service.update`: whether a host is enabled, forced down, and so on."""
    data = {
        "host": host.name,
        "binary": "nova-compute",
        "topic": "compute",
        "report_count": 0,
        "disabled": host.disabled,
        "disabled_reason": host.disabled_reason,
        "availability_zone": DEFAULT_ZONE,
        "last_seen_up": None,
        "forced_down": host.forced_down,
        "version": 0,
        "uuid": host.uuid,
    }
    kind = ("ServiceStatusPayload", "1.1", "service")
    return _fact("service.update", kind, data, uuid=host.uuid)
