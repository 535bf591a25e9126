"""Images that no guest needs any more leave their hosts."""

import asyncio

from siderite.compute.drivers.contract import At
from siderite.compute.usecases.fleet import hosts
from siderite.compute.workers.hands import Hands
from siderite.core.log import get_logger

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
