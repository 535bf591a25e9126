"""Names are looked up beside all else that is done in threads."""

import asyncio
import contextlib
import socket
import threading

import pytest

from siderite.core import lookups
from siderite.core.guard import Guard
from siderite.core.guard import networks


@pytest.fixture
def silent(monkeypatch):
    """A name server that does not answer: the names that it is asked for."""
    asked, answers = [], threading.Event()

    def look_up(host, *_, **__):
        asked.append(host)
        answers.wait(60)
        raise socket.gaierror(socket.EAI_AGAIN, "nobody says")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setattr(lookups, "LOOK_UP_S", 0.05)
    yield asked
    answers.set()


def run(story):
    async def whole():
        async with asyncio.timeout(20):
            await story()

    asyncio.run(whole())


def test_a_name_server_that_does_not_answer_holds_up_nobody_else(silent):
    async def story():
        guard = Guard()
        for _ in range(2):
            calls = [guard.resolve("far.invalid", 443) for _ in range(40)]
            answers = await asyncio.gather(*calls, return_exceptions=True)
            assert {type(answer) for answer in answers} == {TimeoutError}
        assert await asyncio.to_thread(lambda: "done") == "done"

    run(story)
    assert silent == ["far.invalid"], "one is enough"


def test_only_so_many_names_are_looked_up_at_a_time(silent, monkeypatch):
    monkeypatch.setattr(lookups, "MOST", 2)

    async def story():
        guard = Guard()
        for name in ("a", "b"):
            with contextlib.suppress(TimeoutError):
                await guard.resolve(name, 443)
        with pytest.raises(OSError, match="too many names"):
            await guard.resolve("c", 443)
        with pytest.raises(TimeoutError):
            await guard.resolve("a", 443)  # as it is being looked up anyway

    run(story)
    assert silent == ["a", "b"]


def test_a_name_that_was_found_lately_is_found_whatever_becomes_of_others(monkeypatch):
    monkeypatch.setattr(lookups, "MOST", 1)
    monkeypatch.setattr(lookups, "LOOK_UP_S", 0.05)
    look_up, silence = socket.getaddrinfo, threading.Event()

    def no_longer(host, *how, **more):
        if host == "localhost":
            raise socket.gaierror(socket.EAI_NONAME, "not any more")
        silence.wait(60)
        return look_up(host, *how, **more)

    async def story():
        guard = Guard(networks("127.0.0.0/8, ::1"))
        found = await guard.resolve("localhost", 443)
        monkeypatch.setattr(socket, "getaddrinfo", no_longer)
        with pytest.raises(TimeoutError):
            await guard.resolve("somebody.elses.invalid", 443)
        assert await guard.resolve("localhost", 443) == found
        with pytest.raises(OSError, match="too many names"):
            await guard.resolve("never.found.invalid", 443)
        monkeypatch.setattr(lookups, "MOST", 2)
        with pytest.raises(socket.gaierror, match="not any more"):
            await guard.resolve("localhost", 443)

    try:
        run(story)
    finally:
        silence.set()


def test_a_name_is_looked_up_anew_each_time_and_failures_are_told():
    async def story():
        guard = Guard(networks("127.0.0.0/8, ::1"))
        for _ in range(2):
            assert await guard.resolve("localhost", 443)
        with pytest.raises(OSError, match=r"."):
            await guard.resolve("no such name", 443)

    run(story)
