"""Runs by their token: told of, called off, begun anew. No host takes part."""

import asyncio
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

from siderite.compute.domain.outcome import Done
from siderite.compute.domain.outcome import Outcome
from siderite.compute.domain.outcome import Wait
from siderite.compute.drivers.libvirt import runs as module
from siderite.compute.drivers.libvirt.runs import Run
from siderite.compute.drivers.libvirt.runs import Runs

HOST: Any = SimpleNamespace(name="there")


def run_through(story: Coroutine[Any, Any, None]) -> None:
    async def in_time() -> None:
        async with asyncio.timeout(30):
            await story

    asyncio.run(in_time())


class Work:
    """Goes on until it may end; how often it began, and how it ended."""

    def __init__(self) -> None:
        self.began = 0
        self.may_end = asyncio.Event()
        self.ended: list[str] = []

    async def __call__(self, run: Run) -> Outcome:
        self.began += 1
        try:
            while not self.may_end.is_set():
                run.check()
                await asyncio.sleep(0.01)
        except Exception as why:
            await asyncio.sleep(0.05)
            self.ended.append(str(why))
            raise
        self.ended.append("done")
        return Done()


def test_one_that_is_called_off_has_ended_by_then_and_is_begun_anew_when_it_is_asked_for() -> None:
    async def story() -> None:
        runs, work = Runs(0.01), Work()
        first = await runs.outcome(HOST, "token", "copying", work)
        assert isinstance(first, Wait)
        assert first.call_off is not None
        await first.call_off()
        assert work.ended == ["it was called off"]
        assert isinstance(await runs.outcome(HOST, "token", "copying", work), Wait)
        assert work.began == 2
        work.may_end.set()
        while isinstance(told := await runs.outcome(HOST, "token", "copying", work), Wait):
            pass
        assert told == Done()
        assert work.ended == ["it was called off", "done"]

    run_through(story())


def test_whoever_is_told_to_stop_waits_for_the_end_all_the_same() -> None:
    async def story() -> None:
        runs, work = Runs(30.0), Work()
        asking = asyncio.create_task(runs.outcome(HOST, "token", "copying", work))
        while not work.began:
            await asyncio.sleep(0.01)
        for _ in range(3):
            asking.cancel()
            await asyncio.sleep(0.01)
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert work.ended == ["it was called off"]

    run_through(story())


def test_what_cannot_be_stopped_is_not_waited_for_for_ever_nor_begun_beside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "CALL_OFF_S", 0.1)
    monkeypatch.setattr(module, "AGAIN_IN_S", 0.02)

    async def story() -> None:
        runs, may_end, began = Runs(0.01), asyncio.Event(), []

        async def deaf(run: Run) -> Outcome:
            began.append(run)
            await may_end.wait()
            return Done()

        first = await runs.outcome(HOST, "token", "copying", deaf)
        assert isinstance(first, Wait)
        assert first.call_off is not None
        await first.call_off()
        second = await runs.outcome(HOST, "token", "copying", deaf)
        assert isinstance(second, Wait)
        assert (second.call_off, len(began)) == (None, 1)
        may_end.set()
        while isinstance(await runs.outcome(HOST, "token", "copying", deaf), Wait):
            pass
        assert len(began) == 2

    run_through(story())


def test_what_it_does_for_others_too_is_not_waited_for_and_nothing_follows_it() -> None:
    async def story() -> None:
        runs, sent, followed = Runs(0.01), asyncio.Event(), []

        async def making(run: Run) -> Outcome:
            run.is_apart = True
            await sent.wait()
            run.is_apart = False
            run.check()
            followed.append("a guest")
            return Done()

        first = await runs.outcome(HOST, "token", "making", making)
        assert isinstance(first, Wait)
        assert first.call_off is not None
        await first.call_off()
        run = runs.under_way(HOST, "token", "making")
        assert run is not None
        assert not run.is_over
        sent.set()
        await asyncio.wait({run.task})
        assert followed == []

    run_through(story())
