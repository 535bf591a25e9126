"""Scripting simulated parts over HTTP, for demonstrations and for people's own tests:
administrators only.

GET  /v1/scripts              every script, by its scope
PUT  /v1/scripts/{scope}      all, or a kind and a name (also DELETE)
"""

from collections.abc import Sequence
from typing import Generic

from siderite.core import shape
from siderite.core.auth import identify
from siderite.core.errors import Forbidden
from siderite.core.errors import Invalid
from siderite.core.errors import SideriteError
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import Routes
from siderite.core.http import reply
from siderite.core.simulation import B
from siderite.core.simulation import Scripts
from siderite.core.simulation import parse
from siderite.core.who import Authenticator


class ScriptService(Generic[B]):
    """The service that keeps scripts `of` something, for `scopes` such as host:NAME; `also` are
    what else can be done to it.
    """

    def __init__(
        self,
        name: str,
        scripts: Scripts[B],
        who: Authenticator,
        *,
        of: str,
        scopes: Sequence[str],
        also: Sequence[Route],
    ) -> None:
        self.name = name
        self._scripts = scripts
        self._who = who
        self._of = of
        self._scopes = scopes
        self.routes = Routes(
            [
                Route("GET", "/v1/scripts", ScriptService.show, gives=self._all_form),
                Route("PUT", "/v1/scripts/{scope}", ScriptService.put, gives=self._form),
                Route("DELETE", "/v1/scripts/{scope}", ScriptService.remove),
                *also,
            ]
        )

    def _all_form(self) -> shape.Json:
        return shape.under("scripts", shape.record({}, others=shape.typed(self._scripts.type)))

    def _form(self) -> shape.Json:
        told = {"scope": shape.text(), "script": shape.typed(self._scripts.type)}
        return shape.record(told, list(told))

    async def prepare(self, request: Request, route: Route) -> None:
        request.who = await identify(request, self._who)
        if not request.who.is_admin:
            raise Forbidden(f"Only administrators script the simulated {self._of}.")

    def finish(self, request: Request, response: Response) -> None:
        response.headers.append((b"x-openstack-request-id", request.request_id.encode()))

    def error(self, request: Request, error: SideriteError) -> Response:
        return reply({"error": {"code": error.code, "message": error.sentence}}, error.status)

    async def show(self, request: Request) -> Response:
        return reply({"scripts": self._scripts.every()})

    async def put(self, request: Request) -> Response:
        scope = self._scope(request.params[0])
        script = parse(await request.json(), self._scripts.type, self._of)
        self._scripts.set(scope, script)
        return reply({"scope": scope, "script": script})

    async def remove(self, request: Request) -> Response:
        self._scripts.set(self._scope(request.params[0]), None)
        return Response(status=204)

    def _scope(self, text: str) -> str:
        kind, _, name = text.partition(":")
        if text == "all" or (name and kind in [one.partition(":")[0] for one in self._scopes]):
            return text
        known = " or ".join(self._scopes)
        raise Invalid(f"A script is for all, {known}, not {text[:80]!r}.")
