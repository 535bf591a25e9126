"""The compute room."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

import msgspec

from siderite.compute.domain import network
from siderite.compute.domain.discreet import discreet_facts
from siderite.compute.domain.fact_fields import FIELDS
from siderite.compute.domain.facts import EVENT_TYPES
from siderite.compute.domain.image import ImageSource
from siderite.compute.domain.record_facts import EVENT_TYPES as RECORD_EVENT_TYPES
from siderite.compute.drivers.baremetal import baremetal_driver
from siderite.compute.drivers.contract import Drivers
from siderite.compute.drivers.contract import ImageFiles
from siderite.compute.drivers.libvirt import libvirt_driver
from siderite.compute.drivers.simulated import Guests
from siderite.compute.drivers.simulated import simulated_driver
from siderite.compute.drivers.simulated import simulated_hosts_service
from siderite.compute.usecases import census
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.context import Limits
from siderite.compute.usecases.context import Settings
from siderite.compute.usecases.context import Workers
from siderite.compute.usecases.fleet import asking
from siderite.compute.usecases.fleet.image_cache import KIND as CACHING
from siderite.compute.usecases.server.announced import KIND as ANNOUNCED
from siderite.compute.usecases.server.leaving import KIND as LEFT
from siderite.compute.usecases.server.unwanted import KIND as UNWANTED
from siderite.compute.web.network.networks import NetworkService
from siderite.compute.web.server.console_proxy import ConsoleProxy
from siderite.compute.web.service import ComputeService
from siderite.compute.workers.announced import AnnouncedWork
from siderite.compute.workers.consoles import DriverConsoles
from siderite.compute.workers.consoles import screens_of
from siderite.compute.workers.hands import Hands
from siderite.compute.workers.host_watch import HostWatch
from siderite.compute.workers.image_caches import CachingWork
from siderite.compute.workers.image_caches import ImageCaches
from siderite.compute.workers.leaving import LeftWork
from siderite.compute.workers.plans import PLANS
from siderite.compute.workers.power_sync import Lifecycle
from siderite.compute.workers.power_sync import PowerSync
from siderite.compute.workers.relay import AskedWork
from siderite.compute.workers.relay import Relay
from siderite.compute.workers.servers import ServerWork
from siderite.compute.workers.talk import DriverTalk
from siderite.compute.workers.tidying import EvictedWork
from siderite.compute.workers.tidying import Tidying
from siderite.compute.workers.unwanted import UnwantedWork
from siderite.core.census import Census
from siderite.core.config import Config
from siderite.core.singleton import Singleton
from siderite.core.worker import Handler
from siderite.identity import CatalogEntry
from siderite.wiring.baremetal_apis import baremetal_apis
from siderite.wiring.part import Base
from siderite.wiring.part import Job
from siderite.wiring.part import Part


class Compute(msgspec.Struct, frozen=True):
    """The room, and those of its parts that others ask for by name."""

    part: Part
    context: Context
    guests: Guests
    watch: HostWatch
    sync: PowerSync


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
        deleted_servers_keep_s=config.deleted_servers_keep_s,
        image_cache_keep_s=config.image_cache_keep_s,
        use_pending_state=config.use_pending_state,
        pending_timeout_s=config.pending_timeout_s,
        wake_pending=config.wake_pending,
        power_policy=config.server_power_policy,
        console_token_ttl_s=config.console_token_ttl_s,
        networks=network.parse(config.networks),
        limits=Limits(
            instances=config.quota_instances,
            cores=config.quota_cores,
            ram_mib=config.quota_ram_mib,
        ),
    )


class Images(ImageSource, ImageFiles, Protocol):
    """Images for users, for servers and for drivers."""


def compute(base: Base, images: Images, workers: Workers) -> Compute:
    """Servers, flavors, hosts; their API, drivers and workers."""
    config = base.config
    guests = Guests(_guests_file(base), shared=base.store.dialect != "sqlite")
    drivers: Drivers = {
        "simulated": simulated_driver(guests, images),
        "libvirt": libvirt_driver(images, base.data / "snapshots"),
        "baremetal": baremetal_driver(baremetal_apis(base)),
    }
    cards = {name: driver.card for name, driver in drivers.items()}
    ctx = Context(base.door, cards, settings(config), workers)
    acts_on_all = base.role.works and not config.groups
    hands = Hands(ctx, drivers, images, groups=None if acts_on_all else frozenset(config.groups))
    watches = _watches(base, hands)
    consoles = DriverConsoles(hands)
    talk = DriverTalk(hands, watches.hosts)
    proxy = ConsoleProxy(consoles)
    handlers: dict[str, Handler] = {f"server.{kind}": ServerWork(hands).handle for kind in PLANS}
    handlers["evicted"] = EvictedWork(hands).handle
    handlers[LEFT] = LeftWork(hands).handle
    handlers[UNWANTED] = UnwantedWork(hands).handle
    handlers[ANNOUNCED] = AnnouncedWork(hands).handle
    handlers[CACHING] = CachingWork(hands).handle
    asked = AskedWork(hands, talk, consoles, config.url if base.listens else "")
    handlers |= {asking.KIND: asked.handle, asking.ANSWERED: asked.handle}
    part = Part(
        services={
            "compute": ComputeService(ctx, base.identity, images, Relay(hands, talk), consoles),
            "consoles": proxy,
            "network": NetworkService(ctx, base.identity),
            "simulated-hosts": simulated_hosts_service(guests, base.identity),
        },
        catalog=(
            CatalogEntry("compute", "siderite-compute", "/compute/v2.1"),
            CatalogEntry("network", "siderite-network", "/network"),
        ),
        event_types=(*EVENT_TYPES, *RECORD_EVENT_TYPES),
        fields=FIELDS,
        hidden={"server": discreet_facts},
        topic=("nova", "versioned_notifications"),
        measures=(Census("server", partial(census.count, ctx)).measure,),
        handlers=handlers,
        pools=[screens_of(group) for group in config.groups if base.listens],
        jobs=[
            Singleton(base.store, "compute.tidying", Tidying(hands).run).run,
            *watches.jobs,
        ],
        sockets={"consoles": proxy.socket},
        near=("consoles",),
        shifts=(guests.shift,),
        close=partial(_close, drivers),
    )
    return Compute(part, ctx, guests, watches.hosts, watches.power)


class _Watches(msgspec.Struct, frozen=True):
    """What looks after hosts by itself; and the first of each, for who asks at once."""

    hosts: HostWatch
    power: PowerSync
    jobs: Sequence[Job]


def _watches(base: Base, hands: Hands) -> _Watches:
    """One of each for all hosts; or where a process serves some conductor groups only, for each of
    those, and for hosts without one.
    """
    config = base.config
    offers: dict[str, str | None] = {"": None}
    if config.groups:
        offers = {" of hosts without a group": ""}
        offers |= {f" of {group}": group for group in config.groups}
    jobs: list[Job] = []
    looks: list[tuple[HostWatch, PowerSync]] = []
    for name, group in offers.items():
        watch = HostWatch(hands, group)
        sync = PowerSync(
            hands, group, every_s=config.sync_power_state_interval_s,
            at_once=config.sync_power_state_in_flight,
        )  # fmt: skip
        looks.append((watch, sync))
        parts: dict[str, Job] = {
            "host_watch": watch.run,
            "power_sync": sync.run,
            "lifecycle": Lifecycle(hands, sync).run,
            "image_caches": ImageCaches(hands, group).run,
        }
        jobs += [
            Singleton(base.store, f"compute.{what}{name}", run).run for what, run in parts.items()
        ]
    return _Watches(*looks[0], jobs)


def _guests_file(base: Base) -> str:
    """Simulated guests are kept beside the simulated machines."""
    machines = base.config.simulated_db
    folder = Path(machines).parent if machines else base.data
    return str(folder / "simulated-guests.db")


def _close(drivers: Drivers) -> None:
    for driver in drivers.values():
        if driver.close is not None:
            driver.close()
