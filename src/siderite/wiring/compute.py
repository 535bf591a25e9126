"""The compute room."""

from dataclasses import dataclass

from siderite.compute.domain import network
from siderite.compute.domain.facts import EVENT_TYPES
from siderite.compute.domain.image import ImageSource
from siderite.compute.domain.record_facts import EVENT_TYPES as RECORD_EVENT_TYPES
from siderite.compute.drivers.contract import Drivers
from siderite.compute.usecases.aggregates import StoredPlaces
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.context import Settings
from siderite.compute.usecases.hooks import Limits
from siderite.compute.usecases.keypairs import StoredKeys
from siderite.compute.usecases.quotas import StoredQuotas
from siderite.compute.usecases.server_groups import StoredGroups
from siderite.compute.web.service import ComputeService
from siderite.core.config import Config
from siderite.identity import CatalogEntry
from siderite.wiring.part import Base
from siderite.wiring.part import Part


@dataclass(frozen=True, slots=True)
class Compute:
    """The room, and those of its parts that others ask for by name."""

    part: Part
    context: Context


def settings(config: Config) -> Settings:
    """The compute options."""
    return Settings(
        max_limit=config.max_limit,
        deadline_scale=config.deadline_scale,
        cpu_allocation_ratio=config.cpu_allocation_ratio,
        ram_allocation_ratio=config.ram_allocation_ratio,
        disk_allocation_ratio=config.disk_allocation_ratio,
        shutdown_timeout_s=config.shutdown_timeout_s,
        shutdown_retry_interval_s=config.shutdown_retry_interval_s,
        shelved_offload_time_s=config.shelved_offload_time_s,
        reclaim_interval_s=config.reclaim_interval_s,
        use_pending_state=config.use_pending_state,
        networks=network.parse(config.networks),
    )


def limits(config: Config) -> Limits:
    """What a project may have unless it was set otherwise."""
    return Limits(
        instances=config.quota_instances, cores=config.quota_cores, ram_mib=config.quota_ram_mib
    )


def compute(base: Base, images: ImageSource) -> Compute:
    """Servers, flavors, hosts; their API, drivers and workers."""
    config = base.config
    drivers: Drivers = {}
    cards = {name: driver.card for name, driver in drivers.items()}
    ctx = Context(
        base.door, cards, settings(config),
        quotas=StoredQuotas(base.store, limits(config)),
        keys=StoredKeys(base.store),
        places=StoredPlaces(base.store),
        groups=StoredGroups(base.store),
    )  # fmt: skip
    part = Part(
        services={"compute": ComputeService(ctx, base.identity, images)},
        catalog=(CatalogEntry("compute", "siderite-compute", "/compute/v2.1"),),
        event_types=(*EVENT_TYPES, *RECORD_EVENT_TYPES),
        topic=("nova", "versioned_notifications"),
    )
    return Compute(part, ctx)
