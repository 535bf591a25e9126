"""Data of images from elsewhere, in a folder that several processes may share.

It is fetched once per image: to a file beside it that takes its name when it is complete, on the
disk, and its checksum is right. What nobody asked for in a while leaves the folder.
"""

import asyncio
import fcntl
import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from siderite.core.clock import now
from siderite.core.disk import remove_if_left
from siderite.core.disk import sync
from siderite.core.ids import new_uuid
from siderite.core.log import get_logger

log = get_logger("glance")

_LOOK_S = 3600.0


class ImageCache:
    """The files in one folder."""

    def __init__(self, folder: Path, *, keep_s: float = 0) -> None:
        self.folder = folder
        self._keep_s = keep_s
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for part in folder.glob("*.part"):
            remove_if_left(part)  # another process that has the same folder may be at it

    async def tidy(self) -> None:
        """For ever, if it is wanted: look for what can leave."""
        while self._keep_s > 0:
            try:
                removed = await asyncio.to_thread(self.prune, now())
                if removed:
                    log.info("removed cached images", images=removed)
            except OSError as why:
                log.error("cannot tidy up cached images", error=repr(why))
            await asyncio.sleep(min(self._keep_s / 4, _LOOK_S))

    def prune(self, at: float) -> int:
        """Remove what nobody asked for in so long a time; how many there were."""
        old = [file for file in self.folder.iterdir() if _used_at(file) < at - self._keep_s]
        for file in old:
            file.unlink(missing_ok=True)
        return len(old)

    def path(self, image: str, checksum: str | None) -> Path:
        """Where an image's data is, or will be."""
        return self.folder / f"{image}.{checksum or 'data'}"

    async def has(self, path: Path) -> bool:
        """Whether it is there; its time then begins anew."""
        return await asyncio.to_thread(_is_there, path)

    async def fill(self, path: Path, data: AsyncIterator[bytes], checksum: str | None) -> bool:
        """Put data there; not what has another checksum."""
        part = path.with_name(f"{path.name}.{new_uuid()[:8]}.part")
        digest = hashlib.md5(usedforsecurity=False)
        try:
            with part.open("wb") as file:
                # Until it has its name: another process would take it for left, and remove it.
                fcntl.flock(file, fcntl.LOCK_EX)
                async for piece in data:
                    await asyncio.to_thread(_written, file, piece, digest)
                if checksum is not None and digest.hexdigest() != checksum:
                    return False
                await asyncio.to_thread(file.flush)
                await asyncio.to_thread(_keep, part, path)
        finally:
            part.unlink(missing_ok=True)
        return True


def _is_there(path: Path) -> bool:
    try:
        os.utime(path)
    except FileNotFoundError:
        return False
    return True


def _used_at(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except FileNotFoundError:  # another process was faster
        return float("inf")


def _written(file: Any, data: bytes, digest: Any) -> None:
    file.write(data)
    digest.update(data)


def _keep(part: Path, path: Path) -> None:
    """Give a file its name once it is on the disk: after a power failure what has the name is all
    of the image, as nobody looks at its checksum again.
    """
    sync(part)
    part.rename(path)
    sync(path.parent)
