"""Hashing, at its real cost."""

import asyncio
import base64
import threading
import time
from pathlib import Path

import pytest

from siderite.identity import passwords as module
from siderite.identity.passwords import Passwords
from tests.support.app import running


@pytest.fixture(autouse=True)
def real_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOG2_N", 14)


def test_the_right_password_matches_and_no_other() -> None:
    async def story() -> None:
        passwords = Passwords()
        stored = await passwords.hash("öpen")
        assert await passwords.matches("öpen", stored, "me")
        assert not await passwords.matches("open", stored, "me")
        assert not await passwords.matches("", stored, "me")
        assert not await passwords.matches("x" * 1_000_000, stored, "me")
        assert not await passwords.matches("öpen", None, "me")

    asyncio.run(story())


def test_the_stored_text_names_its_scheme_and_salt_and_not_the_password() -> None:
    async def story() -> None:
        passwords = Passwords()
        one, other = await passwords.hash("open"), await passwords.hash("open")
        assert one.startswith("s1$14$8$1$")
        assert one != other
        assert "open" not in one

    asyncio.run(story())


def test_a_scheme_of_the_future_is_not_guessed_at() -> None:
    with pytest.raises(ValueError, match="scheme"):
        asyncio.run(Passwords().matches("open", "s2$1$1$1$AAAA$AAAA", "me"))


def test_an_older_cost_stays_readable() -> None:
    old = "s1$4$8$1$" + "AAAAAAAAAAAAAAAAAAAAAA==" + "$"

    async def story() -> None:
        assert not await Passwords().matches("open", old + "AAAA", "me")

    asyncio.run(story())


@pytest.mark.serial
def test_checking_a_user_that_is_not_there_takes_as_long() -> None:
    async def story() -> None:
        passwords = Passwords()
        stored = await passwords.hash("open")

        async def least(known: str | None) -> float:
            took = []
            for _ in range(5):
                began = time.perf_counter()
                await passwords.matches("guess", known, "me")
                took.append(time.perf_counter() - began)
            return min(took)

        there, absent = await least(stored), await least(None)
        assert 0.5 < there / absent < 2

    asyncio.run(story())


def test_a_password_that_was_right_is_known_again_until_another_is_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """For a while, and without a turn: a flood of guesses does not keep its owner out."""
    monkeypatch.setattr(module, "_LOG2_N", 4)

    async def story() -> None:
        now = [0.0]
        passwords = Passwords(lambda: now[0])
        stored, other = await passwords.hash("open"), await passwords.hash("open")
        asked: list[str] = []
        queue = passwords._queue
        turn = queue.turn
        queue.turn = lambda name: asked.append(name) or turn(name)  # type: ignore[method-assign, func-returns-value]
        for _ in range(3):
            assert await passwords.matches("open", stored, "me")
            assert not await passwords.matches("opem", stored, "thief")
        assert asked == ["me", "thief", "thief", "thief"]
        assert await passwords.matches("open", other, "me")
        now[0] = 61.0
        assert await passwords.matches("open", stored, "me")
        assert asked.count("me") == 3

    asyncio.run(story())


def test_who_waits_for_a_slow_disk_in_a_thread_keeps_nobody_from_logging_in() -> None:
    async def story() -> None:
        passwords, disk = Passwords(), threading.Event()
        waiting = [asyncio.create_task(asyncio.to_thread(disk.wait, 60)) for _ in range(64)]
        try:
            async with asyncio.timeout(20):
                stored = await passwords.hash("open")
                assert await passwords.matches("open", stored, "me")
        finally:
            disk.set()
            await asyncio.gather(*waiting)

    asyncio.run(story())


def test_logins_beyond_what_can_wait_are_told_when_to_come_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LOG2_N", 4)
    monkeypatch.setattr(module, "_MOST_WAITING", 3)

    async def story() -> None:
        async with running(tmp_path) as app:
            user = {"name": "admin", "domain": {"id": "default"}, "password": "a guess"}
            auth = {"identity": {"methods": ["password"], "password": {"user": user}}}
            guesses = [
                app.ask("POST", "/identity/v3/auth/tokens", {"auth": auth}, token="")
                for _ in range(20)
            ]
            answers, token = await asyncio.gather(asyncio.gather(*guesses), app.login())
            assert token, "who was here before gets in"
            refused = [answer for answer in answers if answer.status == 503]
            assert refused
            assert {answer.status for answer in answers} == {401, 503}
            assert all(answer.headers["retry-after"] == "2" for answer in refused)
            basic = "Basic " + base64.b64encode(b"admin:another guess").decode()
            many = [
                app.ask("GET", "/v1/nodes", token="", headers={"Authorization": basic})
                for _ in range(20)
            ]
            assert {answer.status for answer in await asyncio.gather(*many)} == {401, 503}

    asyncio.run(story())
