"""Files that machines boot from go when no node knows of their boot any more.

Who ends a boot takes its files along. This is for those whose node was deleted meanwhile, and for
those that a process had made which was not the one to end it. A boot is recorded before it has
files, so whatever is found here and not recorded is over.
"""

import asyncio
import contextlib
import re
import shutil
from pathlib import Path

from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.life import netboot
from siderite.baremetal.usecases.life.netboot import Boot
from siderite.core.ids import is_uuid
from siderite.core.log import get_logger

log = get_logger("boot_files")

EVERY_S = 600.0
_SECRET = re.compile(r"[A-Za-z0-9_-]{16,64}\Z")


class BootFiles:
    """The sweep over this process's folder of what machines boot from."""

    def __init__(self, ctx: Context, folder: Path) -> None:
        self._ctx = ctx
        self._folder = folder

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                await self.sweep()
            except Exception as why:
                log.warning("files of boots that are over stay for now", error=repr(why))
            await asyncio.sleep(EVERY_S)

    async def sweep(self) -> None:
        """Remove what belongs to no boot. Whatever else lies there is not ours."""
        found = await asyncio.to_thread(_boots, self._folder)
        for boot in await netboot.over(self._ctx, found) if found else ():
            await asyncio.to_thread(_remove, self._folder / boot.node, boot.secret)
            log.info("files of a boot that is over were removed", node=boot.node)


def _boots(folder: Path) -> list[Boot]:
    nodes = [place for place in _inside(folder) if is_uuid(place.name)]
    return [
        Boot(node.name, place.name)
        for node in nodes
        for place in _inside(node)
        if _SECRET.match(place.name)
    ]


def _inside(folder: Path) -> list[Path]:
    try:
        return [place for place in folder.iterdir() if place.is_dir() and not place.is_symlink()]
    except FileNotFoundError:
        return []


def _remove(node: Path, secret: str) -> None:
    shutil.rmtree(node / secret, ignore_errors=True)
    with contextlib.suppress(OSError):  # another boot of the node has its files there
        node.rmdir()
