"""The addresses of keypairs."""

from typing import TYPE_CHECKING
from typing import Any

from siderite.compute.domain.keypair import KINDS
from siderite.compute.domain.keypair import Keypair
from siderite.compute.usecases.project import keypairs
from siderite.compute.web import checks
from siderite.compute.web import forms
from siderite.compute.web import queries
from siderite.compute.web import views
from siderite.compute.web.policy import refusal
from siderite.compute.web.versions import RANGE
from siderite.core import shape
from siderite.core.check import Check
from siderite.core.check import record
from siderite.core.errors import Invalid
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import reply
from siderite.core.times import without_offset

if TYPE_CHECKING:
    from siderite.compute.web.service import ComputeService as Service

TYPED = 2
OF_OTHERS = 10
PAGES = 35
IMPORT_ONLY = 92
_MOST_KEY = 65535


def _user(request: Request, asked: str | None) -> str:
    """Whose keys are meant; those of others are for administrators."""
    if asked is None or asked == request.who.user_id:
        return request.who.user_id
    if not request.who.is_admin:
        raise refusal("os_compute_api:os-keypairs")
    return asked


def _asked(request: Request) -> dict[str, Any]:
    fields: dict[str, Check] = {}
    if request.version >= OF_OTHERS:
        fields["user_id"] = checks.free_text()
    if request.version >= PAGES:
        fields |= {"limit": queries.limit, "marker": queries.marker}
    return queries.take(request, fields)


def _brief(key: Keypair, version: int) -> dict[str, Any]:
    shown = {
        "name": key.name,
        "public_key": key.public_key,
        "fingerprint": key.fingerprint,
    }
    return shown | ({"type": key.kind} if version >= TYPED else {})


def _whole(number: int, key: Keypair, version: int) -> dict[str, Any]:
    return {
        **_brief(key, version),
        "user_id": key.user_id,
        "id": number,
        "created_at": without_offset(key.created_at),
        "updated_at": None,
        "deleted": False,
        "deleted_at": None,
    }


def _fields(version: int) -> dict[str, Check]:
    """What may be said of a new one."""
    letters = r"[A-Za-z0-9 ._@-]+" if version >= IMPORT_ONLY else r"[A-Za-z0-9 _-]+"
    fields: dict[str, Check] = {
        "name": checks.text(letters),
        "public_key": checks.free_text(_MOST_KEY),
    }
    if version >= TYPED:
        fields["type"] = checks.choice(*KINDS)
    if version >= OF_OTHERS:
        fields["user_id"] = checks.free_text()
    return fields


def new() -> shape.Json:
    """The form of the body that makes one."""
    return shape.under("keypair", record(_fields(RANGE.high), ["name"]))


def _form() -> shape.Json:
    def view(key: Keypair, version: int) -> Any:
        return _whole(1, key, version)

    return shape.across(view, shape.both(Keypair), RANGE.every)


def shown() -> shape.Json:
    """The form of one on the wire."""
    return shape.under("keypair", _form())


def _made_form() -> shape.Json:
    """The form of a new one: with its private key, if that was made here."""
    found = shape.whole(_form())
    keys = {**found["properties"], "private_key": shape.text()}
    return shape.under("keypair", {**found, "properties": keys})


def page_form() -> shape.Json:
    """The form of a list."""
    item = shape.under("keypair", shape.whole(_form()))
    return shape.listed("keypairs", item, "keypairs_links")


async def index(service: "Service", request: Request) -> Response:
    """GET /os-keypairs"""
    asked = _asked(request)
    user = _user(request, asked.get("user_id"))
    limit = asked.get("limit")
    if request.version >= PAGES:
        most = service.ctx.settings.max_limit
        limit = most if limit is None else min(limit, most)
    found = await keypairs.page(service.ctx, user, asked.get("marker"), limit)
    shown: dict[str, Any] = {
        "keypairs": [{"keypair": _brief(key, request.version)} for key in found]
    }
    if limit is not None and found and len(found) == limit:
        href = views.following(service, request, "os-keypairs", found[-1].name)
        shown["keypairs_links"] = [{"rel": "next", "href": href}]
    return reply(shown)


async def show(service: "Service", request: Request) -> Response:
    """GET /os-keypairs/{name}"""
    user = _user(request, _asked(request).get("user_id"))
    number, key = await keypairs.find(service.ctx, user, request.params[0])
    return reply({"keypair": _whole(number, key, request.version)})


async def create(service: "Service", request: Request) -> Response:
    """POST /os-keypairs"""
    version = request.version
    needed = ("name", "public_key") if version >= IMPORT_ONLY else ("name",)
    asked = checks.body(await forms.document(request), "keypair", _fields(version), needed)
    user = _user(request, asked.get("user_id"))
    name, kind = asked["name"], asked.get("type", "ssh")
    await keypairs.may_add(service.ctx, user, request.who.project_id, name)
    public, private = asked.get("public_key"), None
    if public is None:
        if kind != "ssh":
            raise Invalid("Certificates are not made here; import one as public_key.")
        public, private = await service.key_maker.make(user)
    key = await keypairs.add(
        service.ctx, user, name, kind=kind, public_key=public, is_made=private is not None,
        cause=service.cause(request),
    )  # fmt: skip
    shown = {**_brief(key, version), "user_id": key.user_id}
    if private is not None:
        shown["private_key"] = private
    return reply({"keypair": shown}, 201 if version >= TYPED else 200)


async def remove(service: "Service", request: Request) -> Response:
    """DELETE /os-keypairs/{name}"""
    user = _user(request, _asked(request).get("user_id"))
    cause = service.cause(request)
    await keypairs.remove(service.ctx, user, request.params[0], cause=cause)
    return Response(status=204 if request.version >= TYPED else 202)


_POLICY = "keypairs:own"
ROUTES = (
    Route("GET", "/v2.1/os-keypairs", index, _POLICY, gives=page_form),
    Route("POST", "/v2.1/os-keypairs", create, _POLICY, takes=new, gives=_made_form),
    Route("GET", "/v2.1/os-keypairs/{name}", show, _POLICY, gives=shown),
    Route("DELETE", "/v2.1/os-keypairs/{name}", remove, _POLICY),
)
