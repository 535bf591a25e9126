"""Tokens of a Keystone elsewhere: another installation of ours acts as that Keystone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from siderite.core.errors import Unavailable
from siderite.identity import Either
from siderite.identity import Keystone
from siderite.identity import keystone as keystone_module
from siderite.identity.keystone import RECHECK_S
from siderite.identity.keystone import STALE_S
from siderite.identity.keystone import Account
from tests.identity.world import PASSWORD
from tests.identity.world import URL
from tests.identity.world import World
from tests.identity.world import application
from tests.identity.world import world

ACCOUNT = Account("robot", PASSWORD, "service")


class Line(httpx.AsyncBaseTransport):
    """The way there: counts requests, and can be cut."""

    def __init__(self, app: Any) -> None:
        self._inner = httpx.ASGITransport(app=app)
        self.requests: list[str] = []
        self.is_cut = False
        self.status: int | None = None
        """What is answered in place of the Keystone."""
        self.text = "not from the Keystone"
        self.is_mute = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(f"{request.method} {request.url.path}")
        await asyncio.sleep(0)  # there is a way between us
        if self.is_cut:
            raise httpx.ConnectError("cut")
        if self.status is not None:
            return httpx.Response(self.status, text=self.text)
        if self.is_mute:
            await asyncio.Event().wait()
        return await self._inner.handle_async_request(request)


@asynccontextmanager
async def elsewhere() -> AsyncIterator[tuple[World, Keystone, Line]]:
    """A Keystone, ourselves as its client, and the line between."""
    async with world("sqlite://") as there:
        user = await there.new_user("robot")
        projects = (await there.call("GET", "/v3/projects?name=service")).json()["projects"]
        await there.give(user, "service", projects[0]["id"])
        line = Line(application(there.identity))
        keystone = Keystone(f"{URL}/identity", ACCOUNT, clock=lambda: there.now, transport=line)
        yield there, keystone, line


def test_a_token_of_theirs_is_known_and_remembered() -> None:
    async def tell() -> None:
        async with elsewhere() as (there, keystone, line):
            user, project = await there.member(role="member")
            token = await there.token_of("mia", {"project": {"id": project}})
            who = await keystone.by_token(token)
            assert who is not None
            assert (who.user_id, who.user, who.project_id) == (user, "mia", project)
            assert (who.roles, who.system) == ({"member", "reader"}, False)
            assert line.requests == [
                "POST /identity/v3/auth/tokens",
                "GET /identity/v3/auth/tokens",
            ]
            assert await keystone.by_token(token) == who
            assert len(line.requests) == 2, "the second answer is from memory"
            there.now += RECHECK_S
            assert await keystone.by_token(token) == who
            assert len(line.requests) == 3, "after a while it is asked again"
            await asyncio.gather(*(keystone.by_token("unknown") for _ in range(5)))
            assert len(line.requests) == 4, "many at once ask once"

    asyncio.run(tell())


def test_tokens_that_are_not_good_there_are_not_good_here() -> None:
    async def tell() -> None:
        async with elsewhere() as (there, keystone, _):
            _, project = await there.member()
            token = await there.token_of("mia", {"project": {"id": project}})
            assert await keystone.by_token(token) is not None
            await there.call("DELETE", "/v3/auth/tokens", None, x_subject_token=token)
            there.now += RECHECK_S
            assert await keystone.by_token(token) is None
            for odd in ("", "nonsense", "ü" * 20, "x" * 5000):
                assert await keystone.by_token(odd) is None
            short = await there.token_of("mia", {"project": {"id": project}})
            there.now += 3595
            assert await keystone.by_token(short) is not None
            there.now += 6
            assert await keystone.by_token(short) is None, "expired, though asked a moment ago"

    asyncio.run(tell())


def test_system_scope_and_passwords_are_understood() -> None:
    async def tell() -> None:
        async with elsewhere() as (there, keystone, _):
            token = await there.token_of("admin", {"system": {"all": True}})
            who = await keystone.by_token(token)
            assert who is not None and who.system and who.is_admin and who.project_id is None
            who = await keystone.by_password("admin", PASSWORD)
            assert who is not None and who.is_admin
            assert await keystone.by_password("admin", "wrong") is None

    asyncio.run(tell())


def test_our_own_login_is_renewed_when_it_has_ended() -> None:
    async def tell() -> None:
        async with elsewhere() as (there, keystone, line):
            assert await keystone.by_token("unknown") is None
            there.now += 4000  # our service token has expired
            token = await there.token_of("admin")
            line.requests.clear()
            assert await keystone.by_token(token) is not None
            assert line.requests == [
                "GET /identity/v3/auth/tokens", "POST /identity/v3/auth/tokens",
                "GET /identity/v3/auth/tokens",
            ]  # fmt: skip

    asyncio.run(tell())


def test_a_keystone_that_is_away_is_neither_a_yes_nor_a_no() -> None:
    async def tell() -> None:
        async with elsewhere() as (there, keystone, line):
            token = await there.token_of("admin")
            who = await keystone.by_token(token)
            line.is_cut = True
            there.now += RECHECK_S
            assert await keystone.by_token(token) == who, "what was known is good for a minute"
            with pytest.raises(Unavailable):
                await keystone.by_token("another")
            there.now += STALE_S
            with pytest.raises(Unavailable):
                await keystone.by_token(token)

    asyncio.run(tell())


def test_a_keystone_that_is_broken_does_not_make_a_password_wrong() -> None:
    async def tell() -> None:
        async with elsewhere() as (_, keystone, line):
            for status in (200, 302, 404, 429, 500, 502, 503):
                line.status = status
                with pytest.raises(Unavailable, match="try again"):
                    await keystone.by_password("admin", PASSWORD)
            line.status = 401
            assert await keystone.by_password("admin", PASSWORD) is None
            line.status = None
            assert await keystone.by_password("admin", PASSWORD) is not None

    asyncio.run(tell())


@pytest.mark.parametrize(
    "body", ["<html>", "[]", '{"token": null}', '{"token": {}}', '{"token": {"expires_at": 5}}']
)
def test_a_page_of_a_proxy_is_no_answer_of_a_keystone(body: str) -> None:
    async def tell() -> None:
        async with elsewhere() as (there, keystone, line):
            line.status, line.text = 201, body
            with pytest.raises(Unavailable, match="as a Keystone does"):
                await keystone.service_token()
            with pytest.raises(Unavailable, match="as a Keystone does"):
                await keystone.by_password("admin", PASSWORD)
            line.status = None
            token = await there.token_of("admin")
            who = await keystone.by_token(token)
            line.status = 200
            there.now += RECHECK_S
            with pytest.raises(Unavailable, match="as a Keystone does"):
                await keystone.by_token("another")
            assert await keystone.by_token(token) == who, "what was known is good for a minute"

    asyncio.run(tell())


def test_a_404_that_is_not_the_keystones_own_ends_no_token() -> None:
    async def tell() -> None:
        async with elsewhere() as (there, keystone, line):
            token = await there.token_of("admin")
            who = await keystone.by_token(token)
            there.now += RECHECK_S
            for text in ("default backend - 404", '"error"', "[]", "{}"):
                line.status, line.text = 404, text
                assert await keystone.by_token(token) == who, "what was known is good for a minute"
                with pytest.raises(Unavailable):
                    await keystone.by_token("another")
            line.text = '{"error": {"code": 404, "message": "Could not find token."}}'
            assert await keystone.by_token(token) is None

    asyncio.run(tell())


def test_those_who_wait_for_our_login_wait_for_one_attempt_and_not_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keystone_module, "_WHOLE_S", 0.05)

    async def tell() -> None:
        async with elsewhere() as (_, keystone, line):
            line.is_mute = True
            asked = (keystone.by_token(f"token-{n}") for n in range(20))
            for why in await asyncio.gather(*asked, return_exceptions=True):
                assert isinstance(why, Unavailable)
            assert line.requests == ["POST /identity/v3/auth/tokens"]
            line.is_mute = False
            monkeypatch.setattr(keystone_module, "_WHOLE_S", 30.0)  # it hashes a password
            assert await keystone.service_token()

    asyncio.run(tell())


def test_a_password_that_is_theirs_no_longer_is_refused_to_all_who_send_it_at_once() -> None:
    async def tell() -> None:
        async with elsewhere() as (there, keystone, _), world("sqlite://") as here:
            user, _ = await there.member()
            both = Either(here.identity, keystone)
            assert await both.by_password("mia", PASSWORD) is not None
            await there.call("PATCH", f"/v3/users/{user}", {"user": {"enabled": False}})
            there.now += RECHECK_S
            asked = (both.by_password("mia", PASSWORD) for _ in range(3))
            assert await asyncio.gather(*asked) == [None, None, None]

    asyncio.run(tell())


def test_our_own_tokens_stay_good_beside_theirs() -> None:
    async def tell() -> None:
        async with elsewhere() as (there, keystone, line), world("sqlite://") as here:
            both = Either(here.identity, keystone)
            assert await both.by_token(here.token) is not None
            assert line.requests == [], "the other one is not asked for what is ours"
            theirs = await there.token_of("admin")
            assert await both.by_token(theirs) is not None
            assert await both.by_token("nobody's") is None
            assert await both.by_password("admin", PASSWORD) is not None

    asyncio.run(tell())


def test_a_password_of_theirs_is_not_held_back_as_a_wrong_one_of_ours() -> None:
    async def tell() -> None:
        async with elsewhere() as (there, keystone, _), world("sqlite://") as here:
            await there.member()
            both = Either(here.identity, keystone)
            for _ in range(30):
                who = await both.by_password("mia", PASSWORD)
                assert who is not None and who.user == "mia"
                there.now += RECHECK_S
            assert sum(here.naps) == 0
            assert await both.by_password("mia", "wrong") is None

    asyncio.run(tell())
