"""Hashing, at its real cost."""

import asyncio
import time

import pytest

from siderite.identity import passwords as module
from siderite.identity.passwords import Passwords


@pytest.fixture(autouse=True)
def real_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOG2_N", 14)


def test_the_right_password_matches_and_no_other() -> None:
    async def story() -> None:
        passwords = Passwords()
        stored = await passwords.hash("öpen")
        assert await passwords.matches("öpen", stored)
        assert not await passwords.matches("open", stored)
        assert not await passwords.matches("", stored)
        assert not await passwords.matches("x" * 1_000_000, stored)
        assert not await passwords.matches("öpen", None)

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
        asyncio.run(Passwords().matches("open", "s2$1$1$1$AAAA$AAAA"))


def test_an_older_cost_stays_readable() -> None:
    old = "s1$4$8$1$" + "AAAAAAAAAAAAAAAAAAAAAA==" + "$"

    async def story() -> None:
        assert not await Passwords().matches("open", old + "AAAA")

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
                await passwords.matches("guess", known)
                took.append(time.perf_counter() - began)
            return min(took)

        there, absent = await least(stored), await least(None)
        assert 0.5 < there / absent < 2

    asyncio.run(story())
