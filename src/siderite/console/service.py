"""The console's files, and the machines' tables as pictures and as lists of what is legal.

No page is made here and nobody is logged in here: the browser asks the public APIs with the user's
own token, which it sends in a header, so that no other site can have it act. The policy allows
scripts, styles and connections of this address only.
"""

from collections.abc import Callable
from collections.abc import Mapping
from http import HTTPStatus
from importlib.resources import files

import msgspec

from siderite.core import shape
from siderite.core.errors import NotFound
from siderite.core.errors import SideriteError
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import Routes
from siderite.core.http import reply

_KINDS = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = [
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-cache"),
]


class Shown(msgspec.Struct, frozen=True):
    """A machine as the console shows it."""

    picture: Callable[[str], str]
    """An SVG with a state marked."""
    verbs: Mapping[str, list[str]]
    """What may be asked for in each state."""


class ConsoleService:
    """The service at `/console`."""

    name = "console"

    def __init__(self, machines: Mapping[str, Shown]) -> None:
        self._machines = machines
        folder = files("siderite.console").joinpath("static")
        self._files = {
            entry.name: (entry.read_bytes(), _KINDS[entry.name.rpartition(".")[2]])
            for entry in folder.iterdir()
        }
        self.routes = Routes(
            [
                Route("GET", "/", ConsoleService.index, media="text/html"),
                Route("GET", "/machines.json", ConsoleService.tables, gives=_tables_form),
                Route("GET", "/machines/{name}", ConsoleService.picture, media="image/svg+xml"),
                Route("GET", "/{name}", ConsoleService.file, media="*/*"),
            ]
        )

    async def prepare(self, request: Request, route: Route) -> None:
        """Nothing here is secret, and nothing is negotiated."""

    def finish(self, request: Request, response: Response) -> None:
        response.headers.append((b"x-openstack-request-id", request.request_id.encode()))

    def error(self, request: Request, error: SideriteError) -> Response:
        return reply({"error": {"code": error.code, "message": error.sentence}}, error.status)

    async def index(self, request: Request) -> Response:
        """GET /console/: the page that is all pages; who leaves out the slash is led to it, as the
        page's files are beside it.
        """
        if not request.scope["path"].endswith("/"):
            return Response(
                status=HTTPStatus.FOUND, headers=[(b"location", b"console/"), *_HEADERS]
            )
        return self._file("index.html")

    async def file(self, request: Request) -> Response:
        """GET /console/{name}: a script, style or picture."""
        return self._file(request.params[0])

    def _file(self, name: str) -> Response:
        found = self._files.get(name)
        if found is None:
            raise NotFound(f"The console has no file {name[:80]}.")
        return _answer(*found)

    async def tables(self, request: Request) -> Response:
        """GET /console/machines.json: what may be asked for in each state."""
        return reply({name: {"verbs": dict(one.verbs)} for name, one in self._machines.items()})

    async def picture(self, request: Request) -> Response:
        """GET /console/machines/{name}.svg?here=STATE: a machine's picture, with a state marked."""
        name = request.params[0].removesuffix(".svg")
        machine = self._machines.get(name)
        if machine is None:
            raise NotFound(f"There is no machine {name[:80]}; there are node and server.")
        here = dict(request.query).get("here", "")
        return _answer(machine.picture(here).encode(), _KINDS["svg"])


def _tables_form() -> shape.Json:
    """The form of the tables: words by state, by machine."""
    words = {"type": "array", "items": shape.text()}
    return shape.record({}, others=shape.under("verbs", shape.record({}, others=words)))


def _answer(body: bytes, kind: str) -> Response:
    return Response(body, headers=[(b"content-type", kind.encode()), *_HEADERS])
