"""Extra specs of flavors, and who may use those that are not public."""

from typing import TYPE_CHECKING
from typing import Any

from siderite.compute.domain.flavor import Flavor
from siderite.compute.usecases.project import flavors
from siderite.compute.web import forms
from siderite.compute.web.catalogue import extra_specs
from siderite.compute.web.forms import Key
from siderite.core import shape
from siderite.core.errors import Conflict
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import reply

if TYPE_CHECKING:
    from siderite.compute.web.service import ComputeService as Service

_KEY = forms.text(1, 255, r"[a-zA-Z0-9-_:. ]{1,255}")
_NO_ACCESS_FOR_PUBLIC = 7


@shape.like(shape.record({}, others={"type": ["string", "number"]}))
def _specs(name: str, value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise forms.wrong(name, value, "it must be an object")
    found = {}
    for key, item in value.items():
        _KEY("extra_specs", key)
        if isinstance(item, bool) or not isinstance(item, str | int | float):
            raise forms.wrong(key, item, "it must be text or a number")
        found[key] = forms.text(0, 255)(key, str(item))
    return found


_TENANT = {"tenant": Key(forms.text(1, 255), required=True)}
_ACCESS = ("addTenantAccess", "removeTenantAccess")
_SPECS = shape.record({}, others=shape.text())


def _some() -> shape.Json:
    return _SPECS


def _all() -> shape.Json:
    return shape.under("extra_specs", _SPECS)


def _action() -> shape.Json:
    names = dict.fromkeys(_ACCESS, forms.form(_TENANT))
    return {**shape.record(names), "minProperties": 1, "maxProperties": 1}


def _tenants() -> shape.Json:
    item = shape.record({"flavor_id": shape.text(), "tenant_id": shape.text()})
    return shape.listed("flavor_access", item)


async def _flavor(service: "Service", request: Request) -> Flavor:
    return await flavors.flavor(service.ctx, request.params[0], request.who)


async def _set(service: "Service", request: Request, specs: dict[str, str]) -> None:
    extra_specs.check(specs, request.version)
    await flavors.change(
        service.ctx, request.params[0], lambda f: {"extra_specs": {**f.extra_specs, **specs}},
        who=request.who, cause=service.cause(request),
    )  # fmt: skip


async def specs(service: "Service", request: Request) -> Response:
    """GET /v2.1/flavors/{id}/os-extra_specs"""
    return reply({"extra_specs": (await _flavor(service, request)).extra_specs})


async def add_specs(service: "Service", request: Request) -> Response:
    """POST /v2.1/flavors/{id}/os-extra_specs"""
    asked = await forms.only(request, "extra_specs", _specs)
    await _set(service, request, asked)
    return reply({"extra_specs": asked})


async def spec(service: "Service", request: Request) -> Response:
    """GET /v2.1/flavors/{id}/os-extra_specs/{key}"""
    flavor, key = await _flavor(service, request), request.params[1]
    if key not in flavor.extra_specs:
        raise _no_spec(flavor, key)
    return reply({key: flavor.extra_specs[key]})


def _no_spec(flavor: Flavor, key: str) -> NotFound:
    return NotFound(f"Flavor {flavor.flavorid} has no extra specs with key {key[:80]}.")


async def put_spec(service: "Service", request: Request) -> Response:
    """PUT /v2.1/flavors/{id}/os-extra_specs/{key}"""
    key = request.params[1]
    asked = _specs("body", await forms.document(request))
    if list(asked) != [key]:
        raise Invalid("Request body and URI mismatch")
    await _set(service, request, asked)
    return reply(asked)


async def remove_spec(service: "Service", request: Request) -> Response:
    """DELETE /v2.1/flavors/{id}/os-extra_specs/{key}"""
    key = request.params[1]

    def without(flavor: Flavor) -> dict[str, Any]:
        if key not in flavor.extra_specs:
            raise _no_spec(flavor, key)
        return {"extra_specs": {k: v for k, v in flavor.extra_specs.items() if k != key}}

    await flavors.change(
        service.ctx, request.params[0], without, who=request.who, cause=service.cause(request)
    )
    return Response(status=200)


def _access(flavor: Flavor) -> Response:
    shown = [{"flavor_id": flavor.flavorid, "tenant_id": one} for one in flavor.projects]
    return reply({"flavor_access": shown})


async def access(service: "Service", request: Request) -> Response:
    """GET /v2.1/flavors/{id}/os-flavor-access"""
    flavor = await _flavor(service, request)
    if flavor.is_public:
        raise NotFound("Access list not available for public flavors.")
    return _access(flavor)


async def act(service: "Service", request: Request) -> Response:
    """POST /v2.1/flavors/{id}/action"""
    found = await forms.document(request)
    if len(found) != 1 or next(iter(found)) not in _ACCESS:
        raise Invalid("There is no such action: use addTenantAccess or removeTenantAccess.")
    ((key, value),) = found.items()
    tenant = forms.take(value, key, _TENANT, 1)["tenant"]

    def added(flavor: Flavor) -> dict[str, Any]:
        if flavor.is_public and request.version >= _NO_ACCESS_FOR_PUBLIC:
            raise Conflict("Can not add access to a public flavor.")
        if tenant in flavor.projects:
            raise Conflict(
                f"Flavor access already exists for flavor {flavor.flavorid} and project {tenant}"
                " combination."
            )
        return {"projects": [*flavor.projects, tenant]}

    def removed(flavor: Flavor) -> dict[str, Any]:
        if tenant not in flavor.projects:
            raise NotFound(f"Flavor access not found for {flavor.flavorid} / {tenant} combination.")
        return {"projects": [one for one in flavor.projects if one != tenant]}

    flavor = await flavors.change(
        service.ctx, request.params[0], added if key == "addTenantAccess" else removed,
        who=request.who, cause=service.cause(request),
    )  # fmt: skip
    return _access(flavor)


ROUTES = (
    Route("GET", "/v2.1/flavors/{id}/os-extra_specs", specs, "flavors:read", gives=_all),
    Route(
        "POST",
        "/v2.1/flavors/{id}/os-extra_specs",
        add_specs,
        "flavors:manage",
        takes=lambda: shape.under("extra_specs", shape.of(_specs)),
        gives=_all,
    ),
    Route("GET", "/v2.1/flavors/{id}/os-extra_specs/{key}", spec, "flavors:read", gives=_some),
    Route(
        "PUT",
        "/v2.1/flavors/{id}/os-extra_specs/{key}",
        put_spec,
        "flavors:manage",
        takes=lambda: shape.of(_specs),
        gives=_some,
    ),
    Route("DELETE", "/v2.1/flavors/{id}/os-extra_specs/{key}", remove_spec, "flavors:manage"),
    Route("GET", "/v2.1/flavors/{id}/os-flavor-access", access, "flavors:manage", gives=_tenants),
    Route(
        "POST", "/v2.1/flavors/{id}/action", act, "flavors:manage", takes=_action, gives=_tenants
    ),
)
