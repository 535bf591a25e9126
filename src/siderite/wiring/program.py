"""The parts of one process, put together and kept going."""

import asyncio
import os
from collections.abc import AsyncIterator
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from siderite import __version__
from siderite import clouds
from siderite import openapi
from siderite.baremetal.drivers.simulated import Machines
from siderite.baremetal.usecases.context import Context
from siderite.core import clock
from siderite.core import leases
from siderite.core.config import Config
from siderite.core.http import App
from siderite.core.http import Service
from siderite.core.ids import new_uuid
from siderite.core.log import get_logger
from siderite.core.store import Store
from siderite.core.store import backup
from siderite.core.store import open_store
from siderite.core.store.migrations import migrate
from siderite.core.store.migrations import of_the_future
from siderite.core.transition import WORK
from siderite.core.transition import Door
from siderite.core.waits import Waits
from siderite.core.websocket import SocketHandler
from siderite.core.worker import Handler
from siderite.core.worker import Worker
from siderite.events import Hub
from siderite.health import HealthService
from siderite.identity import Identity
from siderite.identity import IdentityService
from siderite.wiring import options
from siderite.wiring.baremetal import QUERIES
from siderite.wiring.baremetal import baremetal
from siderite.wiring.compute import Compute
from siderite.wiring.compute import compute
from siderite.wiring.console import console
from siderite.wiring.demo_cloud import fill_cloud
from siderite.wiring.events import FACTS
from siderite.wiring.events import events
from siderite.wiring.image import image
from siderite.wiring.keystone import keystone
from siderite.wiring.keystone import who_asks
from siderite.wiring.live_workers import LiveWorkers
from siderite.wiring.part import Base
from siderite.wiring.part import Job
from siderite.wiring.part import Part
from siderite.wiring.part import Role
from siderite.wiring.waits import SHIFTS

log = get_logger("wiring")


class Program(msgspec.Struct, frozen=True):
    """The parts of one running process."""

    config: Config
    store: Store
    door: Door
    identity: Identity
    baremetal: Context
    machines: Machines
    compute: Compute
    worker: Worker
    hub: Hub
    app: App
    sockets: Mapping[str, SocketHandler]
    jobs: tuple[Job, ...]
    closers: tuple[Callable[[], None], ...]

    async def close(self) -> None:
        """Let go of files and connections."""
        await self.store.close()
        for close in self.closers:
            close()


async def build(config: Config, role: Role = Role.ALL, *, listens: bool = True) -> Program:
    """Open the database, bring it up to date, and put the parts together."""
    options.check(config)
    base = replace(await _base(config, role), listens=listens)
    images = image(base)
    iron = baremetal(base, None if config.image_url else images.images)
    stars = compute(base, images.source, LiveWorkers(iron.context))
    rooms: tuple[Part, ...] = (iron.part, stars.part, images.part)
    if config.demo:
        fill = partial(fill_cloud, stars.context, stars.watch, stars.guests, images.images)
        rooms = (*rooms, Part(jobs=(fill,)))
    parts = (*rooms, console(), await events(base, rooms))
    if base.set_back_s:
        for shift in _shifts(parts):
            shift(base.set_back_s)
    worker = _worker(base, parts)
    app = App(_services(base, parts), config.url)
    return Program(
        config, base.store, base.door, base.own_identity, iron.context, iron.machines,
        stars, worker, base.hub, app,
        sockets=_sockets(base, parts),
        jobs=tuple(_jobs(base, worker, parts)),
        closers=tuple(part.close for part in parts if part.close),
    )  # fmt: skip


def _data_directory(config: Config) -> Path:
    data = Path(config.data)
    try:
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as why:
        raise RuntimeError(
            f"cannot make the data directory {data}: {why.strerror}; name another with --data."
        ) from why
    if not os.access(data, os.R_OK | os.W_OK | os.X_OK):
        raise RuntimeError(
            f"cannot write to the data directory {data}: give this user the right to, or name"
            " another with --data."
        )
    backup.finish(data)
    return data


async def _base(config: Config, role: Role) -> Base:
    data = _data_directory(config)
    store = await open_store(config.database)
    if role is not Role.ALL and store.dialect == "sqlite":
        raise RuntimeError(
            f"siderite {role} shares its work with other processes, which the embedded database"
            " cannot; name a PostgreSQL database with --db, or start all in one with siderite up."
        )
    applied = await migrate(store)
    if applied:
        log.info("the database was brought up to date", migrations=len(applied), last=applied[-1])
    newer = await of_the_future(store)
    if newer and store.dialect == "sqlite":
        raise RuntimeError(
            f"the database in {data} is of a newer version of Siderite (it has {newer[0]}); start"
            " that version, or restore a backup that this one made."
        )
    if newer:
        log.warning(
            "the database was brought up to date by a newer version: go on with that, or restore"
            " a backup that this one made",
            has=newer[0],
        )
    await clock.now.look(store)
    back_s = 0.0
    if store.dialect == "sqlite":
        back_s = await Waits(store, clock.now, SHIFTS).begin()
        await leases.forget(store, clock.now())
    door = Door(store, host=config.host)
    hub = Hub(store)
    door.on_facts(hub.wake)
    identity = Identity(store, token_ttl_s=config.token_ttl_s)
    await _first_start(config, identity)
    if role is Role.ALL:
        clouds.follow(config)
    other = keystone(config)
    return Base(
        config, data, store, door, hub, who_asks(identity, other), identity, other, role,
        set_back_s=back_s,
    )  # fmt: skip


async def _first_start(config: Config, identity: Identity) -> None:
    """Make the administrator, once, and keep the password where clients on this machine look."""
    await identity.first_start(config.admin_password, partial(clouds.write, config))
    if not config.admin_password or clouds.password(config) == config.admin_password:
        return
    if await identity.by_password("admin", config.admin_password) is None:
        log.warning(
            "admin_password is not the password of the user admin: it counts at the first start"
            " only; change that user's password as any other's"
        )
        return
    clouds.restore(config)


def _worker(base: Base, parts: tuple[Part, ...]) -> Worker:
    handlers: dict[str, Handler] = {}
    for part in parts:
        handlers |= part.handlers
    owner = f"{base.config.host}:{os.getpid()}:{new_uuid()[:8]}"
    config = base.config
    worker = Worker(
        base.store, handlers, owner=owner, slots=config.worker_slots,
        pools=[*config.groups, *(name for part in parts for name in part.pools)],
        drain_s=config.drain_s,
    )  # fmt: skip
    if base.role.works:
        base.door.hands = worker
    return worker


def _jobs(base: Base, worker: Worker, parts: tuple[Part, ...]) -> Iterator[Job]:
    heard = {FACTS: base.hub.wake}
    for part in parts:
        heard |= part.heard
    if base.role.works:
        heard[WORK] = worker.hear
        yield worker.run
        yield from (job for part in parts for job in part.jobs)
    if base.keystone is not None:
        yield base.keystone.run
    if base.role.serves:
        yield from (job for part in parts for job in part.serving)
    yield partial(base.store.listen, heard)
    if base.store.dialect == "sqlite":
        told = (worker.start_over, *_shifts(parts))
        yield Waits(base.store, clock.now, SHIFTS, told).keep
    else:
        yield partial(clock.now.keep, base.store)


def _shifts(parts: tuple[Part, ...]) -> list[Callable[[float], None]]:
    return [shift for part in parts for shift in part.shifts]


def _sockets(base: Base, parts: tuple[Part, ...]) -> dict[str, SocketHandler]:
    return {
        prefix: handler
        for part in parts
        for prefix, handler in part.sockets.items()
        if base.role.serves or prefix in part.near
    }


def _services(base: Base, parts: tuple[Part, ...]) -> dict[str, Service]:
    if not base.role.serves:
        near = {name: part.services[name] for part in parts for name in part.near}
        return {"": HealthService(base.store), **near}
    catalog = tuple(entry for part in parts for entry in part.catalog)
    measures = [measure for part in parts for measure in part.measures]
    services: dict[str, Service] = {}
    described = partial(
        openapi.document, services, url=base.config.url, version=__version__, queries=QUERIES
    )
    services |= {
        "identity": IdentityService(
            base.own_identity,
            public_url=base.config.url,
            region=base.config.region,
            catalog=catalog,
        ),
        "": HealthService(base.store, measures, described),
    }
    for part in parts:
        services |= part.services
    return services


@asynccontextmanager
async def carrying_on(program: Program) -> AsyncIterator[None]:
    """Everything that goes on beside answering requests."""
    tasks = [asyncio.create_task(job()) for job in program.jobs]
    try:
        yield
    finally:
        program.hub.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await program.close()
