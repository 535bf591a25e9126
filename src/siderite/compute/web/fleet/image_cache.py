"""The address by which an aggregate's hosts get images before servers need them, from 2.81 on."""

from typing import TYPE_CHECKING
from typing import Any

from siderite.compute.domain.image import missing
from siderite.compute.usecases.fleet import aggregates
from siderite.compute.usecases.fleet import image_cache
from siderite.compute.web import forms
from siderite.compute.web.forms import Key
from siderite.core import shape
from siderite.core.errors import Invalid
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.ids import is_uuid

if TYPE_CHECKING:
    from siderite.compute.web.service import ComputeService as Service

CACHES = 81
_MOST = 100
_BOOTED = ("kernel_id", "ramdisk_id")
_ONE = {"id": Key(forms.uuid, required=True)}


@shape.like({"type": "array", "items": forms.form(_ONE), "minItems": 1, "maxItems": _MOST})
def _images(what: str, value: Any) -> list[str]:
    if not 0 < len(forms.items(what, value)) <= _MOST:
        raise forms.wrong(what, "…", f"it must name 1 to {_MOST} images")
    found = [forms.take(one, what, _ONE, CACHES)["id"] for one in value]
    if len(set(found)) != len(found):
        raise Invalid("Duplicate images in request: name each once.")
    return found


_BODY = {"cache": Key(_images, required=True)}


async def fetch(service: "Service", request: Request) -> Response:
    """POST /os-aggregates/{id}/images"""
    asked = forms.take(await forms.document(request), "body", _BODY, request.version)
    found = await aggregates.one(service.ctx, request.params[0])
    wanted: dict[str, None] = {}
    for image in asked["cache"]:
        wanted |= dict.fromkeys(await _with_booted(service, request, image))
    await image_cache.ask(service.ctx, found, list(wanted), cause=service.cause(request))
    return Response(status=202)


async def _with_booted(service: "Service", request: Request, image: str) -> list[str]:
    """An image, and the kernel and ramdisk that it boots."""
    token, project = request.header(b"x-auth-token"), request.who.project_id
    found = await service.images.show(image, token=token, project=project)
    if found is None:
        raise Invalid(missing(image).sentence)
    if found.status != "active":
        raise Invalid(f"Image {image} is not active; wait until it is, or name another.")
    booted = (found.properties.get(what, "").lower() for what in _BOOTED)
    return [image, *filter(is_uuid, booted)]


ROUTES = (
    Route(
        "POST", "/v2.1/os-aggregates/{id}/images", fetch, "aggregates:manage", since=CACHES,
        takes=lambda: forms.form(_BODY),
    ),
)  # fmt: skip
