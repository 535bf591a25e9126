"""The bare metal room."""

from collections.abc import Callable
from collections.abc import Sequence
from functools import partial

import msgspec

from siderite.baremetal.domain.fact_fields import FIELDS
from siderite.baremetal.domain.power_truth import Limits
from siderite.baremetal.domain.power_truth import Policy
from siderite.baremetal.drivers.contract import Drivers
from siderite.baremetal.drivers.simulated import Machines
from siderite.baremetal.drivers.simulated import simulator_service
from siderite.baremetal.usecases import census
from siderite.baremetal.usecases.beside import allocate
from siderite.baremetal.usecases.beside import allocations
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.context import Settings
from siderite.baremetal.usecases.life import callback
from siderite.baremetal.usecases.node import children
from siderite.baremetal.web import versions
from siderite.baremetal.web.outside.boot import BootService
from siderite.baremetal.web.service import BaremetalService
from siderite.baremetal.workers.boot_files import BootFiles
from siderite.baremetal.workers.children import ChildSteps
from siderite.baremetal.workers.cleanup import CleanupAfterAbort
from siderite.baremetal.workers.console import Consoles
from siderite.baremetal.workers.firmware_settings import FirmwareSettings
from siderite.baremetal.workers.hardware import DrivenHardware
from siderite.baremetal.workers.power import Power
from siderite.baremetal.workers.power_watch import PowerWatch
from siderite.baremetal.workers.power_watch import Rhythm
from siderite.baremetal.workers.presence import stay
from siderite.baremetal.workers.steps import Steps
from siderite.baremetal.workers.tell_compute import TellCompute
from siderite.core.census import Census
from siderite.core.config import Config
from siderite.core.singleton import Singleton
from siderite.core.worker import Handler
from siderite.demo import fill
from siderite.identity import CatalogEntry
from siderite.image import Images
from siderite.wiring.compute_api import compute_api
from siderite.wiring.drivers import drivers as enabled_drivers
from siderite.wiring.drivers import ramdisk_url
from siderite.wiring.part import Base
from siderite.wiring.part import Job
from siderite.wiring.part import Part
from siderite.wiring.part import Role

EVENT_TYPES = tuple(f"baremetal.*.*.{status}" for status in ("start", "end", "error", "success"))
QUERIES = {
    "/baremetal/v1/nodes": tuple(versions.FILTER_SINCE),
    "/baremetal/v1/ports": tuple(versions.PORT_FILTER_SINCE),
    "/baremetal/v1/chassis": tuple(versions.CHASSIS_FILTER_SINCE),
}
"""Arguments that lists take, by their address."""
LANE_WORK = (
    "verify", "clean", "deploy", "service", "inspect", "adopt", "rescue", "unrescue", "teardown",
)  # fmt: skip


class Baremetal(msgspec.Struct, frozen=True):
    """The room, and those of its parts that others ask for by name."""

    part: Part
    context: Context
    machines: Machines


def settings(config: Config) -> Settings:
    """The bare metal options."""
    return Settings(
        power_off_verified=config.power_off_verified,
        automated_clean=config.automated_clean,
        allow_deleting_available_nodes=config.allow_deleting_available_nodes,
        callback_timeout_s=config.callback_timeout_s,
        deadline_scale=config.deadline_scale,
        soft_power_off_timeout_s=config.soft_power_off_timeout_s,
        soft_power_off_then_hard=config.soft_power_off_then_hard,
        power_timeout_s=config.power_timeout_s,
        power_wait_s=config.power_wait_s,
        hardware_timeout_s=config.hardware_timeout_s,
        agent_require_tls=config.agent_require_tls,
        max_limit=config.max_limit,
        tells_compute=bool(config.compute_endpoint),
    )


def rhythm(config: Config) -> Rhythm:
    """The options of the power watch."""
    return Rhythm(
        interval_s=config.power_watch_interval_s,
        in_flight=config.power_watch_in_flight,
        timeout_s=config.power_read_timeout_s,
        limits=Limits(config.power_unknown_after, config.power_failure_after),
        policy=Policy(config.power_policy),
    )


def baremetal(base: Base, images: Images | None) -> Baremetal:
    """Nodes, ports, chassis; their API, drivers and workers."""
    config = base.config
    machines = Machines(
        config.simulated_db or str(base.data / "simulated.db"),
        shared=base.store.dialect != "sqlite",
    )
    fleet = enabled_drivers(config, base.data, machines, images)
    drivers = fleet.drivers
    cards = {name: driver.card for name, driver in drivers.items()}
    hardware = DrivenHardware(drivers, timeout_s=config.hardware_timeout_s)
    ctx = Context(base.door, cards, settings(config), hardware)
    handlers: dict[str, Handler] = dict.fromkeys(LANE_WORK, Steps(ctx, drivers).handle)
    handlers["power"] = Power(ctx, drivers).handle
    handlers["firmware_setting"] = FirmwareSettings(ctx, drivers).handle
    consoles = Consoles(ctx, drivers)
    handlers["console"] = consoles.handle
    handlers[children.KIND] = ChildSteps(ctx, drivers).handle
    handlers["cleanup"] = CleanupAfterAbort(ctx, drivers).handle
    handlers[allocations.KIND] = partial(allocate.search, ctx)
    jobs: list[Job] = [partial(machines.call_back, partial(_called_back, ctx)), consoles.run]
    jobs += [partial(stay, ctx, ", ".join(config.groups)), *_watches(base, ctx, drivers)]
    jobs.append(BootFiles(ctx, fleet.boot_folder).run)
    api = compute_api(base)
    handlers["tell_compute"] = TellCompute(ctx, api).handle
    if api is not None:
        jobs.append(api.keep_open)
    if config.demo and base.role is Role.ALL:
        jobs.append(partial(fill, ctx, machines, config.demo_nodes))
    authenticated = None if config.baremetal_auth == "none" else base.identity
    part = Part(
        services={
            "baremetal": BaremetalService(ctx, authenticated),
            "boot": BootService(ctx, fleet.boot_folder, ramdisk_url(config)),
            "simulator": simulator_service(machines, base.identity),
        },
        catalog=(CatalogEntry("baremetal", "siderite-baremetal", "/baremetal"),),
        measures=(Census("node", partial(census.count, ctx)).measure,),
        handlers=handlers,
        jobs=jobs,
        event_types=EVENT_TYPES,
        fields=FIELDS,
        remembered=("node",),
        topic=("ironic", "ironic_versioned_notifications"),
        shifts=(machines.shift,),
        close=partial(_close, (machines.close, *fleet.closers)),
    )
    return Baremetal(part, ctx, machines)


def _watches(base: Base, ctx: Context, drivers: Drivers) -> list[Job]:
    """The power watch: one for all nodes, or where a process serves some conductor groups only, one
    for each of those and one for nodes without a group.
    """
    config = base.config
    if config.power_watch_interval_s <= 0:
        return []
    groups = config.groups
    offers: dict[str, str | None] = {f"power watch of {group}": group for group in groups}
    offers |= {"power watch of nodes without a group": ""} if groups else {"power watch": None}
    return [
        Singleton(base.store, name, PowerWatch(ctx, drivers, rhythm(config), group).run).run
        for name, group in offers.items()
    ]


async def _called_back(ctx: Context, node: str) -> None:
    await callback.heartbeat(ctx, node)


def _close(closers: Sequence[Callable[[], None]]) -> None:
    for close in closers:
        close()
