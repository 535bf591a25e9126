"""The traits of nodes and of runbooks on the wire."""

from collections.abc import Awaitable
from collections.abc import Callable
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from siderite.baremetal.domain.runbook import Runbook
from siderite.baremetal.usecases.beside import runbooks
from siderite.baremetal.usecases.beside.records import By
from siderite.baremetal.usecases.node import find
from siderite.baremetal.usecases.node import traits
from siderite.baremetal.usecases.node.traits import Edit
from siderite.baremetal.web import address
from siderite.baremetal.web import forms
from siderite.baremetal.web import policy
from siderite.baremetal.web.beside.runbooks import TRAITS_SINCE
from siderite.core import shape
from siderite.core.errors import Invalid
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import reply
from siderite.core.json_body import parse_json

if TYPE_CHECKING:
    from siderite.baremetal.web.service import BaremetalService as Service

_LIST = forms.list_of(forms.trait, most=1000)
SINCE = 37


def _taken() -> shape.Json:
    return shape.under("traits", {**shape.of(_LIST), "type": "array"})


def _shown() -> shape.Json:
    return shape.listed("traits", shape.text())


class Traits(msgspec.Struct, frozen=True):
    """The addresses of the traits of one kind of resource."""

    kind: str
    policies: tuple[str, str]
    since: int
    read: Callable[["Service", str, By], Awaitable[Sequence[str]]]
    change: Callable[["Service", str, Edit, By], Awaitable[object]]
    without: Callable[[str], Edit]

    def routes(self) -> tuple[Route, ...]:
        """Its addresses."""
        read, update = self.policies
        all_ = f"/{self.kind}/{{ident}}/traits"
        return (
            Route("GET", all_, self.show, read, self.since, gives=_shown),
            Route("PUT", all_, self.put, update, self.since, takes=_taken),
            Route("DELETE", all_, self.clear, update, self.since),
            Route("PUT", f"{all_}/{{trait}}", self.add, update, self.since),
            Route("DELETE", f"{all_}/{{trait}}", self.remove, update, self.since),
        )

    async def show(self, service: "Service", request: Request) -> Response:
        """GET of all."""
        by = By(request.who, service.cause(request))
        return reply({"traits": await self.read(service, address.ident(request), by)})

    async def put(self, service: "Service", request: Request) -> Response:
        """PUT of all."""
        document = await request.json()
        if not isinstance(document, dict) or set(document) != {"traits"}:
            raise Invalid('The body must be an object such as {"traits": ["CUSTOM_FAST"]}.')
        if document["traits"] is None:
            raise Invalid("traits must be a list; an empty one clears them.")
        wanted = _LIST("traits", document["traits"])
        return await self._change(service, request, lambda _: wanted)

    async def clear(self, service: "Service", request: Request) -> Response:
        """DELETE of all."""
        return await self._change(service, request, lambda _: [])

    async def add(self, service: "Service", request: Request) -> Response:
        """PUT of one."""
        trait = forms.trait("trait", request.params[1])
        body = await request.body()
        if body and parse_json(body):
            raise Invalid("No body should be provided when adding a trait.")
        answer = await self._change(service, request, lambda there: [*there, trait])
        path = f"v1/{self.kind}/{address.ident(request)}/traits/{trait}"
        answer.headers.append((b"location", f"{service.base(request)}{path}".encode()))
        return answer

    async def remove(self, service: "Service", request: Request) -> Response:
        """DELETE of one."""
        return await self._change(service, request, self.without(request.params[1]))

    async def _change(self, service: "Service", request: Request, edit: Edit) -> Response:
        guard = policy.guard(self.policies[1], request.who)
        by = By(request.who, service.cause(request), guard)
        await self.change(service, address.ident(request), edit, by)
        return Response(status=204)


async def _of_node(service: "Service", ident: str, by: By) -> Sequence[str]:
    return (await find.node(service.ctx, ident, by.who)).traits


async def _change_node(service: "Service", ident: str, edit: Edit, by: By) -> object:
    return await traits.change_of_node(service.ctx, ident, edit, by)


async def _of_runbook(service: "Service", ident: str, by: By) -> list[str]:
    return (await runbooks.RECORDS.find(service.ctx, ident, by)).value.traits


async def _change_runbook(service: "Service", ident: str, edit: Edit, by: By) -> object:
    def changes(runbook: Runbook) -> dict[str, list[str]]:
        return {"traits": sorted(set(edit(runbook.traits)))}

    return await runbooks.RECORDS.update(service.ctx, ident, changes, by)


OF_NODES = Traits(
    "nodes", ("trait:read", "trait:update"), SINCE, _of_node, _change_node, traits.without
)
OF_RUNBOOKS = Traits(
    "runbooks",
    ("runbook_trait:read", "runbook_trait:update"),
    TRAITS_SINCE,
    _of_runbook,
    _change_runbook,
    lambda trait: lambda there: [name for name in there if name != trait],
)
