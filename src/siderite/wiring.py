"""From configuration to a running program: the only file that knows everything."""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import AsyncIterator
from collections.abc import Coroutine
from collections.abc import Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn

from siderite import clouds
from siderite.baremetal.drivers.simulated import Machines
from siderite.baremetal.drivers.simulated import SimulatorService
from siderite.baremetal.drivers.simulated import simulated_driver
from siderite.baremetal.usecases import callback
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.context import Settings
from siderite.baremetal.web.service import BaremetalService
from siderite.baremetal.workers.cleanup import CleanupAfterAbort
from siderite.baremetal.workers.power import Power
from siderite.baremetal.workers.steps import Steps
from siderite.core import eventlog
from siderite.core import work
from siderite.core.config import Config
from siderite.core.http import App
from siderite.core.ids import new_uuid
from siderite.core.log import get_logger
from siderite.core.store import Store
from siderite.core.store import open_store
from siderite.core.store.migrations import migrate
from siderite.core.transition import Door
from siderite.core.worker import Handler
from siderite.core.worker import Worker
from siderite.demo import fill
from siderite.events import EventsService
from siderite.events import Hub
from siderite.health import HealthService
from siderite.identity import CatalogEntry
from siderite.identity import Identity
from siderite.identity import IdentityService

log = get_logger("wiring")

EVENT_TYPES = tuple(f"baremetal.*.*.{status}" for status in ("start", "end", "error", "success"))
CATALOG = (CatalogEntry("baremetal", "siderite-baremetal", "/baremetal"),)
LANE_WORK = (
    "verify", "clean", "deploy", "service", "inspect", "adopt", "rescue", "unrescue", "teardown",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Program:
    """The parts of one running process."""

    config: Config
    store: Store
    door: Door
    identity: Identity
    baremetal: Context
    machines: Machines
    worker: Worker
    hub: Hub
    app: App


def settings(config: Config) -> Settings:
    """The bare metal options."""
    return Settings(
        automated_clean=config.automated_clean,
        allow_deleting_available_nodes=config.allow_deleting_available_nodes,
        callback_timeout_s=config.callback_timeout_s,
        deadline_scale=config.deadline_scale,
        soft_power_off_timeout_s=config.soft_power_off_timeout_s,
        power_timeout_s=config.power_timeout_s,
        max_limit=config.max_limit,
    )


def _data_directory(config: Config) -> Path:
    data = Path(config.data)
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    return data


async def build(config: Config) -> Program:
    """Open the database, bring it up to date, and put the parts together."""
    data = _data_directory(config)
    store = await open_store(config.database)
    for name in await migrate(store):
        log.info("migrated", name=name)
    if store.dialect == "sqlite":
        await work.forget_leases(store)
    door = Door(store, host=config.host)
    identity = Identity(store, token_ttl_s=config.token_ttl_s)
    await identity.first_start(config.admin_password, partial(clouds.write, config))
    clouds.restore(config)
    machines = Machines(str(data / "simulated.db"))
    drivers = {"fake-hardware": simulated_driver(machines)}
    ctx = Context(door, {name: driver.card for name, driver in drivers.items()}, settings(config))
    steps = Steps(ctx, drivers)
    handlers: dict[str, Handler] = dict.fromkeys(LANE_WORK, steps.handle)
    handlers["power"] = Power(ctx, drivers).handle
    handlers["cleanup"] = CleanupAfterAbort(ctx, drivers).handle
    owner = f"{config.host}:{os.getpid()}:{new_uuid()[:8]}"
    worker = Worker(store, handlers, owner=owner, slots=config.worker_slots)
    door.on_work = worker.kick
    hub = Hub(store)
    door.on_facts(hub.wake)
    authenticated = None if config.baremetal_auth == "none" else identity
    services: dict[str, Any] = {
        "identity": IdentityService(
            identity, public_url=config.url, region=config.region, catalog=CATALOG
        ),
        "baremetal": BaremetalService(ctx, authenticated),
        "simulator": SimulatorService(machines, identity),
        "events": EventsService(hub, identity, known=EVENT_TYPES),
        "": HealthService(store),
    }
    app = App(services, config.url)
    return Program(config, store, door, identity, ctx, machines, worker, hub, app)


@asynccontextmanager
async def carrying_on(program: Program) -> AsyncIterator[None]:
    """Everything that goes on beside answering requests."""

    async def call(node: str) -> None:
        await callback.heartbeat(program.baremetal, node)

    jobs: list[Coroutine[Any, Any, None]] = [
        program.worker.run(),
        program.machines.call_back(call),
        program.hub.run(),
    ]
    if program.store.dialect != "sqlite":
        jobs.append(_place_facts(program))
    if program.config.demo:
        jobs.append(fill(program.baremetal, program.machines, program.config.demo_nodes))
    tasks = [asyncio.create_task(job) for job in jobs]
    try:
        yield
    finally:
        program.hub.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await program.store.close()
        program.machines.close()


async def _place_facts(program: Program) -> None:
    """Give facts their place in the log soon after they are committed (PostgreSQL)."""
    wake = asyncio.Event()
    program.door.on_facts(wake.set)
    while True:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await wake.wait()
        wake.clear()
        try:
            await eventlog.place(program.store)
            program.hub.wake()
        except Exception as why:
            log.warning("cannot place facts in the log", error=repr(why))
            await asyncio.sleep(0.5)
        await asyncio.sleep(0.02)  # many facts at a time cost little more than one


class _Server(uvicorn.Server):
    """A server that says when it listens, and does not wait for those who follow the log."""

    def __init__(self, config: uvicorn.Config, ready: asyncio.Event, hub: Hub) -> None:
        super().__init__(config)
        self._ready = ready
        self._hub = hub

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._hub.close()
        cut = asyncio.get_running_loop().call_later(0.3, partial(self._cut, stopping=True))
        await super().shutdown(sockets)
        cut.cancel()

    async def on_tick(self, counter: int) -> bool:
        if counter % 10 == 0:
            self._cut()
        return await super().on_tick(counter)

    def _cut(self, *, stopping: bool = False) -> None:
        """Let go of streams that were given up, and when stopping of those that nobody reads: such
        a connection is closed when its client has read what is left, that is never.
        """
        for connection in list[Any](self.server_state.connections):
            cycle = connection.cycle
            if cycle is None or cycle.response_complete or not cycle.response_started:
                continue
            if connection.transport.is_closing() or (stopping and connection.flow.write_paused):
                connection.transport.abort()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on SIGINT and SIGTERM, and go on with closing up instead of dying of them."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)


def listen(config: Config) -> socket.socket:
    """The listener: opened first, so that a port that is taken costs nothing else."""
    host, _, port = config.listen.rpartition(":")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host.strip("[]"), int(port)), family=family, backlog=2048)
    except OSError as why:
        raise RuntimeError(
            f"cannot listen on {config.listen}: {why.strerror}; choose another with --listen."
        ) from why


async def serve(program: Program, listener: socket.socket, ready: asyncio.Event) -> None:
    """Answer requests until told to stop."""
    options = uvicorn.Config(
        program.app, loop="uvloop", http="httptools",
        lifespan="off", access_log=False, log_config=None, server_header=False,
        proxy_headers=False, date_header=False,
        timeout_graceful_shutdown=5, timeout_keep_alive=75,
    )  # fmt: skip
    await _Server(options, ready, program.hub).serve([listener])
