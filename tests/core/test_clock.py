"""Whose clock a process goes by."""

import asyncio
import time

import pytest

from siderite.core.clock import Clock
from siderite.core.store import open_store

HOUR_S = 3600.0


def ticks():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def following(ahead_s):
    clock = Clock()
    at = ticks()
    clock.hear(time.time() + ahead_s, at, at)
    return clock


def off(clock):
    return clock() - time.time()


def test_without_a_shared_database_it_is_the_computers(tmp_path):
    async def story():
        clock = Clock()
        store = await open_store(f"sqlite:///{tmp_path}/a.db")
        await clock.look(store)
        await store.close()
        return clock

    clock = asyncio.run(story())
    assert abs(off(clock)) < 1.0


@pytest.mark.parametrize("set_s", [-HOUR_S, HOUR_S])
def test_the_computers_clock_counts_from_when_it_is_looked_at(monkeypatch, set_s):
    clock, real = Clock(), time.time
    assert clock.look_here() == 0.0
    monkeypatch.setattr(time, "time", lambda: real() + set_s)
    assert abs(clock() - real()) < 1.0, "it does not jump by itself"
    assert abs(clock.look_here() + set_s) < 1.0
    assert abs(off(clock)) < 1.0
    assert clock.look_here() == 0.0


def test_a_small_correction_of_the_computers_clock_is_no_jump(monkeypatch):
    clock, real = Clock(), time.time
    clock.look_here()
    monkeypatch.setattr(time, "time", lambda: real() - 0.5)
    assert clock.look_here() == 0.0
    assert abs(off(clock)) < 0.1


def test_who_was_stopped_while_looking_at_the_clock_sees_no_jump(monkeypatch):
    clock, real, ticks_at = Clock(), time.time, iter([0.0, 0.0, 10.0, 3610.0])
    monkeypatch.setattr(time, "clock_gettime", lambda which: next(ticks_at))
    clock.look_here()
    monkeypatch.setattr(time, "time", lambda: real() + 3610.0)  # it slept between the two
    assert clock.look_here() == 0.0


def test_with_one_it_is_the_databases(postgres_url):
    async def story():
        clock = following(HOUR_S)
        store = await open_store(postgres_url)
        await clock.look(store)
        await store.close()
        return clock

    assert abs(off(asyncio.run(story()))) < 1.0


def test_the_computers_clock_may_be_set_meanwhile(monkeypatch):
    clock, was = following(0.0), time.time()
    monkeypatch.setattr(time, "time", lambda: was + HOUR_S)
    assert abs(clock() - was) < 10.0


@pytest.mark.parametrize("ahead_s", [-HOUR_S, HOUR_S])
def test_a_database_that_is_replaced_is_followed_at_once(ahead_s):
    clock, at = following(0.0), ticks()
    clock.hear(time.time() + ahead_s, at, at + 0.01)
    assert abs(off(clock) - ahead_s) < 1.0


def test_after_a_jump_it_takes_a_while_until_all_have_heard_of_it(monkeypatch):
    clock, at = following(0.0), ticks()
    clock.hear(time.time() + 0.9, at, at)
    assert clock.is_settled(), "that was none"
    clock.hear(time.time() + HOUR_S, at, at)
    assert not clock.is_settled()
    monkeypatch.setattr("siderite.core.clock.SETTLE_S", 0.0)
    assert clock.is_settled()


def test_time_does_not_jump_for_less_than_can_be_known():
    clock, at = following(0.0), ticks()
    before = off(clock)
    clock.hear(time.time() + 0.3, at, at + 0.8)  # the answer took so long
    clock.hear(time.time() + 0.03, at, at)
    assert abs(off(clock) - before) < 0.01


def test_an_answer_that_took_long_is_believed_only_if_it_is_the_first():
    clock, at = Clock(), ticks()
    clock.hear(time.time() + HOUR_S, at, at + 4.0)
    assert abs(off(clock) - HOUR_S) < 3.0
    clock.hear(time.time(), at, at + 4.0)
    assert off(clock) > HOUR_S / 2


def test_a_database_that_does_not_answer_is_asked_again(monkeypatch):
    monkeypatch.setattr("siderite.core.clock.LOOK_S", 0.01)
    monkeypatch.setattr("siderite.core.clock._AGAIN_S", 0.01)

    class Away:
        dialect = "postgresql"
        asked = 0

        async def scan(self, sql):
            self.asked += 1
            if self.asked == 1:
                raise OSError("gone")
            return [(time.time() + HOUR_S,)]

    async def story():
        clock, store = Clock(), Away()
        keeping = asyncio.create_task(clock.keep(store))
        while store.asked < 3:
            await asyncio.sleep(0.01)
        keeping.cancel()
        return clock

    assert off(asyncio.run(story())) > HOUR_S / 2
