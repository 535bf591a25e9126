"""The addresses of image records: parse, command, call, view."""

import asyncio
from typing import TYPE_CHECKING

import msgspec

from siderite.core.errors import UnsupportedMedia
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import raw
from siderite.image.domain.image import Image
from siderite.image.domain.image import render
from siderite.image.usecases import change
from siderite.image.usecases import find
from siderite.image.web import forms
from siderite.image.web import listing

if TYPE_CHECKING:
    from siderite.image.web.service import ImageService as Service

PATCH_TYPES = (
    "application/openstack-images-v2.1-json-patch",
    "application/openstack-images-v2.0-json-patch",
)


def _one(image: Image) -> bytes:
    return render(image).encode()


async def create(service: "Service", request: Request) -> Response:
    """POST /v2/images"""
    fields = forms.created(await request.json())
    made = await change.create(service.ctx, fields, who=request.who, cause=service.cause(request))
    at = f"{request.base}/image/v2/images/{made.uuid}".encode()
    headers = [(b"location", at)]
    if service.ctx.import_methods:
        methods = ",".join(service.ctx.import_methods).encode()
        headers.append((b"openstack-image-import-methods", methods))
    return raw(_one(made), 201, headers)


async def show(service: "Service", request: Request) -> Response:
    """GET /v2/images/{image_id}"""
    return raw((await find.body_of(service.ctx, request.params[0], request.who)).encode())


async def index(service: "Service", request: Request) -> Response:
    """GET /v2/images"""
    ctx = service.ctx
    ask = listing.parse(ctx, request)
    rows = await find.page(
        ctx, ask.where, ask.order, limit=ask.limit, marker=ask.marker, who=request.who
    )
    ends = {"schema": "/v2/schemas/images", "first": ask.link()}
    if rows and len(rows) == ask.limit:
        ends["next"] = ask.link(str(rows[-1][0]))
    bodies = ",".join(str(row[1]) for row in rows)
    return raw(b'{"images":[' + bodies.encode() + b"]," + msgspec.json.encode(ends)[1:])


async def patch(service: "Service", request: Request) -> Response:
    """PATCH /v2/images/{image_id}"""
    kind = (request.header(b"content-type") or "").split(";")[0].strip().lower()
    if kind not in PATCH_TYPES:
        raise UnsupportedMedia(f"A patch of an image has the Content-Type {PATCH_TYPES[0]}.")
    patches = forms.patches(await request.json(), kind)
    changed = await change.update(
        service.ctx,
        request.params[0],
        lambda image: forms.patched(image, patches),
        who=request.who,
        cause=service.cause(request),
    )
    return raw(_one(changed))


async def remove(service: "Service", request: Request) -> Response:
    """DELETE /v2/images/{image_id}"""
    file = await change.remove(
        service.ctx, request.params[0], who=request.who, cause=service.cause(request)
    )
    if file is not None:
        await asyncio.to_thread(service.transfer.files.remove, file)
    return Response(status=204)


async def tag(service: "Service", request: Request) -> Response:
    """PUT /v2/images/{image_id}/tags/{tag}"""
    uuid, word = request.params
    word = forms.tag("tag", word)
    await change.add_tag(service.ctx, uuid, word, who=request.who, cause=service.cause(request))
    return Response(status=204)


async def untag(service: "Service", request: Request) -> Response:
    """DELETE /v2/images/{image_id}/tags/{tag}"""
    uuid, word = request.params
    await change.remove_tag(service.ctx, uuid, word, who=request.who, cause=service.cause(request))
    return Response(status=204)


async def deactivate(service: "Service", request: Request) -> Response:
    """POST /v2/images/{image_id}/actions/deactivate"""
    return await _activate(service, request, on=False)


async def reactivate(service: "Service", request: Request) -> Response:
    """POST /v2/images/{image_id}/actions/reactivate"""
    return await _activate(service, request, on=True)


async def _activate(service: "Service", request: Request, *, on: bool) -> Response:
    uuid, cause = request.params[0], service.cause(request)
    await change.activate(service.ctx, uuid, on=on, who=request.who, cause=cause)
    return Response(status=204)
