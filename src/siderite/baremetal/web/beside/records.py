"""The addresses of records: one resource is a table of fields, a form and a few rules.

What all have in common is here: made, shown, listed, patched and removed, each since its version.
"""

from collections.abc import Awaitable
from collections.abc import Callable
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from typing import TYPE_CHECKING
from typing import Any
from typing import Generic
from typing import TypeVar

from msgspec.structs import replace

from siderite.baremetal.domain.node_machine import P
from siderite.baremetal.domain.record import Record
from siderite.baremetal.usecases.beside.records import By
from siderite.baremetal.usecases.beside.records import Records
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.node import find
from siderite.baremetal.web import address
from siderite.baremetal.web import forms
from siderite.baremetal.web import listing
from siderite.baremetal.web import policy
from siderite.baremetal.web.node import schemas
from siderite.baremetal.web.views import View
from siderite.core import shape
from siderite.core.check import Check
from siderite.core.check import short
from siderite.core.errors import Conflict
from siderite.core.errors import Invalid
from siderite.core.errors import NotAcceptable
from siderite.core.errors import NotFound
from siderite.core.http import Handler
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import raw
from siderite.core.ids import is_uuid
from siderite.core.store.table import Where
from siderite.core.who import Who

if TYPE_CHECKING:
    from siderite.baremetal.web.service import BaremetalService as Service

R = TypeVar("R", bound=Record)

REFUSE_INSPECTING = 39
NAMES_OF_NODES = 5
_OF_NODES = {"shard": "shard", "conductor_groups": "conductor_group"}

Filter = Callable[["Service", Request, str, str], Awaitable[Where | None]]
"""What an argument of a list means to this kind of record; None if nothing special."""


def _as_they_are(fields: dict[str, Any], version: int, who: Who) -> dict[str, Any]:
    return fields


@dataclass(frozen=True, kw_only=True)
class Resource(Generic[R]):
    """One kind of record on the wire.

    `named` is the version that lets it be found by name, None if it never is. `created` and
    `patched` have the last word on what a request makes of its fields; `make` is the use case of a
    creation that is more than a record. A `whole` list shows
    everything unasked; `details` says whether there is an address for that.
    """

    noun: str
    records: Records[R]
    view: View
    form: forms.Form
    filters: Mapping[str, int]
    unsortable: frozenset[str]
    since: int = 1
    patch_since: int = 0
    named: int | None = None
    whole: bool = False
    details: bool = False
    still_when_inspecting: bool = False
    where: Filter | None = None
    created: Callable[[dict[str, Any], int, Who], dict[str, Any]] = _as_they_are
    patched: Callable[[R, dict[str, Any], int, Who], dict[str, Any]] | None = None
    make: Callable[[Context, dict[str, Any], By], Awaitable[R]] | None = None
    rules: listing.Rules = field(init=False)

    def __post_init__(self) -> None:
        unsortable = self.unsortable | self.view.fields.links
        rules = listing.Rules(self.records.noun, self.view.fields, self.filters, unsortable)
        object.__setattr__(self, "rules", rules)

    @property
    def path(self) -> str:
        """Its place in the address."""
        return self.view.fields.kind

    def routes(self) -> tuple[Route, ...]:
        """Its addresses."""
        all_, one = f"/{self.path}", f"/{self.path}/{{{self.noun}}}"
        detail = [self._route("GET", f"{all_}/detail", self.detail, "read")] if self.details else []
        changes = max(self.since, self.patch_since)
        made = self._route("POST", all_, self.create, "create")
        patched = Route("PATCH", one, self.patch, f"{self.noun}:update", changes)
        return (
            self._route("GET", all_, self.index, "read"),
            replace(made, takes=self.form.new, gives=self.one_form),
            *detail,
            self._route("GET", one, self.show, "read"),
            replace(patched, takes=self.form.patch, gives=self.one_form),
            self._route("DELETE", one, self.remove, "delete"),
        )

    def one_form(self) -> shape.Json:
        """The form of one on the wire."""
        return self.view.form(self.records.table.kind)

    def partly(self) -> shape.Json:
        """The form of one of which some fields may be shown."""
        return shape.whole(self.one_form())

    def page_form(self) -> shape.Json:
        """The form of a list."""
        return shape.listed(self.view.fields.items, self.partly(), "next")

    def routes_below_nodes(self, since: int) -> tuple[Route, ...]:
        """The addresses of those of a node."""
        path, read = f"/nodes/{{node}}/{self.path}", f"{self.noun}:read"
        form = self.page_form
        found = [Route("GET", path, self.of_node, read, since, gives=form)]
        if self.details:
            detail = f"{path}/detail"
            found.append(Route("GET", detail, self.of_node_detail, read, since, gives=form))
        return tuple(found)

    def _route(self, method: str, path: str, handler: Handler, action: str) -> Route:
        gives = None
        if action == "read":
            gives = self.partly if handler == self.show else self.page_form
        return Route(method, path, handler, f"{self.noun}:{action}", self.since, gives=gives)

    def by(self, service: "Service", request: Request, action: str) -> By:
        """The request as its use case sees it."""
        guard = policy.guard(f"{self.noun}:{action}", request.who)
        if not self.still_when_inspecting or request.version < REFUSE_INSPECTING:
            return By(request.who, service.cause(request), guard)

        def strict(node: Any) -> None:
            guard(node)
            if action == "update" and node.provision_state == P.INSPECTING:
                raise Conflict(
                    f"Cannot update the {self.records.noun} of node {node.uuid} while it is in"
                    f" state {node.provision_state}; try again when it is done.",
                    retry_after_s=5,
                )

        return By(request.who, service.cause(request), strict)

    def ident(self, request: Request) -> str:
        """The record that the path names."""
        noun = self.records.noun
        if self.named is None:
            return address.uuid(request, noun)
        name = address.ident(request)
        if not is_uuid(name) and not address.NAME.fullmatch(name):
            raise Invalid(
                f"A {noun} is addressed by its UUID or its name, and {name[:80]!r} can be neither."
            )
        if request.version < self.named and not is_uuid(name):
            raise NotFound(
                f"{noun.capitalize()} {name[:200]} could not be found; it can be found by its name"
                f" from API version 1.{self.named} on."
            )
        return name

    async def create(self, service: "Service", request: Request) -> Response:
        """POST of a new one."""
        fields = self.form.created(await request.json(), request.version)
        fields = self.created(fields, request.version, request.who)
        make = self.make or self.records.create
        made = await make(service.ctx, fields, self.by(service, request, "create"))
        location = f"{service.base(request)}v1/{self.path}/{made.uuid}".encode()
        return raw(self._shown(service, request, made), 201, [(b"location", location)])

    async def show(self, service: "Service", request: Request) -> Response:
        """GET of one."""
        fields = self.rules.only_fields(request)
        body = await self.records.body_of(service.ctx, self.ident(request), request.who)
        return raw(self.view.one(body, request.version, service.base(request), fields))

    async def patch(self, service: "Service", request: Request) -> Response:
        """PATCH of one."""
        version, who = request.version, request.who
        patches = self.form.patches(await request.json(), version)

        def changes(value: R) -> dict[str, Any]:
            fields = self.form.patched(value, patches)
            return fields if self.patched is None else self.patched(value, fields, version, who)

        by = self.by(service, request, "update")
        changed = await self.records.update(service.ctx, self.ident(request), changes, by)
        return raw(self._shown(service, request, changed))

    async def remove(self, service: "Service", request: Request) -> Response:
        """DELETE of one."""
        by = self.by(service, request, "delete")
        await self.records.remove(service.ctx, self.ident(request), by)
        return Response(status=204)

    async def index(self, service: "Service", request: Request) -> Response:
        """GET of all."""
        return await self.listed(service, request, self.path)

    async def detail(self, service: "Service", request: Request) -> Response:
        """GET of all, with all their fields."""
        return await self.listed(service, request, f"{self.path}/detail", detail=True)

    async def of_node(self, service: "Service", request: Request) -> Response:
        """GET of those of a node."""
        return await self._of_node(service, request, "", detail=False)

    async def of_node_detail(self, service: "Service", request: Request) -> Response:
        """GET of those of a node, with all their fields."""
        return await self._of_node(service, request, "/detail", detail=True)

    async def _of_node(
        self, service: "Service", request: Request, end: str, *, detail: bool
    ) -> Response:
        node = address.ident(request)
        where = await of_node(service, request, node)
        path = f"nodes/{node}/{self.path}{end}"
        return await self.listed(service, request, path, where, detail=detail)

    async def listed(
        self, service: "Service", request: Request, path: str, *where: Where, detail: bool = False
    ) -> Response:
        """The list at this path, of those that also meet the conditions."""
        most = service.ctx.settings.max_limit
        ask = listing.parse(self.rules, request, detail=detail, max_limit=most)
        ask.detail = ask.detail or (self.whole and ask.fields is None)
        for key, value in ask.filters:
            ask.where.append(await self._where(service, request, key, value))
        what = self.view.columns(ask)
        found = await self.records.page(
            service.ctx, what, [*ask.where, *where], ask.page, request.who
        )
        base = service.base(request)
        return raw(self.view.page(ask, found, version=request.version, base=base, path=path))

    async def _where(self, service: "Service", request: Request, key: str, value: str) -> Where:
        if self.where is not None:
            special = await self.where(service, request, key, value)
            if special is not None:
                return special
        if key in ("node", "node_uuid"):
            return await of_node(service, request, _node(key, value, request.version))
        if key == "address":
            return Where("address = ?", (forms.mac(key, value),))
        if key in _OF_NODES:
            found = value.lower() if key == "conductor_groups" else value  # as they are stored
            condition = listing.one_of(_OF_NODES[key], key, found)
            nodes = f"SELECT uuid FROM nodes WHERE {condition.sql}"  # noqa: S608 - a column's name
            return Where(f"node_uuid IN ({nodes})", condition.args)
        if key == "description_contains":
            return listing.description_contains(value)
        return Where(f"{key} = ?", (value,))

    def _shown(self, service: "Service", request: Request, value: R) -> bytes:
        body = self.records.table.render(value)
        return self.view.one(body, request.version, service.base(request))


async def of_node(service: "Service", request: Request, node: str) -> Where:
    """The condition that a record belongs to a node, which must be there."""
    found = await find.node(service.ctx, node, request.who)
    return Where("node_uuid = ?", (found.uuid,))


def _node(key: str, value: str, version: int) -> str:
    if key == "node_uuid":
        return listing.uuid(key, value)
    if version < NAMES_OF_NODES and not is_uuid(value):
        raise NotAcceptable(
            f"Nodes have names from API version 1.{NAMES_OF_NODES} on; this request has"
            f" 1.{version}."
        )
    return value


def name(noun: str) -> Check:
    """A name that fits into an address, or null."""

    @shape.like(shape.or_null(shape.text(0, 255)))
    def check(key: str, value: Any) -> str | None:
        return schemas.name(forms.text(255)(key, value), REFUSE_INSPECTING, noun=noun)

    return check


@shape.like(shape.UUID)
def node_uuid(key: str, value: Any) -> str:
    """The UUID of the node that a record belongs to."""
    if isinstance(value, str) and is_uuid(value):
        return value.lower()
    raise Invalid(f"{key} must be the UUID of a node, not {short(value)}.")
