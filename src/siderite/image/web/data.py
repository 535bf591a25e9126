"""The addresses of image data, which comes and goes in pieces."""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from siderite.core.errors import Invalid
from siderite.core.errors import RangeNotSatisfiable
from siderite.core.errors import Unavailable
from siderite.core.errors import UnsupportedMedia
from siderite.core.http import Headers
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.image.domain.image import READY
from siderite.image.usecases import data

if TYPE_CHECKING:
    from siderite.image.web.service import ImageService as Service

PATIENCE_S = 120.0
"""How long an upload may pause."""
_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})\Z")


async def upload(service: "Service", request: Request) -> Response:
    """PUT /v2/images/{image_id}/file"""
    return await _take(service, request, staged=False)


async def stage(service: "Service", request: Request) -> Response:
    """PUT /v2/images/{image_id}/stage"""
    return await _take(service, request, staged=True)


async def _take(service: "Service", request: Request, *, staged: bool) -> Response:
    if (request.header(b"content-type") or "").lower() != "application/octet-stream":
        raise UnsupportedMedia("An image's data has the Content-Type application/octet-stream.")
    await service.transfer.upload(
        request.params[0],
        _coming(request.pieces()),
        staged=staged,
        who=request.who,
        cause=service.cause(request),
        length=request.length,
    )
    return Response(status=204)


async def _coming(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The pieces as long as they come: a client that is cut off from the network says nothing."""
    while True:
        try:
            async with asyncio.timeout(PATIENCE_S):
                piece = await anext(pieces, None)
        except TimeoutError as why:
            raise Invalid(
                f"Nothing of the image's data came for {PATIENCE_S:.0f} seconds; upload it again."
            ) from why
        if piece is None:
            return
        yield piece


async def download(service: "Service", request: Request) -> Response:
    """GET /v2/images/{image_id}/file"""
    image = await data.readable(service.ctx, request.params[0], request.who)
    if image.file is None or image.size is None or image.status not in READY:
        return Response(status=204)
    begin, end, headers = _part(request, image.size)
    if not await asyncio.to_thread(service.transfer.files.path(image.file).is_file):
        raise Unavailable(
            f"The data of image {image.uuid} is not where it was put; an administrator should look"
            " at the images directory."
        )
    response = Response(status=206 if headers else 200, headers=headers)
    response.headers += (
        (b"content-type", b"application/octet-stream"),
        (b"content-length", b"%d" % (end - begin)),
        (b"accept-ranges", b"bytes"),
    )
    if image.checksum is not None and response.status == 200:  # noqa: PLR2004
        response.headers.append((b"content-md5", image.checksum.encode()))
    response.chunks = service.transfer.files.read(image.file, begin, end)
    return response


def _part(request: Request, size: int) -> tuple[int, int, Headers]:
    """Where to begin and end, and the header that says so; none for all of it."""
    asked = request.header(b"range")
    if asked is None:
        return 0, size, []
    found = _RANGE.match(asked.strip())
    if found is None or found.groups() == ("", ""):
        raise RangeNotSatisfiable(
            "Range must be one range of bytes, such as bytes=0-1023.", size=size
        )
    first, last = found.groups()
    if first:
        begin, end = int(first), min(int(last) + 1 if last else size, size)
    else:
        begin, end = max(size - int(last), 0), size
    if begin >= end:
        raise RangeNotSatisfiable(
            f"The image has {size} bytes; the range is outside of it.", size=size
        )
    return begin, end, [(b"content-range", b"bytes %d-%d/%d" % (begin, end - 1, size))]
