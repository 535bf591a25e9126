"""The addresses of quotas and limits."""

from collections.abc import Iterable
from typing import TYPE_CHECKING
from typing import Any

from siderite.compute.usecases.project import quotas
from siderite.compute.usecases.project.quota import MAX_FILE_BYTES
from siderite.compute.usecases.project.quota import MAX_FILES
from siderite.compute.web import checks
from siderite.compute.web import forms
from siderite.compute.web import queries
from siderite.compute.web.policy import refusal
from siderite.core import shape
from siderite.core.check import Check
from siderite.core.check import record
from siderite.core.errors import Invalid
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import reply

if TYPE_CHECKING:
    from siderite.compute.web.service import ComputeService as Service

NO_NETWORK = 36
NO_IMAGE_META = 39
NO_FILES = 57
CLASS_GROUPS = 50
_NETWORK = {
    "fixed_ips": -1, "floating_ips": -1, "security_groups": -1, "security_group_rules": -1,
}  # fmt: skip
_FILES = {
    "injected_files": MAX_FILES, "injected_file_content_bytes": MAX_FILE_BYTES,
    "injected_file_path_bytes": 255,
}  # fmt: skip
_LIMIT = checks.whole(-1)
_DEFAULT = "default"
"""The only quota class that holds for anybody, as in Nova."""


def _keys(version: int) -> dict[str, int]:
    """What a version shows beside our own: things that other services count, or that are gone."""
    return (_NETWORK if version < NO_NETWORK else {}) | (_FILES if version < NO_FILES else {})


def _own(request: Request, project: str, *, change: bool = False) -> None:
    if request.who.is_admin or (project == request.who.project_id and not change):
        return
    raise refusal("os_compute_api:os-quota-sets")


def _project(request: Request) -> str:
    project = request.params[0]
    checks.text()("project_id", project)
    return project


async def show(service: "Service", request: Request) -> Response:
    """GET /os-quota-sets/{project}"""
    project = _project(request)
    _own(request, project)
    queries.take(request, {"user_id": checks.free_text()})
    held = await quotas.limits(service.ctx, project)
    return reply({"quota_set": {"id": project, **held, **_keys(request.version)}})


async def defaults(service: "Service", request: Request) -> Response:
    """GET /os-quota-sets/{project}/defaults"""
    held = await quotas.limits(service.ctx, "")
    return reply({"quota_set": {"id": _project(request), **held, **_keys(request.version)}})


async def detail(service: "Service", request: Request) -> Response:
    """GET /os-quota-sets/{project}/detail"""
    project = _project(request)
    _own(request, project)
    queries.take(request, {"user_id": checks.free_text()})
    held = await quotas.limits(service.ctx, project)
    used = await quotas.used(service.ctx, project)
    every = {**held, **_keys(request.version)}
    shown: dict[str, Any] = {
        name: {"limit": limit, "in_use": used.get(name, 0), "reserved": 0}
        for name, limit in every.items()
    }
    return reply({"quota_set": {"id": project, **shown}})


def _fields(others: Iterable[str]) -> dict[str, Check]:
    return dict.fromkeys((*quotas.NAMES, *others), _LIMIT) | {"force": checks.flag}


def changes() -> shape.Json:
    """The form of the body that changes limits."""
    return shape.under("quota_set", record(_fields(_keys(1))))


def _class_changes() -> shape.Json:
    fields = dict.fromkeys((*quotas.NAMES, *_keys(1)), _LIMIT)
    return shape.under("quota_class_set", record(fields))


def _set_form(item: shape.Json) -> shape.Json:
    names = dict.fromkeys((*quotas.NAMES, *_keys(1)), item)
    return shape.record({"id": shape.text(), **names}, ["instances", "cores", "ram"])


def shown_form() -> shape.Json:
    """The form of a project's limits."""
    return shape.under("quota_set", _set_form({"type": "integer"}))


def _detail_form() -> shape.Json:
    return shape.under("quota_set", _set_form(shape.seen({"limit": 1, "in_use": 1, "reserved": 1})))


def _class_form() -> shape.Json:
    return shape.under("quota_class_set", _set_form({"type": "integer"}))


async def update(service: "Service", request: Request) -> Response:
    """PUT /os-quota-sets/{project}"""
    project = _project(request)
    _own(request, project, change=True)
    queries.take(request, {"user_id": checks.free_text()})
    others = _keys(request.version)
    asked = checks.body(await forms.document(request), "quota_set", _fields(others))
    force = asked.pop("force", False)
    values = {name: value for name, value in asked.items() if name in quotas.NAMES}
    cause = service.cause(request)
    held = await quotas.update(service.ctx, project, values, force=force, cause=cause)
    return reply({"quota_set": {**held, **others}})


async def reset(service: "Service", request: Request) -> Response:
    """DELETE /os-quota-sets/{project}"""
    project = _project(request)
    _own(request, project, change=True)
    await quotas.reset(service.ctx, project, cause=service.cause(request))
    return Response(status=202)


def _class(version: int, held: dict[str, int]) -> dict[str, int]:
    """A quota class as a version shows it."""
    shown = {**held, **(_FILES if version < NO_FILES else {})}
    if version < CLASS_GROUPS:
        shown = {**shown, **_NETWORK}
        del shown["server_groups"], shown["server_group_members"]
    return shown


async def show_class(service: "Service", request: Request) -> Response:
    """GET /os-quota-class-sets/{name}"""
    held = _class(request.version, await quotas.limits(service.ctx, ""))
    return reply({"quota_class_set": {"id": request.params[0], **held}})


async def update_class(service: "Service", request: Request) -> Response:
    """PUT /os-quota-class-sets/{name}"""
    known = _class(request.version, await quotas.limits(service.ctx, ""))
    # Groups of servers could be limited before they were shown.
    fields = dict.fromkeys((*known, *quotas.NAMES), _LIMIT)
    asked = checks.body(await forms.document(request), "quota_class_set", fields)
    values = {name: value for name, value in asked.items() if name in quotas.NAMES}
    if request.params[0] != _DEFAULT:
        raise Invalid(
            f"Quota class {request.params[0][:80]!r} would hold for nobody: there is only"
            f" {_DEFAULT!r}, for all projects; set the limits of one at /os-quota-sets/{{project}}."
        )
    await quotas.update(service.ctx, "", values, force=True, cause=service.cause(request))
    held = _class(request.version, await quotas.limits(service.ctx, ""))
    return reply({"quota_class_set": {name: asked.get(name, held[name]) for name in held}})


async def limits(service: "Service", request: Request) -> Response:
    """GET /limits"""
    fields = {"tenant_id": checks.free_text(), "reserved": checks.free_text()}
    project = queries.take(request, fields).get("tenant_id")
    if project is None:
        project = request.who.project_id or ""
    elif project != request.who.project_id and not request.who.is_admin:
        raise refusal("os_compute_api:limits:other_project")
    held = await quotas.limits(service.ctx, project)
    used = await quotas.used(service.ctx, project)
    return reply(_limits(held, used, request.version))


def _limits(held: dict[str, int], used: dict[str, int], version: int) -> dict[str, Any]:
    shown = {
        "maxTotalInstances": held["instances"],
        "maxTotalCores": held["cores"],
        "maxTotalRAMSize": held["ram"],
        "maxTotalKeypairs": held["key_pairs"],
        "maxServerMeta": held["metadata_items"],
        "maxServerGroups": held["server_groups"],
        "maxServerGroupMembers": held["server_group_members"],
        "totalInstancesUsed": used["instances"],
        "totalCoresUsed": used["cores"],
        "totalRAMUsed": used["ram"],
        "totalServerGroupsUsed": used["server_groups"],
    }
    if version < NO_NETWORK:
        shown |= dict.fromkeys(
            ("maxSecurityGroups", "maxSecurityGroupRules", "maxTotalFloatingIps"), -1
        )
        shown |= dict.fromkeys(("totalSecurityGroupsUsed", "totalFloatingIpsUsed"), 0)
    if version < NO_IMAGE_META:
        shown["maxImageMeta"] = held["metadata_items"]
    if version < NO_FILES:
        shown |= {"maxPersonality": MAX_FILES, "maxPersonalitySize": MAX_FILE_BYTES}
    return {"limits": {"rate": [], "absolute": shown}}


def limits_form() -> shape.Json:
    """The form of limits and what is used of them."""
    numbers = dict.fromkeys(quotas.NAMES, 1)
    return shape.wire(*(_limits(numbers, numbers, version) for version in (1, NO_FILES)))


_SET = "/v2.1/os-quota-sets/{project}"
_CLASS = "/v2.1/os-quota-class-sets/{name}"
ROUTES = (
    Route("GET", "/v2.1/limits", limits, "limits:read", gives=limits_form),
    Route("GET", _SET, show, "quotas:read", gives=shown_form),
    Route("GET", _SET + "/defaults", defaults, "quotas:read", gives=shown_form),
    Route("GET", _SET + "/detail", detail, "quotas:read", gives=_detail_form),
    Route("PUT", _SET, update, "quotas:manage", takes=changes, gives=shown_form),
    Route("DELETE", _SET, reset, "quotas:manage"),
    Route("GET", _CLASS, show_class, "quotas:manage", gives=_class_form),
    Route("PUT", _CLASS, update_class, "quotas:manage", takes=_class_changes, gives=_class_form),
)
