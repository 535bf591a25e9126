"""A small installation for a test: a database, the identity service on it, and ways to call it."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from collections.abc import Awaitable
from collections.abc import Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx

from siderite.core.errors import SideriteError
from siderite.core.http import App
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import Routes
from siderite.core.http import reply
from siderite.core.store import Store
from siderite.core.store import open_store
from siderite.core.store.migrations import migrate
from siderite.identity import CatalogEntry
from siderite.identity import Identity
from siderite.identity import IdentityService
from tests.support.lending import prepare_file

URL = "http://cloud.test"
PASSWORD = "correct horse"
CATALOG = (
    CatalogEntry("compute", "siderite-compute", "/compute/v2.1"),
    CatalogEntry("baremetal", "siderite-baremetal", "/baremetal"),
)
_names = itertools.count()


class Nothing:
    """What is mounted beside identity."""

    name = "nothing"
    routes = Routes(())

    async def prepare(self, request: Request, route: Route) -> None:
        """Nobody is let in."""

    def finish(self, request: Request, response: Response) -> None:
        """No headers."""

    def error(self, request: Request, error: SideriteError) -> Response:
        """Any form."""
        return reply({}, error.status)


def application(identity: Identity, url: str = URL) -> App:
    """The ASGI application with identity mounted where it belongs."""
    service = IdentityService(identity, public_url=url, region="RegionOne", catalog=CATALOG)
    return App({"identity": service, "": Nothing()}, url)


class World:
    """Identity with an admin, a clock that stands still, and naps that take no time."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.now = 1_800_000_000.0
        self.naps: list[float] = []
        self.identity = self.another_process()
        transport = httpx.ASGITransport(app=application(self.identity))
        self.http = httpx.AsyncClient(transport=transport, base_url=URL + "/identity")
        self.token = ""

    def another_process(self) -> Identity:
        """Identity with a memory of its own on the same database."""
        return Identity(self.store, token_ttl_s=3600, clock=lambda: self.now, sleep=self._nap)

    async def _nap(self, seconds: float) -> None:
        self.naps.append(seconds)

    async def call(
        self, method: str, path: str, body: Any = None, token: str | None = None, **headers: str
    ) -> httpx.Response:
        """One request, as admin unless a token is given ("" for none)."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if token != "":
            sent["x-auth-token"] = self.token if token is None else token
        return await self.http.request(method, path, json=body, headers=sent)

    async def login(
        self, name: str = "admin", password: str = PASSWORD, scope: Any = None
    ) -> httpx.Response:
        """Log in with a password."""
        return await self.call("POST", "/v3/auth/tokens", by_password(name, password, scope), "")

    async def token_of(self, name: str, scope: Any = None) -> str:
        """A good token."""
        answer = await self.login(name, scope=scope)
        assert answer.status_code == 201, answer.text
        return str(answer.headers["x-subject-token"])

    async def role_id(self, name: str) -> str:
        """The id of a role."""
        return str((await self.call("GET", f"/v3/roles?name={name}")).json()["roles"][0]["id"])

    async def new_project(self, name: str | None = None) -> str:
        """A project's id."""
        body = {"project": {"name": name or f"project-{next(_names)}"}}
        return str((await self.call("POST", "/v3/projects", body)).json()["project"]["id"])

    async def new_user(self, name: str, **attributes: Any) -> str:
        """A user's id."""
        body = {"user": {"name": name, "password": PASSWORD, **attributes}}
        answer = await self.call("POST", "/v3/users", body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["user"]["id"])

    async def give(self, user: str, role: str, project: str | None = None) -> str:
        """Give a role in a project, or on the system; the path of the grant."""
        where = f"projects/{project}" if project else "system"
        path = f"/v3/{where}/users/{user}/roles/{await self.role_id(role)}"
        answer = await self.call("PUT", path)
        assert answer.status_code == 204, answer.text
        return path

    async def member(self, name: str = "mia", role: str = "member") -> tuple[str, str]:
        """Ids of a user with a role in a project of their own."""
        user, project = await self.new_user(name), await self.new_project()
        await self.give(user, role, project)
        return user, project


def by_password(name: str, password: str = PASSWORD, scope: Any = None) -> dict[str, Any]:
    """A login body."""
    user = {"name": name, "domain": {"id": "default"}, "password": password}
    auth: dict[str, Any] = {"identity": {"methods": ["password"], "password": {"user": user}}}
    if scope is not None:
        auth["scope"] = scope
    return {"auth": auth}


def by_token(token: str, scope: Any = None) -> dict[str, Any]:
    """A login body."""
    auth: dict[str, Any] = {"identity": {"methods": ["token"], "token": {"id": token}}}
    if scope is not None:
        auth["scope"] = scope
    return {"auth": auth}


@asynccontextmanager
async def world(url: str) -> AsyncIterator[World]:
    """An installation after its first start, with the admin logged in."""
    await prepare_file(url)
    store = await open_store(url)
    try:
        await migrate(store)
        made = World(store)
        async with made.http:
            await made.identity.first_start(PASSWORD)
            made.token = await made.token_of("admin")
            yield made
    finally:
        await store.close()


def story(told: Callable[[World], Awaitable[None]]) -> Callable[[str], None]:
    """A test that is told as a coroutine, on each database."""

    def test(database_url: str) -> None:
        async def tell() -> None:
            async with world(database_url) as here:
                await told(here)

        asyncio.run(tell())

    test.__name__ = told.__name__
    test.__module__ = told.__module__
    test.__doc__ = told.__doc__
    return test
