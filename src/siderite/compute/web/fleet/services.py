"""The addresses of compute services: hosts, enabled or not, up or not."""

from typing import TYPE_CHECKING
from typing import Any

from siderite.compute.usecases.fleet import hosts
from siderite.compute.usecases.fleet import inventory
from siderite.compute.usecases.fleet.inventory import Service as Found
from siderite.compute.web import checks
from siderite.compute.web import forms
from siderite.compute.web import queries
from siderite.compute.web.versions import RANGE
from siderite.core import shape
from siderite.core.check import Check
from siderite.core.check import record
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import reply
from siderite.core.store.table import Where
from siderite.core.times import iso
from siderite.core.times import without_offset

if TYPE_CHECKING:
    from siderite.compute.web.service import ComputeService as Service

FORCED_DOWN = 11
UUIDS = 53
OURS = 900
BINARY = "nova-compute"
_REASON = checks.text()
_TEXT = checks.text()


def _key(found: Found, version: int) -> int | str:
    return found.host.uuid if version >= UUIDS else found.number


def _shown(found: Found, version: int) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": _key(found, version),
        "binary": BINARY,
        "host": found.host.name,
        "zone": found.zone,
        "status": "disabled" if found.host.disabled else "enabled",
        "state": "up" if found.is_up else "down",
        "updated_at": without_offset(iso(found.seen_at)) if found.seen_at else None,
        "disabled_reason": found.host.disabled_reason,
    }
    if version >= FORCED_DOWN:
        shown["forced_down"] = found.host.forced_down
    if version >= OURS:
        shown["conductor_group"] = found.host.conductor_group
        shown["down_reason"] = found.why_down
    return shown


async def index(service: "Service", request: Request) -> Response:
    """GET /os-services"""
    fields = {"host": checks.free_text(), "binary": checks.free_text()}
    asked = queries.take(request, fields)
    where = [Where("name = ?", (asked["host"],))] if "host" in asked else []
    found = [
        _shown(one, request.version)
        for one in await inventory.services(service.ctx, *where)
        if asked.get("binary") in (None, BINARY)
    ]
    return reply({"services": found})


_CHANGES = {
    "status": checks.choice("enabled", "disabled"),
    "disabled_reason": _REASON,
    "forced_down": checks.flag,
}


def changes() -> shape.Json:
    """The form of the body that changes one, by either address."""
    return record({**_CHANGES, "host": _TEXT, "binary": _TEXT})


def _form() -> shape.Json:
    return shape.across(_shown, shape.both(Found), RANGE.every)


async def update(service: "Service", request: Request) -> Response:
    """PUT /os-services/{id}; below 2.53 the last word says what to do to which host."""
    word, document = request.params[0], await forms.document(request)
    if request.version < UUIDS:
        return await _by_word(service, request, word, document)
    asked = checks.body(document, None, _CHANGES)
    if not asked:
        raise Invalid("No updates were requested. Fields 'status' or 'forced_down' should be"
                      " specified.")  # fmt: skip
    if "disabled_reason" in asked and asked.get("status") != "disabled":
        raise Invalid("Specifying 'disabled_reason' is only allowed when 'status' is 'disabled'.")
    checks.ident(word, by_uuid=True)
    found = await inventory.service(service.ctx, word)
    changes: dict[str, Any] = {}
    if "status" in asked:
        changes["disabled"] = asked["status"] == "disabled"
        changes["disabled_reason"] = asked.get("disabled_reason")
    if "forced_down" in asked:
        changes["forced_down"] = asked["forced_down"]
    cause = service.cause(request)
    after = await inventory.change(service.ctx, found.host.uuid, changes, cause=cause)
    return reply({"service": _shown(after, request.version)})


async def _by_word(service: "Service", request: Request, word: str, document: Any) -> Response:
    fields: dict[str, Check] = {"host": _TEXT, "binary": _TEXT}
    if word == "disable-log-reason":
        fields["disabled_reason"] = _REASON
    elif word == "force-down" and request.version >= FORCED_DOWN:
        fields["forced_down"] = checks.flag
    elif word not in ("enable", "disable"):
        raise NotFound(f"Unknown action {word[:80]!r}; there are enable and disable.")
    asked = checks.body(document, None, fields, fields)
    found = await inventory.named(service.ctx, asked["host"])
    if asked["binary"] != BINARY:
        raise NotFound(f"Could not find binary {asked['binary']} on host {asked['host']}.")
    changes: dict[str, Any] = {"disabled": word != "enable", "disabled_reason": None}
    answer: dict[str, Any] = {"host": asked["host"], "binary": BINARY}
    if word == "force-down":
        changes = {"forced_down": asked["forced_down"]}
        answer["forced_down"] = asked["forced_down"]
    else:
        answer["status"] = "enabled" if word == "enable" else "disabled"
    if word == "disable-log-reason":
        changes["disabled_reason"] = answer["disabled_reason"] = asked["disabled_reason"]
    cause = service.cause(request)
    await inventory.change(service.ctx, found.host.uuid, changes, cause=cause)
    return reply({"service": answer})


async def remove(service: "Service", request: Request) -> Response:
    """DELETE /os-services/{id}"""
    checks.ident(request.params[0], by_uuid=request.version >= UUIDS)
    found = await inventory.service(service.ctx, request.params[0])
    if str(_key(found, request.version)) != request.params[0]:
        raise NotFound(
            f"Service {request.params[0][:80]} not found. `compute service list` shows all."
        )
    await hosts.remove(service.ctx, found.host.name)
    return Response(status=204)


_ONE = "/v2.1/os-services/{id}"
ROUTES = (
    Route(
        "GET",
        "/v2.1/os-services",
        index,
        "services:manage",
        gives=lambda: shape.listed("services", _form()),
    ),
    Route(
        "PUT",
        _ONE,
        update,
        "services:manage",
        takes=changes,
        gives=lambda: shape.under("service", shape.whole(_form())),
    ),
    Route("DELETE", _ONE, remove, "services:manage"),
)
