"""Listening to hosts that tell of their guests."""

import asyncio
from collections.abc import Callable
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from siderite.compute.domain.host import Host
from siderite.compute.domain.power import Power
from siderite.compute.drivers.contract import At
from siderite.compute.usecases.fleet import hosts
from siderite.compute.workers import power_sync
from siderite.compute.workers.power_sync import PowerSync
from tests.compute.cloud import PATIENCE_S
from tests.compute.cloud import cloud

_sleep = asyncio.sleep
TURNS, SETTLE_S = 50, 1e-9


class Noting(PowerSync):
    """Notes at whom it looks."""

    looks: list[tuple[str, Sequence[str] | None]]

    async def look(self, host: Host, only: Sequence[str] | None = None) -> int:
        self.looks.append((host.name, only))
        return await super().look(host, only)


async def _until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not is_so():
            await _sleep(0.01)


def test_nothing_is_done_for_hosts_that_tell_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(power_sync, "SETTLE_S", SETTLE_S)
    monkeypatch.setattr(power_sync, "FORGET_S", 0.0)
    naps: list[float] = []

    async def counted(time_s: float, *more: Any) -> Any:
        naps.append(time_s)
        return await _sleep(time_s, *more)

    with cloud(tmp_path, hosts=3) as made:
        uuid = made.boot()
        host = made.show(uuid)["OS-EXT-SRV-ATTR:host"]
        sync = Noting(made.app.app.program.compute.watch._hands, every_s=0, at_once=9)
        sync.looks = []

        async def idle() -> None:
            """In so many turns of the loop nobody has naps: all wait for news. (The cloud itself
            may just begin to listen to its hosts, which is one for each.)
            """
            for _ in range(TURNS):
                await _sleep(0)
            naps.clear()
            for _ in range(TURNS):
                await _sleep(0)
            assert naps.count(SETTLE_S) <= len(made.hosts)

        async def story() -> None:
            listening = asyncio.create_task(power_sync.Lifecycle(sync._hands, sync).run())
            await _until(lambda: len(sync.looks) == len(made.hosts))
            assert sorted(sync.looks) == [(name, None) for name in sorted(made.hosts)]
            monkeypatch.setattr(asyncio, "sleep", counted)
            await idle()
            sync.looks.clear()
            made.guests.by_itself(uuid, Power.SHUTDOWN)
            await _until(lambda: (host, [uuid]) in sync.looks)
            await idle()
            assert {name for name, _ in sync.looks} == {host}
            listening.cancel()

        made.app.run(story())
        made.until(uuid, "SHUTOFF")


def test_a_host_that_was_removed_and_added_anew_is_listened_to_where_it_is_now(
    tmp_path: Path,
) -> None:
    """Both may be done between two looks at which hosts there are."""
    heard: list[At] = []

    class Ear:
        async def watch(self, at: At, tell: Any) -> None:
            heard.append(at)
            await asyncio.Event().wait()

    with cloud(tmp_path, hosts=1) as made:
        hands = made.app.app.program.compute.watch._hands
        drivers = {"simulated": replace(hands.drivers["simulated"], watch=Ear())}
        deaf = replace(hands, drivers=drivers)
        (name,) = made.hosts

        async def anew() -> None:
            await hosts.remove(hands.ctx, name)
            await hosts.add(hands.ctx, name, "simulated", "simulated:elsewhere", {})

        async def story() -> None:
            lifecycle = power_sync.Lifecycle(deaf, PowerSync(deaf, every_s=0, at_once=9))
            await lifecycle._listen_to_all()
            await _until(lambda: len(heard) == 1)
            await anew()
            await lifecycle._listen_to_all()
            await _until(lambda: len(heard) == 2)
            for task in lifecycle._listening.values():
                task.cancel()

        made.app.run(story())
        assert [at.uri for at in heard] == ["", "simulated:elsewhere"]
