"""The address by which an aggregate's hosts get images before servers need them, from 2.81 on."""

from typing import TYPE_CHECKING
from typing import Any

from siderite.compute.domain.image import missing
from siderite.compute.usecases.fleet import image_cache
from siderite.compute.web import forms
from siderite.compute.web.forms import Key
from siderite.core import shape
from siderite.core.errors import Invalid
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route

if TYPE_CHECKING:
    from siderite.compute.web.service import ComputeService as Service

CACHES = 81
_BOOTED = ("kernel_id", "ramdisk_id")
_ONE = {"id": Key(forms.uuid, required=True)}


@shape.like({"type": "array", "items": forms.form(_ONE), "minItems": 1})
def _images(what: str, value: Any) -> list[str]:
    if not isinstance(value, list):
        raise forms.wrong(what, value, f"{value!r} is not of type 'array'"[:200])
    if not value:
        raise forms.wrong(what, value, "[] is too short: name an image at least")
    found = [forms.take(one, what, _ONE, CACHES)["id"] for one in value]
    if len(set(found)) != len(found):
        raise Invalid("Duplicate images in request: name each once.")
    return found


_BODY = {"cache": Key(_images, required=True)}


async def fetch(service: "Service", request: Request) -> Response:
    """POST /os-aggregates/{id}/images"""
    asked = forms.take(await forms.document(request), "body", _BODY, request.version)
    wanted: dict[str, None] = {}
    for image in asked["cache"]:
        token, project = request.header(b"x-auth-token"), request.who.project_id
        found = await service.images.show(image, token=token, project=project)
        if found is None:
            raise Invalid(missing(image).sentence)
        if found.status != "active":
            raise Invalid(f"Image {image} is not active; wait until it is, or name another.")
        booted = (found.properties.get(what) for what in _BOOTED)
        wanted |= dict.fromkeys(one for one in (image, *booted) if one)
    cause = service.cause(request)
    await image_cache.ask(service.ctx, request.params[0], list(wanted), cause=cause)
    return Response(status=202)


ROUTES = (
    Route(
        "POST", "/v2.1/os-aggregates/{id}/images", fetch, "aggregates:manage", since=CACHES,
        takes=lambda: forms.form(_BODY),
    ),
)  # fmt: skip
