"""A reaper is killed before and after everything that it changes: the next one goes on from what is
there, and nobody goes who need not.
"""

import asyncio
from typing import Any

import httpx
import pytest

from siderite.reaper import Reaper
from siderite.reaper import Rules
from tests.compute.cloud import Cloud
from tests.reaper.test_serving import CHEAP
from tests.reaper.test_serving import ROOM
from tests.reaper.test_serving import Direct
from tests.reaper.test_serving import Full
from tests.reaper.test_serving import full as full_cloud

full = full_cloud
ENOUGH = 20
"""More than it changes for one server: care, a try, and two that go."""


class Mortal(Direct):
    """A reaper's session, until it is killed: at the nth change that it asks for, before that is
    sent, or when it was made and the answer is lost.
    """

    def __init__(self, made: Cloud, nth: int, *, is_sent: bool) -> None:
        super().__init__(made)
        self._left = nth
        self._is_sent = is_sent
        self.dead = asyncio.Event()

    async def _send(self, method: str, path: str, body: Any) -> httpx.Response:
        self._left -= method != "GET"
        if self._left > 0:
            return await super()._send(method, path, body)
        if self._is_sent:
            await super()._send(method, path, body)
        self.dead.set()
        await asyncio.Event().wait()
        raise AssertionError("it is dead")


async def is_killed(api: Mortal, strategy: str) -> bool:
    """Whether it was killed before all was done."""
    rules = Rules(name="one", strategy=strategy)
    tasks = asyncio.create_task(Reaper(api, rules).round()), asyncio.create_task(api.dead.wait())
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return api.dead.is_set()


@pytest.mark.sampled
@pytest.mark.parametrize("is_sent", [False, True])
@pytest.mark.parametrize("strategy", ["strict", "chance"])
def test_whenever_a_reaper_is_killed_the_next_one_goes_on_and_nobody_went_in_vain(
    full: Full, strategy: str, is_sent: bool
) -> None:
    full.add_host(**ROOM)
    full.script("all", latency_s={"destroy": 0.05})
    large = full.make_flavor(ram=1024)
    cheap = {*full.fill(), *full.fill()}
    for nth in range(1, ENOUGH):
        uuid = full.pends(flavorRef=large)
        was_killed = full.run(is_killed(Mortal(full, nth, is_sent=is_sent), strategy))
        full.settled(uuid)  # it may have been asked for, by the one that is dead
        full.reap(strategy=strategy)
        assert full.status(uuid) == "ACTIVE", f"killed at change {nth}"
        gone = {one for one in cheap if full.status(one) == "GONE"}
        assert len(gone) == 2, f"killed at change {nth}"
        if not was_killed:
            break
        full.ask("DELETE", f"/servers/{uuid}")
        full.wait(uuid, lambda server: server["status"] == "GONE")
        cheap = cheap - gone | {full.boot(metadata=CHEAP, networks="none") for _ in gone}
    assert ENOUGH > nth > 8
