"""Images come to hosts before a guest needs them, if that is wanted; those that none needs any more
leave.
"""

import asyncio

import msgspec

from siderite.compute.domain.outcome import Done
from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.outcome import Outcome
from siderite.compute.domain.outcome import Wait
from siderite.compute.domain.record_facts import Cached
from siderite.compute.drivers.contract import At
from siderite.compute.usecases.fleet import hosts
from siderite.compute.usecases.fleet import image_cache
from siderite.compute.usecases.fleet.image_cache import Wanted
from siderite.compute.usecases.server import due
from siderite.compute.workers.hands import Hands
from siderite.compute.workers.hands import NotOurs
from siderite.compute.workers.hands import place_of
from siderite.compute.workers.holding import to_its_end
from siderite.core.log import get_logger
from siderite.core.work import Work

log = get_logger("images")

_AT_MOST_S = 3600.0


class ImageCaches:
    """Looks every so often, at the hosts of one conductor group or at all."""

    def __init__(self, hands: Hands, group: str | None = None) -> None:
        self._hands = hands
        self._group = group

    async def run(self) -> None:
        """For ever, if it is wanted."""
        keep_s = self._hands.ctx.settings.image_cache_keep_s
        while keep_s > 0:
            try:
                await self.round()
            except Exception as why:
                log.error("cannot tidy up cached images", error=repr(why))
            await asyncio.sleep(min(keep_s / 4, _AT_MOST_S))

    async def round(self) -> None:
        """Every host once."""
        ctx = self._hands.ctx
        keep_s = ctx.settings.image_cache_keep_s
        for host in await hosts.every(ctx, self._group):
            driver = self._hands.drivers.get(host.driver)
            if driver is None or driver.cache is None:
                continue
            at = At(host.name, host.uri, host.options)
            removed = await driver.cache.prune(at, keep_s, ctx.door.clock())
            if removed:
                log.info("removed cached images", host=host.name, images=removed)


class CachingWork:
    """The handler of images that hosts are to have; each time it sees to the next host."""

    def __init__(self, hands: Hands) -> None:
        self._hands = hands

    async def handle(self, held: Work) -> None:
        """Send what it lacks, unless it is away or other workers' then."""
        ctx = self._hands.ctx
        wanted = msgspec.json.decode(held.job, type=Wanted)
        if self._is_late(held):
            found = [Cached(host, [], wanted.images) for host in wanted.hosts]
            log.warning("images were not sent ahead in time", hosts=wanted.hosts, on=held.reason)
            await image_cache.done(ctx, held, wanted, found, [])
            return
        host, *left = wanted.hosts
        got: list[str] = []
        for image in wanted.images:
            try:
                outcome = await self._fetch(held, host, image)
            except NotOurs as why:
                await due.pass_on(ctx, held, why.host)
                return
            match outcome:
                case Done():
                    got.append(image)
                case Wait():
                    others_first = wanted.last().job()
                    await due.later(ctx, held, outcome.reason, outcome.again_in, others_first)
                    return
                case Failed():
                    log.warning("cannot send an image", host=host, image=image, on=outcome.reason)
        failed = [image for image in wanted.images if image not in got]
        await image_cache.done(ctx, held, wanted, [Cached(host, got, failed)], left)

    async def _fetch(self, held: Work, host: str, image: str) -> Outcome:
        """What came of it."""
        place = await place_of(self._hands, host)
        if isinstance(place, Failed):
            return place
        cache = place.driver.cache
        if cache is None:
            return Failed(f"hosts of the driver {place.driver.card.name} keep no images")
        token = f"{held.machine}/{image}"
        return await to_its_end(
            self._hands, lambda: cache.fetch(place.at, image, token), held.deadline
        )

    def _is_late(self, held: Work) -> bool:
        return self._hands.ctx.door.clock() >= held.deadline
