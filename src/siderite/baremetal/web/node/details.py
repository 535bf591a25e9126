"""The addresses of what is known of a machine: BIOS settings, firmware, inventory."""

from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any

from siderite.baremetal.domain import bios as bios_words
from siderite.baremetal.domain.details import Inventory
from siderite.baremetal.domain.details import KnownFirmware
from siderite.baremetal.domain.details import KnownSetting
from siderite.baremetal.domain.secrets import MASK
from siderite.baremetal.usecases.node import details
from siderite.baremetal.web import forms
from siderite.baremetal.web import policy
from siderite.baremetal.web.address import ident
from siderite.baremetal.web.bodies import no_query
from siderite.core import shape
from siderite.core.errors import Invalid
from siderite.core.errors import NotAcceptable
from siderite.core.errors import NotFound
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import reply

if TYPE_CHECKING:
    from siderite.baremetal.web.service import BaremetalService as Service

REGISTRY_SINCE = 74
IDENTITY_SINCE = 114
_BRIEF = ("created_at", "updated_at", "name", "value")
_REGISTRY = (
    "attribute_type", "allowable_values", "lower_bound", "max_length", "min_length", "read_only",
    "reset_required", "unique", "upper_bound",
)  # fmt: skip


def _firmware(request: Request) -> Any:
    return policy.guard("node:firmware:read", request.who)


async def bios(service: "Service", request: Request) -> Response:
    """GET /v1/nodes/{node}/bios"""
    fields = _fields(request)
    node, known = await details.settings(
        service.ctx, ident(request), request.who, _firmware(request)
    )
    base = service.base(request)
    return reply({"bios": [_setting(item, node.uuid, base, fields) for item in known]})


async def bios_setting(service: "Service", request: Request) -> Response:
    """GET /v1/nodes/{node}/bios/{setting}"""
    no_query(request)
    node, known = await details.settings(
        service.ctx, ident(request), request.who, _firmware(request)
    )
    name = request.params[1]
    fields = (*_BRIEF, *(_REGISTRY if request.version >= REGISTRY_SINCE else ()))
    for item in known:
        if item.setting.name == name:
            return reply({name: _setting(item, node.uuid, service.base(request), fields)})
    raise NotFound(f"Node {node.uuid} doesn't have a BIOS setting {name[:80]!r}.")


def bios_form() -> shape.Json:
    """The form of a machine's BIOS settings."""
    return shape.listed("bios", shape.whole(_setting_form()))


def bios_setting_form() -> shape.Json:
    """The form of one of them, under its name."""
    return shape.record({}, others=_setting_form())


def _setting_form() -> shape.Json:
    chosen = (_BRIEF, (*_BRIEF, *_REGISTRY))
    known = shape.both(KnownSetting)
    return shape.wire(*(_setting(one, "", "", fields) for one in known for fields in chosen))


def _fields(request: Request) -> Sequence[str]:
    """Which fields a list shows: the few, all, or those asked for."""
    detail, some = False, None
    for key, value in request.query:
        if key not in ("detail", "fields"):
            raise Invalid(f"Unexpected arguments: {key[:80]}. This list takes: detail, fields.")
        if request.version < REGISTRY_SINCE:
            raise NotAcceptable(f"{key} needs API version 1.{REGISTRY_SINCE} here.")
        if key == "detail":
            detail = forms.flag(key, value)
        else:
            some = [name for name in value.split(",") if name]
    if some is None:
        return (*_BRIEF, *_REGISTRY) if detail else _BRIEF
    if detail:
        raise Invalid("Give either detail or fields.")
    known = (*_BRIEF, *_REGISTRY, "links")
    for name in some:
        if name not in known:
            raise Invalid(f"Field(s) {name[:80]!r} are not valid; there are: {', '.join(known)}.")
    return some


def _setting(item: KnownSetting, node: str, base: str, fields: Sequence[str]) -> dict[str, Any]:
    path = f"nodes/{node}/bios/{item.setting.name}"
    shown: dict[str, Any] = {}
    for name in fields:
        if name != "links":
            source = item if name in ("created_at", "updated_at") else item.setting
            shown[name] = getattr(source, name)
    if shown.get("value") and bios_words.is_password(item.setting):
        shown["value"] = MASK
    shown["links"] = [
        {"href": f"{base}v1/{path}", "rel": "self"},
        {"href": f"{base}{path}", "rel": "bookmark"},
    ]
    return shown


async def firmware(service: "Service", request: Request) -> Response:
    """GET /v1/nodes/{node}/firmware"""
    no_query(request)
    known = await details.firmware(service.ctx, ident(request), request.who, _firmware(request))
    return reply({"firmware": [_part(item, request.version) for item in known]})


def _part(item: KnownFirmware, version: int) -> dict[str, Any]:
    part = item.part
    line = {
        "component": part.component,
        "initial_version": item.initial_version,
        "current_version": part.current_version,
        "last_version_flashed": item.last_version_flashed,
        "created_at": item.created_at,
        "updated_at": item.updated_at,
    }
    if version >= IDENTITY_SINCE:
        line |= {
            "vendor": part.vendor, "model": part.model, "serial_number": part.serial_number,
        }  # fmt: skip
    return line


def firmware_form() -> shape.Json:
    """The form of a machine's firmware."""
    versions = (1, IDENTITY_SINCE)
    return shape.listed("firmware", shape.across(_part, shape.both(KnownFirmware), versions))


async def inventory(service: "Service", request: Request) -> Response:
    """GET /v1/nodes/{node}/inventory"""
    no_query(request)
    guard = policy.guard("node:management:read", request.who)
    found = await details.inventory(service.ctx, ident(request), request.who, guard)
    return reply(found)


def inventory_form() -> shape.Json:
    """The form of what inspection found: its own words under two keys."""
    return shape.wire(*shape.both(Inventory))
