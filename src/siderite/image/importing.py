"""Carries out imports: fetches data into a file that becomes the image's when it is whole.

A few at a time, and of each project fewer: a server that sends slowly holds up nobody for long.
What breaks off is tried again from its beginning, some times.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import msgspec

from siderite.core.errors import SideriteError
from siderite.core.errors import Unavailable
from siderite.core.guard import Guard
from siderite.core.log import get_logger
from siderite.core.work import Work
from siderite.image.domain.image import Image
from siderite.image.domain.task import Broken
from siderite.image.domain.task import Hopeless
from siderite.image.transfer import Transfer
from siderite.image.usecases import data
from siderite.image.usecases import imports
from siderite.image.usecases.context import Context
from siderite.image.usecases.imports import Job

if TYPE_CHECKING:
    from siderite.image.web_download import Download

log = get_logger("image")

AT_ONCE = 16
OF_ONE_PROJECT = 4
WAIT_S = 2.0
TRIES = 4
AGAIN_S = (2.0, 10.0, 30.0)
"""How long to wait before what broke off is tried again."""
TELL_S = 2.0
FIRST_S = 60.0
SLOWEST = 16 * 1024
"""Bytes per second that must come on average, once the first minute is over."""
_MIB = 2**20


class Imports:
    """The downloads of this process."""

    def __init__(self, ctx: Context, transfer: Transfer, guard: Guard) -> None:
        self._ctx = ctx
        self._transfer = transfer
        self._guard = guard
        self._under_way: Counter[str | None] = Counter()

    async def carry_on(self, held: Work) -> None:
        """Fetch what one job says, or say why not."""
        job = msgspec.json.decode(held.job, type=Job)
        image = await imports.image_of(self._ctx, held)
        if image is None:
            return
        left_s = held.deadline - self._ctx.door.clock()
        if left_s > 0 and not self._has_place(image.owner):
            await imports.later(
                self._ctx, held, job, again_in=WAIT_S, reason="Other imports are under way."
            )
            return
        self._under_way[image.owner] += 1
        limit = asyncio.timeout(max(0.0, left_s))
        try:
            async with limit:
                await self._fetch(held, job, image)
        except TimeoutError:
            if not limit.expired():
                raise
            hours = imports.WITHIN_S / 3600
            await imports.fail(self._ctx, held, job, f"Not all of it came within {hours:g} hours.")
        except (Broken, Unavailable) as why:
            await self._again(held, job, str(why))
        except (Hopeless, SideriteError) as why:
            await imports.fail(self._ctx, held, job, str(why))
        finally:
            self._under_way[image.owner] -= 1

    def _has_place(self, owner: str | None) -> bool:
        return self._under_way.total() < AT_ONCE and self._under_way[owner] < OF_ONE_PROJECT

    async def _again(self, held: Work, job: Job, why: str) -> None:
        tries = job.tries + 1
        log.info("an import broke off", image=held.machine, tries=tries, error=why)
        if tries >= TRIES:
            await imports.fail(self._ctx, held, job, f"{why} That was the last of {tries} tries.")
            return
        pause = AGAIN_S[min(job.tries, len(AGAIN_S) - 1)]
        tried = msgspec.structs.replace(job, tries=tries)
        reason = f"{why} It is tried again in {pause:g} s."
        await imports.later(self._ctx, held, tried, again_in=pause, reason=reason)

    async def _fetch(self, held: Work, job: Job, image: Image) -> None:
        from siderite.image.web_download import download  # noqa: PLC0415 - httpx, when needed

        room = await data.room(self._ctx, image)
        async with (
            download(self._guard, job.uri) as coming,
            self._transfer.writing(image.uuid) as writer,
        ):
            if room is not None and (coming.length or 0) > room:
                raise data.over_quota(self._ctx)
            self._transfer.files.check_size(coming.length or 0)
            pieces = self._transfer.within(self._told(held, job, coming), room)
            written = await self._transfer.files.fill(writer, pieces)
            await imports.complete(self._ctx, held, job, written)

    async def _told(self, held: Work, job: Job, coming: "Download") -> AsyncIterator[bytes]:
        """The pieces, while those who ask are told how many there were."""
        of = "" if coming.length is None else f" of {coming.length // _MIB}"
        await imports.tell(self._ctx, held, job, f"Copied 0{of} MiB.")
        began = told = time.monotonic()
        size = 0
        async for piece in coming.pieces():
            size += len(piece)
            now = time.monotonic()
            if now - told >= TELL_S:
                told = now
                await imports.tell(self._ctx, held, job, f"Copied {size // _MIB}{of} MiB.")
                if now - began > FIRST_S and size < SLOWEST * (now - began):
                    raise Hopeless(f"It comes with under {SLOWEST // 1024} KiB/s: too slowly.")
            yield piece
