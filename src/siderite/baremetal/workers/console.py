"""Consoles that this process carries: switched as asked for, restored when their home is gone."""

import asyncio
import contextlib
import os

import msgspec

from siderite.baremetal.domain.hardware import Unreachable
from siderite.baremetal.domain.node import Node
from siderite.baremetal.drivers.contract import Console
from siderite.baremetal.drivers.contract import Drivers
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.life import progress
from siderite.baremetal.usecases.machine import console
from siderite.baremetal.usecases.machine.console import ConsoleJob
from siderite.baremetal.usecases.machine.hardware import unsupported
from siderite.baremetal.workers.hardware import bounded
from siderite.core.errors import SideriteError
from siderite.core.ids import new_uuid
from siderite.core.log import get_logger
from siderite.core.work import Work

log = get_logger("console")

BEAT_S = 2.0
"""How often a home tells that it lives, and looks after its consoles."""
SILENT_S = 10.0
"""A home that was not heard of for so long is gone; on our own machine, one beat and no process."""
_RETRY_S = 2.0


class Consoles:
    """The handler of console work, and a home of consoles."""

    def __init__(self, ctx: Context, drivers: Drivers) -> None:
        self._ctx = ctx
        self._drivers = drivers
        self._pid = os.getpid()
        self.home = console.home_of(ctx) + new_uuid()[:8]
        self._open: dict[str, tuple[Console, Endpoint]] = {}
        self._busy: set[str] = set()
        # An embedded database has one process only, of which nobody has to hear again and again.
        self._is_alone = ctx.door.store.dialect == "sqlite"
        self._is_known = False

    async def handle(self, held: Work) -> None:
        """Switch one console; a machine that is away is asked again until the deadline."""
        node = await progress.load_or_abandon(self._ctx, held)
        if node is None:
            return
        job = msgspec.json.decode(held.job, type=ConsoleJob)
        self._busy.add(node.uuid)
        try:
            await self._switch(held, node, job)
        finally:
            self._busy.discard(node.uuid)

    async def _switch(self, held: Work, node: Node, job: ConsoleJob) -> None:
        home = self.home
        try:
            able = self._able(node)
            at = Endpoint.of(node)
            limit = self._ctx.settings.hardware_timeout_s
            if job.enabled:
                place = await bounded(at, "console start", able.start(at), limit)
                self._open[node.uuid] = (able, at)
                await console.ended(self._ctx, held, job, home=home, at=place, by=node)
            else:
                await bounded(at, "console stop", able.stop(at), limit)
                self._open.pop(node.uuid, None)
                await console.ended(self._ctx, held, job, home=home)
        except SideriteError as why:
            if isinstance(why, Unreachable):
                pause = why.again_in or _RETRY_S
                if self._ctx.door.clock() + pause < held.deadline:
                    await console.waits(self._ctx, held, why.sentence, pause)
                    return
            verb = "restore" if job.restore else "start" if job.enabled else "stop"
            text = f"Failed to {verb} the console: {why.sentence}"
            await console.ended(self._ctx, held, job, home=home, error=text)

    def _able(self, node: Node) -> Console:
        driver = self._drivers.get(node.driver)
        able = driver.console if driver is not None else None
        if driver is None or able is None or not driver.card.supports(node, "console"):
            raise unsupported(node, "console")
        return able

    async def run(self) -> None:
        """Live as a home until cancelled; then let go of every console, for others to take."""
        if self._is_alone:  # whoever was a home before is gone
            await console.leave(self._ctx, [row[0] for row in await console.homes(self._ctx)])
        try:
            while True:
                try:
                    await self._beat()
                except Exception as why:
                    log.error("cannot look after consoles", error=repr(why))
                await asyncio.sleep(BEAT_S)
        finally:
            stops = [self._stop(uuid) for uuid in list(self._open)]
            await asyncio.gather(*stops, return_exceptions=True)
            with contextlib.suppress(Exception):
                await console.leave(self._ctx, [self.home])

    async def _beat(self) -> None:
        if not (self._is_alone and self._is_known):
            await console.live(self._ctx, self.home, self._pid)
            self._is_known = True
        if not self._is_alone:
            await self._look_for_the_gone()
        if self._open:
            ours = await console.carried_by(self._ctx, self.home)
            strays = [u for u in self._open if ours.get(u, True) and u not in self._busy]
            await asyncio.gather(*(self._stop(uuid) for uuid in strays))
            for uuid in strays:
                if uuid in ours:
                    await console.let_go(self._ctx, self.home, uuid)
        await console.restore(self._ctx, self.home)

    async def _look_for_the_gone(self) -> None:
        now = self._ctx.door.clock()
        gone = [
            home
            for home, host, pid, seen in await console.homes(self._ctx)
            if home != self.home and self._is_gone(host, pid, now - seen)
        ]
        if gone:
            await console.leave(self._ctx, gone)

    def _is_gone(self, host: str, pid: int, silent_s: float) -> bool:
        if silent_s > SILENT_S:
            return True
        return host == self._ctx.door.host and silent_s > BEAT_S * 1.5 and not _runs(pid)

    async def _stop(self, uuid: str) -> None:
        if uuid not in self._open:
            return  # somebody else has just done it
        able, at = self._open.pop(uuid)
        limit = self._ctx.settings.hardware_timeout_s
        with contextlib.suppress(SideriteError):
            await bounded(at, "console stop", able.stop(at), limit)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
