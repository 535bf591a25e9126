"""What machines boot from, at `/boot`. No credentials: firmware has none.

GET /boot/v1/boot.ipxe       for DHCP to hand out: asks for the machine's own script
GET /boot/v1/ipxe/{mac}      that script: a ramdisk if the node waits for one, else the disk
GET /boot/v1/files/{node}/{secret}/{name}   kernel, ramdisk or ISO image, for who knows the secret
"""

import asyncio
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import BinaryIO

from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.life import netboot
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.errors import SideriteError
from siderite.core.http import Headers
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import Routes

_CHUNK = 256 * 1024
_MAC = re.compile(r"[0-9a-f]{2}([:-][0-9a-f]{2}){5}\Z", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_FILES = ("boot.iso", "vmlinuz", "initrd", "image")
_RANGE = re.compile(r"bytes=(?:([0-9]{1,18})-([0-9]{0,18})|-([0-9]{1,18}))\Z")
_PARTIAL, _UNSATISFIABLE = 206, 416


class BootService:
    """The service at `/boot`."""

    name = "boot"

    def __init__(self, ctx: Context, folder: Path, url: str) -> None:
        self._ctx = ctx
        self._folder = folder
        self._url = url
        self.routes = Routes(
            [
                Route("GET", "/v1/boot.ipxe", BootService.chain, media="text/plain"),
                Route("GET", "/v1/ipxe/{mac}", BootService.script, media="text/plain"),
                Route(
                    "GET",
                    "/v1/files/{node}/{secret}/{name}",
                    BootService.file,
                    media="application/octet-stream",
                ),
            ]
        )

    async def prepare(self, request: Request, route: Route) -> None:
        """Anybody may ask."""

    def finish(self, request: Request, response: Response) -> None:
        response.headers.append((b"x-openstack-request-id", request.request_id.encode()))

    def error(self, request: Request, error: SideriteError) -> Response:
        return _text(error.sentence + "\n", error.status)

    async def chain(self, request: Request) -> Response:
        return _text(f"#!ipxe\nchain --replace {self._url}/boot/v1/ipxe/${{net0/mac}}\n")

    async def script(self, request: Request) -> Response:
        mac = request.params[0]
        if not _MAC.match(mac):
            raise Invalid(f"{mac[:40]!r} is no MAC address, such as 52:54:00:12:34:56.")
        boot = await netboot.for_address(self._ctx, mac.replace("-", ":"))
        if boot is None:
            # Back to the firmware: it goes on to its next boot device, which is the disk.
            return _text("#!ipxe\nexit\n")
        return _text(
            f"#!ipxe\nkernel {boot.kernel} initrd=initrd {boot.params}\n"
            f"initrd --name initrd {boot.ramdisk}\nboot\n"
        )

    async def file(self, request: Request) -> Response:
        node, secret, name = request.params
        path = self._folder / node / secret / name
        known = name in _FILES and _WORD.match(node) and _WORD.match(secret)
        size = await asyncio.to_thread(_size, path) if known else None
        if size is None:
            raise NotFound("There is no such file; a boot that is over takes its files with it.")
        part = _asked(request.header(b"range"), size)
        first, last = part or (0, size - 1)
        if part is not None and first > last:
            return Response(b"", _UNSATISFIABLE, [(b"content-range", b"bytes */%d" % size)])
        headers: Headers = [
            (b"content-type", b"application/octet-stream"),
            (b"content-length", b"%d" % (last - first + 1)),
            (b"accept-ranges", b"bytes"),
        ]
        if part is not None:
            headers.append((b"content-range", b"bytes %d-%d/%d" % (first, last, size)))
        response = Response(b"", 200 if part is None else _PARTIAL, headers)
        response.chunks = _pieces(path, first, last)
        return response


def _text(text: str, status: int = 200) -> Response:
    return Response(text.encode(), status, [(b"content-type", b"text/plain; charset=utf-8")])


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None


def _asked(header: str | None, size: int) -> tuple[int, int] | None:
    """First and last byte, if that is asked for; BMCs read an image piece by piece. Some find out
    by a part that is all of it whether they can.
    """
    match = _RANGE.match(header or "")
    if match is None:
        return None
    if match[3]:
        return max(0, size - int(match[3])), size - 1
    last = int(match[2]) if match[2] else size - 1
    return int(match[1]), min(last, size - 1)


async def _pieces(path: Path, first: int, last: int) -> AsyncGenerator[bytes, None]:
    file: BinaryIO = await asyncio.to_thread(path.open, "rb")
    try:
        await asyncio.to_thread(file.seek, first)
        left = last - first + 1
        while left > 0:
            piece = await asyncio.to_thread(file.read, min(_CHUNK, left))
            if not piece:
                return
            left -= len(piece)
            yield piece
    finally:
        file.close()
