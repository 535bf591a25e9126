"""Data on its way into an image and out of it: streams, files and records together."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from siderite.core.ids import new_uuid
from siderite.core.log import get_logger
from siderite.core.transition import Cause
from siderite.core.who import Who
from siderite.image import store as rows
from siderite.image.domain.image import Image
from siderite.image.domain.image import Status
from siderite.image.files import Files
from siderite.image.files import Writer
from siderite.image.usecases import data
from siderite.image.usecases.context import Context

log = get_logger("image")

SWEEP_INTERVAL_S = 600.0


class Transfer:
    """Uploads, and the end of those that broke off."""

    def __init__(self, ctx: Context, files: Files) -> None:
        self._ctx = ctx
        self.files = files

    async def upload(
        self,
        uuid: str,
        pieces: AsyncIterator[bytes],
        *,
        staged: bool,
        who: Who,
        cause: Cause,
        length: int = 0,
    ) -> Image:
        """Take an image's data; all of it, or the image is queued as before. What is said to be too
        long is refused before it comes.
        """
        found = await data.may_upload(self._ctx, uuid, who)
        status = Status.UPLOADING if staged else Status.SAVING
        to = Status.UPLOADING if staged else Status.ACTIVE
        room = await data.room(self._ctx, found)
        if room is not None and (room <= 0 or length > room):
            raise data.over_quota(self._ctx)
        self.files.check_size(length)
        async with self.writing(found.uuid) as writer:
            await data.begin(
                self._ctx, found.uuid, writer.name, status=status, who=who, cause=cause
            )
            written = await self.files.fill(writer, self.within(pieces, room))
            return await data.complete(
                self._ctx, found.uuid, written, to=to, owner=found.owner, cause=cause
            )

    async def within(self, pieces: AsyncIterator[bytes], room: int | None) -> AsyncIterator[bytes]:
        """The pieces as long as the project may have so much."""
        size = 0
        async for piece in pieces:
            size += len(piece)
            if room is not None and size > room:
                raise data.over_quota(self._ctx)
            yield piece

    @asynccontextmanager
    async def writing(self, uuid: str) -> AsyncIterator[Writer]:
        """A file to write to, that is gone again if what is done with it fails."""
        writer = self.files.begin(f"{uuid}.{new_uuid()[:8]}")
        try:
            yield writer
        except BaseException:
            # Also when this task was cancelled: the record must not say that somebody writes.
            await asyncio.shield(self._give_up(uuid, writer.name))
            raise
        finally:
            await asyncio.shield(asyncio.to_thread(writer.close))

    async def _give_up(self, uuid: str, name: str) -> bool:
        if not await data.give_up(self._ctx, uuid, name):
            return False
        await asyncio.to_thread(self.files.remove, name)
        return True

    async def sweep(self) -> None:
        """Remove what crashed uploads left, at start and then now and again."""
        while True:
            try:
                await self.sweep_once()
            except Exception as why:
                log.warning("cannot sweep the images directory", error=repr(why))
            await asyncio.sleep(SWEEP_INTERVAL_S)

    async def sweep_once(self) -> None:
        """Files that no record speaks of, and records that speak of a file nobody writes."""
        names = await asyncio.to_thread(self.files.names)
        known = await rows.with_files(self._ctx.door.store)
        for name in names:
            if name in known:
                continue
            with self.files.unwritten(name) as is_left:
                # Its writer may have finished between the listing and the question.
                if is_left and name not in await rows.with_files(self._ctx.door.store):
                    await asyncio.to_thread(self.files.remove, name)
                    log.info("removed a leftover of an upload", file=name)
        for name, (uuid, is_unfinished) in known.items():
            if not is_unfinished:
                continue
            with self.files.unwritten(name) as is_left:
                is_queued = is_left and await self._give_up(uuid, name)
            if is_queued:
                log.info("an upload had broken off; the image is queued again", image=uuid)
