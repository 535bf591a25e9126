"""The workloads of the compute API, on simulated hosts: read, boot, stop and start servers.

`site` makes the hosts, the flavor and the image once. One client lists all servers concerned for
everybody who waits, as in `watch`.
"""

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from dataclasses import replace
from typing import Any

from bench import load
from bench.address import Address
from bench.client import Client
from bench.figure import Figure
from bench.figure import Measured
from bench.figure import Unit
from bench.polling import Polling
from bench.polling import rest
from bench.stage import Stage

HOSTS = 20
LISTED = 1000
CROWD = 1000
_PATIENCE_S = 300.0
_OCTETS = "application/octet-stream"


class ServerFailed(Exception):
    """A server went where it should not, or a request was refused."""


@dataclass(frozen=True, slots=True)
class Site:
    """Where servers are asked for, and what of."""

    address: Address
    flavor: str
    image: str

    def body(self, name: str) -> bytes:
        """The request for a server."""
        server = {"name": name, "flavorRef": self.flavor, "imageRef": self.image,
                  "networks": "auto"}  # fmt: skip
        return json.dumps({"server": server}).encode()


_sites: dict[str, Site] = {}


def site(stage: Stage) -> Site:
    """The site of a stage, made when it is first asked for."""
    root = stage.address.root
    if root not in _sites:
        _sites[root] = load.run(_make(stage.address.root_of("")))
    return _sites[root]


async def _make(address: Address) -> Site:
    async with Client(address) as client:

        async def ask(method: str, path: str, body: Any) -> Any:
            reply = await client.send(method, path, json.dumps(body).encode())
            if reply.status >= 300:
                raise ServerFailed(f"{method} {path}: {reply.status} {reply.body[:300].decode()}")
            return json.loads(reply.body) if reply.body else None

        compute = "/compute/v2.1"
        for number in range(HOSTS):
            options = {"vcpus": "2000", "ram_mib": "4000000", "disk_gib": "100000"}
            host = {"name": f"bench-{number}", "uri": "simulated:", "options": options}
            await ask("POST", f"{compute}/hosts", {"host": host})
        flavor = {"name": "bench", "ram": 64, "vcpus": 1, "disk": 1}
        flavor_id = (await ask("POST", f"{compute}/flavors", {"flavor": flavor}))["flavor"]["id"]
        image = {"name": "bench", "disk_format": "raw", "container_format": "bare"}
        image_id = (await ask("POST", "/image/v2/images", image))["id"]
        put = await client.send("PUT", f"/image/v2/images/{image_id}/file", b"x" * 512, _OCTETS)
        if put.status != 204:
            raise ServerFailed(f"uploading: {put.status} {put.body[:300].decode()}")
        return Site(replace(address, prefix=compute), flavor_id, image_id)


Reached = Callable[[dict[str, Any] | None], bool]


def rests_in(status: str) -> Reached:
    """Whether a server has a status, and nothing is being done to it."""
    return lambda seen: (
        seen is not None and seen["status"] == status and seen["OS-EXT-STS:task_state"] is None
    )


def is_gone(seen: dict[str, Any] | None) -> bool:
    """Whether a server is not there any more."""
    return seen is None


class Watch(Polling[dict[str, Any] | None]):
    """Lists the servers of a name while it is open."""

    def __init__(self, address: Address, name: str) -> None:
        super().__init__()
        self._address = address
        self._name = name

    async def until(self, uuid: str, reached: Reached) -> None:
        """Back when the server is there; raises ServerFailed when it is in error."""
        async with asyncio.timeout(_PATIENCE_S):
            await super().until(uuid, reached)

    async def _poll(self) -> None:
        async with Client(self._address) as client:
            while True:
                begin = time.perf_counter()
                asked = set(self._waiting)
                if not asked:
                    await rest()
                    continue
                reply = await client.send("GET", f"/servers/detail?limit=1000&name=^{self._name}-")
                took_s = time.perf_counter() - begin
                if reply.status == 200:
                    found = {one["id"]: one for one in json.loads(reply.body)["servers"]}
                    for uuid in asked & set(self._waiting):
                        self._look(uuid, found.get(uuid))
                await rest(took_s)

    def _failure(self, uuid: str, seen: dict[str, Any] | None) -> Exception | None:
        if seen is None or seen["status"] != "ERROR":
            return None
        return ServerFailed(f"{uuid}: {seen.get('fault')}")


async def create(client: Client, place: Site, name: str) -> str:
    """The id of a server that was asked for."""
    reply = await client.send("POST", "/servers", place.body(name))
    if reply.status != 202:
        raise ServerFailed(f"creating {name}: {reply.status} {reply.body[:300].decode()}")
    return str(json.loads(reply.body)["server"]["id"])


def boot(stage: Stage) -> Measured:
    """Servers per second from the request to ACTIVE to gone, so many at once."""
    place, plan = site(stage), stage.plan
    samples, problems = list[float](), list[str]()
    for number in range(plan.cycle_rounds):
        rate, failures = load.run(
            _boot(place, f"boot{number}", at_once=plan.at_once, lives=plan.lives)
        )
        samples.append(rate)
        problems += failures
    return Measured(Figure(Unit.RATE, tuple(samples), len(problems), tuple(problems[:3])))


async def _boot(place: Site, name: str, *, at_once: int, lives: int) -> tuple[float, list[str]]:
    problems: list[str] = []
    async with AsyncExitStack() as stack:
        watch = await stack.enter_async_context(Watch(place.address, name))
        crowd = [await stack.enter_async_context(Client(place.address)) for _ in range(at_once)]

        async def live(number: int) -> None:
            client = crowd[number]
            try:
                for life in range(lives):
                    uuid = await create(client, place, f"{name}-{number}-{life}")
                    await watch.until(uuid, rests_in("ACTIVE"))
                    await client.send("DELETE", f"/servers/{uuid}")
                    await watch.until(uuid, is_gone)
            except (ServerFailed, TimeoutError) as problem:
                problems.append(str(problem) or "not done in time")

        begin = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for number in range(at_once):
                group.create_task(live(number))
        done = (at_once - len(problems)) * lives
        return done / (time.perf_counter() - begin), problems


def switch(stage: Stage) -> Measured:
    """Stops and starts per second, so many servers at once, each waited for."""
    place, plan = site(stage), stage.plan
    samples, problems = list[float](), list[str]()
    for number in range(plan.cycle_rounds):
        rate, failures = load.run(
            _switch(place, f"switch{number}", at_once=plan.at_once, turns=2 * plan.lives)
        )
        samples.append(rate)
        problems += failures
    return Measured(Figure(Unit.RATE, tuple(samples), len(problems), tuple(problems[:3])))


async def _switch(place: Site, name: str, *, at_once: int, turns: int) -> tuple[float, list[str]]:
    problems: list[str] = []
    changes = 0
    async with AsyncExitStack() as stack:
        watch = await stack.enter_async_context(Watch(place.address, name))
        crowd = [await stack.enter_async_context(Client(place.address)) for _ in range(at_once)]

        async def made(number: int) -> str:
            uuid = await create(crowd[number], place, f"{name}-{number}")
            await watch.until(uuid, rests_in("ACTIVE"))
            return uuid

        async def turn(number: int, uuid: str) -> None:
            nonlocal changes
            for action, status in (("os-stop", "SHUTOFF"), ("os-start", "ACTIVE")) * turns:
                body = json.dumps({action: None}).encode()
                reply = await crowd[number].send("POST", f"/servers/{uuid}/action", body)
                if reply.status != 202:
                    problems.append(f"{action}: {reply.status} {reply.body[:200].decode()}")
                    return
                await watch.until(uuid, rests_in(status))
                changes += 1

        uuids = await asyncio.gather(*(made(number) for number in range(at_once)))
        begin = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for number, uuid in enumerate(uuids):
                group.create_task(turn(number, uuid))
        rate = changes / (time.perf_counter() - begin)
        for number, uuid in enumerate(uuids):
            await crowd[number].send("DELETE", f"/servers/{uuid}")
        return rate, problems


def crowd(stage: Stage) -> Measured:
    """The slowest percent of GETs while a thousand servers boot at once, against an idle service's.
    The crowd's own time is in the notes.
    """
    place = site(stage)
    idle, busy, took_s = load.run(_crowd(place, f"crowd{time.time_ns() % 10**6}"))
    notes = (f"{CROWD} servers became ACTIVE in {took_s:.1f} s",)
    return Measured(Figure(Unit.TIME, (busy,), 0, notes), Figure(Unit.TIME, (idle,)))


async def _crowd(place: Site, name: str) -> tuple[float, float, float]:
    async with AsyncExitStack() as stack:
        watch = await stack.enter_async_context(Watch(place.address, name))
        clients = [await stack.enter_async_context(Client(place.address)) for _ in range(16)]
        reader = await stack.enter_async_context(Client(place.address))
        one = await create(reader, place, f"{name}-one")
        await watch.until(one, rests_in("ACTIVE"))
        idle = await _p99(reader, one, asyncio.sleep(2.0))
        begin = time.perf_counter()

        async def boot_all() -> None:
            names = iter(range(CROWD - 1))

            async def some(client: Client) -> list[str]:
                return [await create(client, place, f"{name}-{number}") for number in names]

            await asyncio.gather(*(some(client) for client in clients))
            async with asyncio.timeout(_PATIENCE_S):
                while await _count(clients[0], name, "ACTIVE") < CROWD:  # noqa: ASYNC110 - no event to wait for
                    await asyncio.sleep(0.2)

        busy = await _p99(reader, one, boot_all())
        return idle, busy, time.perf_counter() - begin


async def _count(client: Client, name: str, status: str) -> int:
    """How many servers have a status; asked for briefly, for it is read beside the GETs."""
    reply = await client.send("GET", f"/servers?limit=1000&status={status}&name=^{name}-")
    return reply.body.count(b'"name"')


async def _p99(client: Client, uuid: str, meanwhile: Any) -> float:
    """The slowest percent of GETs of a server while something goes on."""
    task = asyncio.ensure_future(meanwhile)
    seen: list[float] = []
    while not task.done():
        begin = time.perf_counter()
        await client.send("GET", f"/servers/{uuid}")
        seen.append(time.perf_counter() - begin)
        await asyncio.sleep(0.005)
    await task
    return sorted(seen)[int(len(seen) * 0.99)]
