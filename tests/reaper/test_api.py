"""The reaper's session with the cloud: it outlives its token, and hears from where the log is."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx
import pytest

from siderite.reaper import Api
from siderite.reaper import Reaper
from siderite.reaper import Refused
from siderite.reaper import Rules
from siderite.reaper import reaper as reaping
from tests.support.app import PASSWORD
from tests.support.app import Application
from tests.support.app import running
from tests.support.serving import serving


@asynccontextmanager
async def session(app: Application) -> AsyncIterator[Api]:
    """A session with this program."""
    name, _, project = await app.person("admin")
    found = await app.ask("GET", f"/identity/v3/projects/{project}")
    domain = {"id": "default"}
    user = {"name": name, "password": PASSWORD, "domain": domain}
    named = {"name": found.json["project"]["name"], "domain": domain}
    identity = {"methods": ["password"], "password": {"user": user}}
    root, claim = "http://cloud.test", {"identity": identity, "scope": {"project": named}}
    api = Api(root, f"{root}/identity/v3", claim)
    await api.close()
    api._client = httpx.AsyncClient(transport=httpx.ASGITransport(app.program.app))
    try:
        yield api
    finally:
        await api.close()


def test_a_token_that_ended_is_replaced_wherever_that_is_noticed(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(tmp_path) as app, session(app) as api:
            for ask in (
                api.newest_event,
                lambda: api.pages("/servers/detail?all_tenants=1", "servers"),
            ):
                api._token = "ended"
                await ask()
                assert api._token != "ended"
            newest = (await app.ask("GET", "/events/v1/events?limit=1000")).json["next"]
            assert await api.newest_event() == newest

    asyncio.run(story())


def test_a_place_that_the_log_refuses_is_no_stream_that_ended(tmp_path: Path) -> None:
    """It would be asked for again and again."""

    async def story() -> None:
        async with running(tmp_path) as app, session(app) as api:
            beyond = await api.newest_event() + 1
            with pytest.raises(Refused, match="beyond the end of the log") as refused:
                async for _ in api.refused_placements(beyond):
                    pass
            assert refused.value.status == 400

    asyncio.run(story())


class Paged(Api):
    """Has three servers, and shows two at a time."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        self.asked.append(path.rpartition("marker=")[2] if "marker=" in path else "")
        pages = {"": ["a", "b"], "b": ["c"], "c": []}
        found = {"servers": [{"id": one} for one in pages[self.asked[-1]]]}
        return found if self.asked[-1] else {**found, "servers_links": [{"rel": "next"}]}


def test_a_list_is_read_to_its_end_and_no_further() -> None:
    api = Paged()
    found = asyncio.run(api.pages("/servers/detail?all_tenants=1", "servers"))
    assert ([one["id"] for one in found], api.asked) == (["a", "b", "c"], ["", "b"])


class Told(Api):
    """Says what events there are, and notes what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    async def newest_event(self) -> int:
        return 100 + len(self.asked)

    async def refused_placements(self, after: int) -> AsyncIterator[int]:
        self.asked.append(after)
        if len(self.asked) == 1:
            yield 105
            raise httpx.ReadError("gone")
        if len(self.asked) == 2:
            raise Refused(410, "pruned")
        await asyncio.Event().wait()


def test_it_listens_from_the_end_of_the_log_and_begins_anew_where_its_place_is_gone(
    monkeypatch: Any,
) -> None:
    monkeypatch.setattr(reaping, "AGAIN_S", 0.0)

    async def story() -> None:
        api = Told()
        listening = asyncio.ensure_future(Reaper(api, Rules("one"))._listen())
        try:
            async with asyncio.timeout(30):
                while len(api.asked) < 3:
                    await asyncio.wait([listening], timeout=0.01)
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
        assert api.asked == [100, 105, 102]

    asyncio.run(story())


def test_it_listens_again_when_a_page_in_the_place_of_the_cloud_is_gone(monkeypatch: Any) -> None:
    """As a proxy has one for its users while the service behind it is upgraded."""
    monkeypatch.setattr(reaping, "AGAIN_S", 0.0)
    pages = [b"<html>back soon</html>", b"{}", b'{"next": 7}']
    asked: list[str] = []

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            said = b'data: {"seq": 8}\n\n'
            if "last=1" in self.path:
                said = pages.pop(0) if len(pages) > 1 else pages[0]
            self.send_response(200)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    async def story(url: str) -> None:
        api = Api(url, f"{url}/identity/v3", {})
        listening = asyncio.ensure_future(Reaper(api, Rules("one"))._listen())
        try:
            async with asyncio.timeout(30):
                while not any("after=8" in path for path in asked):
                    assert not listening.done(), listening.exception()
                    await asyncio.wait([listening], timeout=0.01)
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
            await api.close()

    with serving(Answers) as url:
        asyncio.run(story(url))
