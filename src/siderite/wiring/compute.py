"""The compute room."""

from dataclasses import dataclass

from siderite.compute.domain import network
from siderite.compute.domain.facts import EVENT_TYPES
from siderite.compute.domain.image import ImageSource
from siderite.compute.drivers.contract import Drivers
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.context import Settings
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


def compute(base: Base, images: ImageSource) -> Compute:
    """Servers, flavors, hosts; their API, drivers and workers."""
    config = base.config
    drivers: Drivers = {}
    cards = {name: driver.card for name, driver in drivers.items()}
    ctx = Context(base.door, cards, settings(config))
    part = Part(
        services={"compute": ComputeService(ctx, base.identity, images)},
        catalog=(CatalogEntry("compute", "siderite-compute", "/compute/v2.1"),),
        event_types=EVENT_TYPES,
        topic=("nova", "versioned_notifications"),
    )
    return Compute(part, ctx)
