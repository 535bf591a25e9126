"""Images come to hosts before a guest needs them, if that is wanted; those that none needs any more
leave.
"""

import asyncio

import msgspec

from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.outcome import Outcome
from siderite.compute.domain.outcome import Wait
from siderite.compute.drivers.contract import At
from siderite.compute.usecases.fleet import hosts
from siderite.compute.usecases.fleet import image_cache
from siderite.compute.usecases.fleet.image_cache import Wanted
from siderite.compute.usecases.server import due
from siderite.compute.workers.hands import Hands
from siderite.compute.workers.hands import NotOurs
from siderite.compute.workers.hands import place_of
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
    """The handler of an image that a host is to have."""

    def __init__(self, hands: Hands) -> None:
        self._hands = hands

    async def handle(self, held: Work) -> None:
        """Ask its driver, until it is there or will not be."""
        ctx = self._hands.ctx
        wanted = msgspec.json.decode(held.job, type=Wanted)
        try:
            outcome = await self._fetch(wanted, held.machine)
        except NotOurs as why:
            await due.pass_on(ctx, held, why.host)
            return
        if isinstance(outcome, Wait) and ctx.door.clock() < held.deadline:
            await due.later(ctx, held, outcome.reason, outcome.again_in)
            return
        why_not = None if not isinstance(outcome, Wait | Failed) else outcome.reason
        await image_cache.ended(ctx, held, wanted, why_not)

    async def _fetch(self, wanted: Wanted, token: str) -> Outcome:
        place = await place_of(self._hands, wanted.host)
        if isinstance(place, Failed):
            return place
        if place.driver.cache is None:
            return Failed(f"hosts of the driver {place.driver.card.name} keep no images")
        return await place.driver.cache.fetch(place.at, wanted.image, token)
