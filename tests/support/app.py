"""The whole program in this process, on a database of its own, and a tiny client for it.

No socket: the client calls the ASGI application as the HTTP server would. `running` is for
coroutines, `standing` for plain tests (hypothesis), which then ask one question at a time:

    with standing(tmp_path) as app:
        node = app.make_node(name="n1")
        answer = app.ask("PATCH", f"/v1/nodes/{node}", [...], version="1.50")
        assert answer.status == 200, answer

Paths that begin with `/v1` are the bare metal API's; others are taken as they are. Without
`work=True` nothing goes on beside the requests, so that a node stays in the state it is put in.
"""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from collections.abc import Coroutine
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import asynccontextmanager
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from typing import TypeVar
from urllib.parse import unquote

from siderite import wiring
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.node_machine import NODE
from siderite.baremetal.store import NODES
from siderite.baremetal.usecases.power import power_schedule
from siderite.core.config import Config
from siderite.core.ids import new_uuid
from siderite.core.times import iso
from siderite.core.transition import Cause
from tests.support.known import check_known
from tests.support.lending import prepare_file

T = TypeVar("T")
URL = "http://cloud.test"
PASSWORD = "correct horse"
LATEST = "1.115"
VERSION_HEADER = "x-openstack-ironic-api-version"
_NOTHING: Any = object()
_names = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    fields: Sequence[tuple[str, str]]
    body: bytes

    @property
    def headers(self) -> dict[str, str]:
        """Headers by their lower case names."""
        return dict(self.fields)

    @property
    def json(self) -> Any:
        """The body, parsed."""
        return json.loads(self.body)

    @property
    def sentence(self) -> str:
        """What an error says, out of whichever API's envelope."""
        body = self.json
        if "error_message" in body:
            inner = json.loads(body["error_message"])
            return str(inner.get("faultstring") or inner.get("description"))
        return str(body["error"]["message"])


def scope(method: str, target: str, headers: Sequence[tuple[bytes, bytes]]) -> dict[str, Any]:
    """A request as the HTTP server hands it to an ASGI application."""
    raw, _, query = target.partition("?")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(raw),
        "raw_path": raw.encode("ascii"),
        "query_string": query.encode("ascii"),
        "root_path": "",
        "headers": list(headers),
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8770),
    }


async def call(
    app: Any, method: str, target: str, headers: Sequence[tuple[bytes, bytes]], body: bytes
) -> Answer:
    """One request to an ASGI application; the body goes in pieces of 64 KiB, as from a socket."""
    pieces = [body[at : at + 65536] for at in range(0, len(body), 65536)] or [b""]
    sent: list[dict[str, Any]] = []
    complete = asyncio.Event()

    async def receive() -> dict[str, Any]:
        if not pieces:
            await complete.wait()
            return {"type": "http.disconnect"}
        piece = pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)
        if message["type"] == "http.response.body" and not message.get("more_body"):
            complete.set()

    await app(scope(method, target, headers), receive, send)
    start, *rest = sent
    fields = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in start["headers"]]
    return Answer(start["status"], fields, b"".join(part["body"] for part in rest))


class Application:
    """A running program, and ways to ask it."""

    def __init__(self, program: wiring.Program) -> None:
        self.program = program
        self.token = ""

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = _NOTHING,
        *,
        version: str | int | None = LATEST,
        token: str | None = None,
        headers: Mapping[str, str] | Sequence[tuple[str, str]] = (),
    ) -> Answer:
        """One request, as admin unless a token is given ("" for none).

        `body` is sent as JSON, bytes as they are; `version` may be given as its minor number.
        """
        if path.startswith("/v1"):
            path = "/baremetal" + path
        sent = [(b"host", b"cloud.test")]
        if version is not None:
            text = f"1.{version}" if isinstance(version, int) else version
            sent.append((VERSION_HEADER.encode(), text.encode("latin-1")))
        if token != "":
            sent.append((b"x-auth-token", (token or self.token).encode("latin-1")))
        pairs = headers.items() if isinstance(headers, Mapping) else headers
        sent += [(name.lower().encode("latin-1"), text.encode("latin-1")) for name, text in pairs]
        if body is _NOTHING:
            body = b""
        elif not isinstance(body, bytes):
            body = json.dumps(body).encode()
            sent.append((b"content-type", b"application/json"))
        return await call(self.program.app, method, path, sent, body)

    async def login(self, name: str = "admin", project: str | None = None) -> str:
        """A token of a user, on a project by its id (the admin's own without)."""
        user = {"name": name, "domain": {"id": "default"}, "password": PASSWORD}
        auth: dict[str, Any] = {"identity": {"methods": ["password"], "password": {"user": user}}}
        where = {"name": "admin", "domain": {"id": "default"}}
        auth["scope"] = {"project": where if project is None else {"id": project}}
        answer = await self.ask("POST", "/identity/v3/auth/tokens", {"auth": auth}, token="")
        assert answer.status == 201, answer
        return answer.headers["x-subject-token"]

    async def project(self) -> str:
        """The id of a new project."""
        body = {"project": {"name": f"project-{next(_names)}"}}
        answer = await self.ask("POST", "/identity/v3/projects", body)
        assert answer.status == 201, answer
        return str(answer.json["project"]["id"])

    async def person(self, role: str, project: str | None = None) -> tuple[str, str, str]:
        """Name, token and project of a new user with a role, in a new project if none is given."""
        name = f"user-{next(_names)}"
        home = project or await self.project()
        user = {"name": name, "password": PASSWORD, "default_project_id": home}
        made = await self.ask("POST", "/identity/v3/users", {"user": user})
        assert made.status == 201, made
        roles = await self.ask("GET", f"/identity/v3/roles?name={role}")
        role_id = roles.json["roles"][0]["id"]
        grant = f"/identity/v3/projects/{home}/users/{made.json['user']['id']}/roles/{role_id}"
        assert (await self.ask("PUT", grant)).status == 204
        return name, await self.login(name, home), home

    async def make_node(self, **fields: Any) -> str:
        """The UUID of a new node, made through the API."""
        answer = await self.ask("POST", "/v1/nodes", {"driver": "fake-hardware", **fields})
        assert answer.status == 201, answer
        return str(answer.json["uuid"])

    async def plant(self, state: str, **fields: Any) -> str:
        """The UUID of a new node that is in a state which it did not come to by the machine."""
        change = self.program.door.change(Cause())
        made: dict[str, Any] = {
            "uuid": new_uuid(),
            "driver": "fake-hardware",
            "created_at": iso(change.now),
            "provision_state": str(state),
            "target_provision_state": NODE.states[state].target,
            **self.program.baremetal.cards["fake-hardware"].fill_in({}),
            **fields,
        }
        node = Node(**made)
        change.put(NODES.insert(node))
        change.put(power_schedule.begin(node.uuid, change.now))
        await self.program.door.commit(change)
        return node.uuid

    async def node(self, uuid: str) -> Node:
        """A node as it is stored, secrets and version included."""
        node = await NODES.get(self.program.store, uuid)
        assert node is not None, uuid
        return node

    async def show(self, uuid: str) -> dict[str, Any]:
        """A node as the API shows it."""
        answer = await self.ask("GET", f"/v1/nodes/{uuid}", version=900)
        assert answer.status == 200, answer
        shown: dict[str, Any] = answer.json
        return shown


@asynccontextmanager
async def running(
    data: Path, db: str = "", *, work: bool = False, **options: Any
) -> AsyncIterator[Application]:
    """The program on a database (SQLite in the directory without one), the admin logged in."""
    options.setdefault("compute_endpoint", "")  # there is no listener that would take it
    if not work:
        options.setdefault("power_wait_s", 0.0)  # nobody is there who would end a change of power
    mine = {"host": "here", "public_url": URL, "admin_password": PASSWORD, **options}
    config = Config(data=str(data), db=db, **mine)
    await prepare_file(config.database)
    program = await wiring.build(config)
    app = Application(program)
    if work:
        async with wiring.carrying_on(program):
            app.token = await app.login()
            yield app
    else:
        try:
            app.token = await app.login()
            yield app
        finally:
            await program.close()
    check_known(program.store)


class Standing:
    """The same for plain functions: each question is asked, and answered, at once."""

    def __init__(self, app: Application, runner: asyncio.Runner) -> None:
        self.app = app
        self._runner = runner

    def run(self, story: Coroutine[Any, Any, T]) -> T:
        """What a coroutine gives. The loop itself is asked: `Runner.run` sets a handler of Ctrl-C
        each time, which takes as long as a short request.
        """
        return self._runner.get_loop().run_until_complete(story)

    def ask(self, method: str, path: str, body: Any = _NOTHING, **how: Any) -> Answer:
        """See `Application.ask`."""
        return self.run(self.app.ask(method, path, body, **how))

    def person(self, role: str, project: str | None = None) -> tuple[str, str, str]:
        """See `Application.person`."""
        return self.run(self.app.person(role, project))

    def make_node(self, **fields: Any) -> str:
        """See `Application.make_node`."""
        return self.run(self.app.make_node(**fields))

    def plant(self, state: str, **fields: Any) -> str:
        """See `Application.plant`."""
        return self.run(self.app.plant(state, **fields))

    def node(self, uuid: str) -> Node:
        """See `Application.node`."""
        return self.run(self.app.node(uuid))

    def show(self, uuid: str) -> dict[str, Any]:
        """See `Application.show`."""
        return self.run(self.app.show(uuid))


@contextmanager
def standing(data: Path, db: str = "", *, work: bool = False, **options: Any) -> Iterator[Standing]:
    """`running`, for tests that are no coroutines; work goes on only while a question is asked."""
    with asyncio.Runner() as runner:
        world = running(data, db, work=work, **options)
        app = runner.run(world.__aenter__())
        try:
            yield Standing(app, runner)
        finally:
            runner.run(world.__aexit__(None, None, None))
