"""Whose word counts about a server's power, over and over: readings of the sync, power-updates,
requests and hands at the machine, in random order. And what it costs: many events in one request,
and a sync of many servers.

    python -m tests.crash.power_race --trials 5000 --events 1000 --servers 10000     (scripts/soak)
"""

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import Awaitable
from collections.abc import Callable
from pathlib import Path
from typing import Any

from siderite.compute.domain.power import Power
from siderite.compute.usecases.server import power_truth
from siderite.compute.usecases.server.power_truth import Reading
from tests.compute.cloud import Cloud
from tests.compute.cloud import cloud

HEADERS = {"openstack-api-version": "compute 2.901"}
ROOM = {"vcpus": 4096, "ram_mib": 4 << 20, "disk_gib": 1 << 16}
AT_ONCE = 1000
SIDE_BY_SIDE = 20
PATIENCE_S = 300.0
_WORDS = {Power.RUNNING: "POWER_ON", Power.SHUTDOWN: "POWER_OFF"}


async def post(made: Cloud, path: str, body: Any) -> Any:
    """One request of the compute API."""
    return await made.app.app.ask(
        "POST", f"/compute/v2.1{path}", body, version=None, headers=HEADERS
    )


async def tell(made: Cloud, changes: list[tuple[str, Power]]) -> Any:
    """What another service says of machines, in one request."""
    events = [
        {"name": "power-update", "server_uuid": uuid, "tag": _WORDS[power]}
        for uuid, power in changes
    ]
    return await post(made, "/os-server-external-events", {"events": events})


def crowd(made: Cloud, count: int) -> list[str]:
    """So many servers that run."""

    async def make() -> list[str]:
        for at in range(0, count, AT_ONCE):
            some = min(AT_ONCE, count - at)
            wish = {
                "name": "one", "flavorRef": made.flavor, "imageRef": made.image,
                "networks": "none", "min_count": some,
            }  # fmt: skip
            answer = await post(made, "/servers", {"server": wish})
            assert answer.status == 202, answer
        async with asyncio.timeout(PATIENCE_S):
            while len(found := set(await _running(made)) - before) < count:
                await asyncio.sleep(0.1)
        return sorted(found)

    before = set(running(made))
    return made.app.run(make())


async def _running(made: Cloud) -> list[str]:
    sql = "SELECT uuid FROM servers WHERE vm_state = 'active' AND task_state IS NULL"
    return [str(row[0]) for row in await made.app.app.program.store.fetch(sql)]


def running(made: Cloud) -> list[str]:
    """All servers that run."""
    return made.app.run(_running(made))


class Race:
    """One server to which everything happens at once."""

    def __init__(self, made: Cloud, uuid: str, rng: random.Random) -> None:
        self._made = made
        self._uuid = uuid
        self._rng = rng
        self._context = made.app.app.program.compute.context
        self._by_hand: Power | None = None
        self._was_asked = False
        self._turn = asyncio.Lock()

    async def trial(self) -> str | None:
        """Several things in any order; what is wrong afterwards, if anything."""
        self._by_hand, self._was_asked = None, False
        things: list[Callable[[], Awaitable[None]]] = [self._sync, self._hand, self._ask]
        await asyncio.gather(*(self._soon(self._rng.choice(things)) for _ in range(4)))
        if not self._was_asked and (wrong := await self._differs()):
            return wrong  # an old reading undid the event: a later sync would only hide that
        await self._settle()
        return await self._differs()

    async def _differs(self) -> str | None:
        """What is wrong with the record, if anything."""
        _, *record = await self._row()
        machine = self._power()
        wanted = ["active", None, 1] if machine is Power.RUNNING else ["stopped", None, 4]
        if record != wanted:
            return f"{self._uuid} is recorded as {record}, but its machine is {machine.word}"
        if not self._was_asked and self._by_hand not in (None, machine):
            return f"{self._uuid} was put back to {machine.word}, though nobody asked for it"
        return None

    async def _soon(self, thing: Callable[[], Awaitable[None]]) -> None:
        for _ in range(self._rng.randrange(20)):
            await asyncio.sleep(0)
        await thing()

    def _power(self) -> Power:
        [host] = self._made.guests.where(self._uuid)
        return Power(self._made.guests.of_host(host)[self._uuid])

    async def _row(self) -> tuple[int, str, str | None, int]:
        sql = "SELECT version, vm_state, task_state, power_state FROM servers WHERE uuid = ?"
        [row] = await self._context.door.store.fetch(sql, (self._uuid,))
        return row  # type: ignore[return-value]  # columns of a table are not typed

    async def _sync(self) -> None:
        """A reading that arrives when it arrives."""
        version, *_ = await self._row()
        seen = self._power()
        await asyncio.sleep(self._rng.random() * 0.05)
        await power_truth.found(self._context, self._uuid, version, Reading(seen))

    async def _hand(self) -> None:
        """Somebody at the machine; the other service tells of it, in the order it happened."""
        to = self._rng.choice([Power.RUNNING, Power.SHUTDOWN])
        async with self._turn:
            [host] = self._made.guests.where(self._uuid)
            self._made.guests.set_power(self._uuid, host, to)
            self._by_hand = to
            answer = await tell(self._made, [(self._uuid, to)])
            assert answer.status == 200, answer

    async def _ask(self) -> None:
        """A request; it may come at a bad moment."""
        wish: Any = self._rng.choice([{"os-start": None}, {"os-stop": {"shutdown_type": "HARD"}}])
        answer = await post(self._made, f"/servers/{self._uuid}/action", wish)
        assert answer.status in (202, 409), answer
        self._was_asked = self._was_asked or answer.status == 202

    async def _settle(self) -> None:
        """Until nothing is under way and the sync has looked once more."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                version, _, task, _ = await self._row()
                if task is None:
                    await power_truth.found(
                        self._context, self._uuid, version, Reading(self._power())
                    )
                    after, _, task, _ = await self._row()
                    if task is None and after == version:
                        return
                await asyncio.sleep(0.002)


def race(made: Cloud, trials: int, seed: int) -> list[str]:
    """So many trials, on some servers side by side; what went wrong."""
    uuids = [made.boot() for _ in range(SIDE_BY_SIDE)]
    rng = random.Random(seed)

    async def one(uuid: str, count: int) -> list[str]:
        racing = Race(made, uuid, rng)
        return [wrong for _ in range(count) if (wrong := await racing.trial()) is not None]

    async def every() -> list[str]:
        shares = [len(range(at, trials, SIDE_BY_SIDE)) for at in range(SIDE_BY_SIDE)]
        found = await asyncio.gather(*map(one, uuids, shares))
        return [wrong for some in found for wrong in some]

    return made.app.run(every())


def events_per_second(made: Cloud, uuids: list[str]) -> float:
    """All of them switched off by one request."""
    began = time.monotonic()
    answer = made.app.run(tell(made, [(uuid, Power.SHUTDOWN) for uuid in uuids]))
    seconds = time.monotonic() - began
    assert answer.status == 200, answer
    assert [one["server_uuid"] for one in answer.json["events"]] == uuids
    return len(uuids) / seconds


def sync_seconds(made: Cloud) -> tuple[float, float]:
    """A sync that finds nothing, and one that finds every server off."""
    sync = made.app.app.program.compute.sync
    uuids = running(made)
    times = []
    for count in (0, len(uuids)):
        for uuid in uuids[:count]:
            [host] = made.guests.where(uuid)
            made.guests.set_power(uuid, host, Power.SHUTDOWN)
        began = time.monotonic()
        assert made.app.run(sync.round()) == count
        times.append(time.monotonic() - began)
    return times[0], times[1]


def main() -> int:
    """Race, measure, print, and say whether it is good enough."""
    parser = argparse.ArgumentParser(description="Whose word counts about power.")
    parser.add_argument("--trials", type=int, default=5000)
    parser.add_argument("--events", type=int, default=1000)
    parser.add_argument("--servers", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    said = parser.parse_args()
    with tempfile.TemporaryDirectory() as data, cloud(Path(data), hosts=0) as made:
        for _ in range(4):
            made.add_host(**ROOM)
        began = time.monotonic()
        wrong = race(made, said.trials, said.seed)
        print(
            f"{said.trials} interleavings in {time.monotonic() - began:.0f} s, seed {said.seed}:",
            *(wrong[:20] or ["the last truth won in all"]),
        )
    with tempfile.TemporaryDirectory() as data, cloud(Path(data), hosts=0) as made:
        for _ in range(10):
            made.add_host(**ROOM)
        some = crowd(made, said.events)
        rate = events_per_second(made, some)
        print(f"{said.events} power-updates in one request: {rate:.0f} events/s")
        # No machine was switched off: the sync finds them running again.
        assert made.app.run(made.app.app.program.compute.sync.round()) == said.events
        crowd(made, said.servers - said.events)
        idle, all_off = sync_seconds(made)
        print(
            f"sync of {said.servers} servers: {idle:.2f} s if all are as recorded,"
            f" {all_off:.1f} s if all were switched off"
        )
    return 0 if not wrong and rate >= 1000 and all_off < 30 else 1


if __name__ == "__main__":
    raise SystemExit(main())
