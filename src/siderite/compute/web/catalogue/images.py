"""Images by way of the compute API, as clients asked for them before 2.36; the image API's are the
same. What is below `metadata` is there until 2.38.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING
from typing import Any

from siderite.compute.domain.image import Changed
from siderite.compute.domain.image import Image
from siderite.compute.domain.image import missing
from siderite.compute.usecases.project.quotas import limits_of
from siderite.compute.web import checks
from siderite.compute.web import metadata as items
from siderite.compute.web import queries
from siderite.compute.web import views
from siderite.core import shape
from siderite.core.errors import Forbidden
from siderite.core.errors import Invalid
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import reply

if TYPE_CHECKING:
    from siderite.compute.web.service import ComputeService as Service

_LAST, _LAST_METADATA = 35, 38
_MOST = 128
"""Items of metadata that an image may have, whatever the quota says."""
_STATUSES = {
    "active": ("ACTIVE", 100), "queued": ("SAVING", 25), "saving": ("SAVING", 50),
    "importing": ("SAVING", 50), "uploading": ("SAVING", 50), "killed": ("ERROR", 0),
    "deleted": ("DELETED", 0), "pending_delete": ("DELETED", 0),
}  # fmt: skip
_ASKED = {
    "ACTIVE": "active", "SAVING": "in:queued,saving,importing,uploading", "ERROR": "killed",
    "DELETED": "deleted",
}  # fmt: skip
"""What the image service is asked for, where a list is to be of one status."""
_SERVER, _KIND = "instance_uuid", "image_type"
_FIELDS = {
    "limit": queries.limit, "marker": queries.marker, "name": checks.free_text(),
    "status": checks.free_text(40), "server": checks.free_text(500), "type": checks.free_text(40),
}  # fmt: skip


def _brief(image: Image, where: str, there: str) -> dict[str, Any]:
    kind = "application/vnd.openstack.image"
    alternate = {"rel": "alternate", "type": kind, "href": there}
    return {"id": image.id, "name": image.name, "links": [*views.links(where), alternate]}


def _full(image: Image, where: str, there: str) -> dict[str, Any]:
    status, progress = _STATUSES.get(image.status, ("UNKNOWN", 0))
    shown = {
        **_brief(image, where, there),
        "status": status,
        "progress": progress,
        "minDisk": image.min_disk_gib,
        "minRam": image.min_ram_mib,
        "created": image.created_at,
        "updated": image.updated_at,
        "metadata": image.properties,
        "OS-EXT-IMG-SIZE:size": image.size,
    }
    server = image.properties.get(_SERVER)
    if server:
        path = where.replace(f"images/{image.id}", f"servers/{server}")
        shown["server"] = {"id": server, "links": views.links(path)}
    return shown


def _places(service: "Service", request: Request, image: Image) -> tuple[str, str]:
    """Where it is here, and where the image service has it."""
    where = views.address(service, request, f"images/{image.id}")
    return where, service.images.address(image.id, request.base)


async def _image(service: "Service", request: Request) -> Image:
    found = await service.images.show(
        request.params[0], token=request.header(b"x-auth-token"), project=request.who.project_id
    )
    if found is None:
        raise missing(request.params[0])
    return found


async def _page(service: "Service", request: Request, path: str) -> tuple[list[Image], Any]:
    asked = queries.take(request, _FIELDS)
    most = service.ctx.settings.max_limit
    limit = min(asked.get("limit", most), most)
    filters = {key: asked[key] for key in ("name",) if key in asked}
    if "status" in asked:
        status = _ASKED.get(asked["status"].upper())
        if status is None:
            shown = ", ".join(_ASKED)
            raise Invalid(f"Invalid status value: {asked['status'][:40]}. It is one of {shown}.")
        filters["status"] = status
    if "server" in asked:
        filters[_SERVER] = asked["server"].rstrip("/").rpartition("/")[2]
    if "type" in asked:
        filters[_KIND] = asked["type"]
    found = [] if limit == 0 else await service.images.page(
        filters, token=request.header(b"x-auth-token"), project=request.who.project_id,
        marker=asked.get("marker"), limit=limit,
    )  # fmt: skip
    more = {}
    if found and len(found) == limit:
        href = views.following(service, request, path, found[-1].id)
        more["images_links"] = [{"rel": "next", "href": href}]
    return list(found), more


async def index(service: "Service", request: Request) -> Response:
    """GET /v2.1/images, below 2.36"""
    found, more = await _page(service, request, "images")
    shown = [_brief(one, *_places(service, request, one)) for one in found]
    return reply({"images": shown, **more})


async def detail(service: "Service", request: Request) -> Response:
    """GET /v2.1/images/detail, below 2.36"""
    found, more = await _page(service, request, "images/detail")
    shown = [_full(one, *_places(service, request, one)) for one in found]
    return reply({"images": shown, **more})


async def show(service: "Service", request: Request) -> Response:
    """GET /v2.1/images/{id}, below 2.36"""
    image = await _image(service, request)
    return reply({"image": _full(image, *_places(service, request, image))})


async def remove(service: "Service", request: Request) -> Response:
    """DELETE /v2.1/images/{id}, below 2.36"""
    image = await _image(service, request)
    token = request.header(b"x-auth-token")
    await service.images.drop(image.id, token=token, project=request.who.project_id)
    return Response(status=204)


async def metadata(service: "Service", request: Request) -> Response:
    """GET /v2.1/images/{id}/metadata, below 2.39"""
    return reply({"metadata": (await _image(service, request)).properties})


async def meta(service: "Service", request: Request) -> Response:
    """GET /v2.1/images/{id}/metadata/{key}, below 2.39"""
    found = (await _image(service, request)).properties
    return reply({"meta": items.item(found, request.params[1])})


async def _write(
    service: "Service", request: Request, put: dict[str, str], *, replaces: bool = False
) -> dict[str, str]:
    """Write properties, beside those that there are or in their place."""
    quota = (await limits_of(service.ctx, request.who.project_id or "")).metadata_items
    limit = _MOST if quota < 0 else min(quota, _MOST)

    def written(had: Mapping[str, str]) -> dict[str, str]:
        after = put if replaces else {**had, **put}
        if len(after) > max(len(had), limit):
            raise Forbidden(
                f"Image metadata limit exceeded. It has at most {limit} items; delete some first."
            )
        return after

    return await _described(service, request, written)


async def _described(service: "Service", request: Request, changed: Changed) -> dict[str, str]:
    token = request.header(b"x-auth-token")
    after = await service.images.describe(
        request.params[0], changed, token=token, project=request.who.project_id
    )
    return dict(after.properties)


async def add_metadata(service: "Service", request: Request) -> Response:
    """POST /v2.1/images/{id}/metadata, below 2.39"""
    put = await items.asked(request)
    return reply({"metadata": await _write(service, request, put)})


async def put_metadata(service: "Service", request: Request) -> Response:
    """PUT /v2.1/images/{id}/metadata, below 2.39"""
    put = await items.asked(request)
    return reply({"metadata": await _write(service, request, put, replaces=True)})


async def put_meta(service: "Service", request: Request) -> Response:
    """PUT /v2.1/images/{id}/metadata/{key}, below 2.39"""
    put = await items.asked_item(request)
    await _write(service, request, put)
    return reply({"meta": put})


async def remove_meta(service: "Service", request: Request) -> Response:
    """DELETE /v2.1/images/{id}/metadata/{key}, below 2.39"""
    await _described(service, request, lambda had: items.without(had, request.params[1]))
    return Response(status=204)


def _form() -> shape.Json:
    made = [*shape.both(Image), shape.made_up(Image, properties={_SERVER: "x"})]
    found = shape.wire(*(_full(one, "", "") for one in made))
    found["properties"]["metadata"] = _TEXTS
    return found


_TEXTS = shape.record({}, others=shape.text())
_ONE = "/v2.1/images/{id}"


def page_form() -> shape.Json:
    """The form of a list, in short or whole."""
    return shape.listed("images", shape.whole(_form()), "images_links")


ROUTES = (
    Route("GET", "/v2.1/images", index, "images:read", gives=page_form, until=_LAST),
    Route("GET", "/v2.1/images/detail", detail, "images:read", gives=page_form, until=_LAST),
    Route("GET", _ONE, show, "images:read", gives=lambda: shape.under("image", _form()),
          until=_LAST),
    Route("DELETE", _ONE, remove, "images:delete", until=_LAST),
    Route("GET", _ONE + "/metadata", metadata, "images:read", until=_LAST_METADATA,
          gives=lambda: shape.under("metadata", _TEXTS)),
    Route("POST", _ONE + "/metadata", add_metadata, "images:update", until=_LAST_METADATA,
          takes=items.form, gives=lambda: shape.under("metadata", _TEXTS)),
    Route("PUT", _ONE + "/metadata", put_metadata, "images:update", until=_LAST_METADATA,
          takes=items.form, gives=lambda: shape.under("metadata", _TEXTS)),
    Route("PUT", _ONE + "/metadata/{key}", put_meta, "images:update", until=_LAST_METADATA,
          takes=items.item_form, gives=lambda: shape.under("meta", _TEXTS)),
    Route("DELETE", _ONE + "/metadata/{key}", remove_meta, "images:update", until=_LAST_METADATA),
    Route("GET", _ONE + "/metadata/{key}", meta, "images:read", until=_LAST_METADATA,
          gives=lambda: shape.under("meta", _TEXTS)),
)  # fmt: skip
