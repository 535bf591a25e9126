"""The log on any other transport that oslo.messaging knows (Kafka, AMQP 1.0 …), by that library.

Needs the extra `siderite[oslo]`. Its calls block, some for ever, so that they are made in a thread
of their own, for which nothing waits longer than it says: not the end of the process either.
"""

import asyncio
import contextlib
from collections.abc import Callable
from collections.abc import Sequence
from queue import SimpleQueue
from threading import Thread
from typing import Any

import oslo_messaging  # type: ignore[import-untyped]  # has no types
from oslo_config import cfg

from siderite.core.eventlog import Entry
from siderite.core.log import get_logger
from siderite.core.store import Op
from siderite.events.envelope import Sorter
from siderite.events.envelope import Topic
from siderite.events.envelope import as_notifier_says

log = get_logger("bus")

SEND_S = 60.0
CLOSE_S = 2.0


class OsloBus:
    """A transport of oslo.messaging, opened when the first fact goes out."""

    def __init__(self, url: str, sorter: Sorter) -> None:
        self._url = url.removeprefix("oslo+")
        self._sorter = sorter
        self._todo: SimpleQueue[Callable[[], None]] | None = None
        self._is_free = asyncio.Event()
        self._is_free.set()
        self._transport: Any = None

    async def deal(self, entries: Sequence[Entry]) -> list[Op]:
        """Send what goes out, one after the other."""
        going = [(entry, topic) for entry in entries if (topic := self._sorter.topic(entry))]
        if going:
            try:
                async with asyncio.timeout(SEND_S):
                    await self._is_free.wait()  # nothing piles up behind a call that hangs
                    await self._do(lambda is_late: self._send(going, is_late))
            except TimeoutError as why:
                raise TimeoutError(
                    f"the transport did not take notifications within {SEND_S:.0f} s; check"
                    " notification_url, and what it leads to."
                ) from why
        return []

    async def close(self) -> None:
        """Let go of the transport."""
        transport, self._transport = self._transport, None
        if transport is None:
            return
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._do(lambda _: transport.cleanup())
        except Exception as why:
            log.warning("the transport was left as it is", error=repr(why))

    async def _do(self, what: Callable[[Callable[[], bool]], None]) -> None:
        """Have the thread do this after what it has to do; it is told when nobody waits for it."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def over(why: Exception | None) -> None:
            self._is_free.set()
            if not done.done():
                done.set_result(None) if why is None else done.set_exception(why)

        def work() -> None:
            why: Exception | None = None
            try:
                what(done.cancelled)
            except Exception as error:
                why = error
            with contextlib.suppress(RuntimeError):  # the loop may be closed by now
                loop.call_soon_threadsafe(over, why)

        if self._todo is None:
            self._todo = SimpleQueue()
            Thread(target=_hand, args=(self._todo,), name="oslo-bus", daemon=True).start()
        self._is_free.clear()
        self._todo.put(work)
        await done

    def _send(self, going: Sequence[tuple[Entry, Topic]], is_late: Callable[[], bool]) -> None:
        for entry, topic in going:
            if is_late():
                return  # all of it is sent again, perhaps by another process
            target = oslo_messaging.Target(
                exchange=topic.exchange, topic=f"{topic.name}.{entry.priority.lower()}"
            )
            # The notifier itself would make up message ids of its own.
            self._open()._send_notification(
                target, {"request_id": entry.request_id}, as_notifier_says(entry), 2.0, retry=0
            )

    def _open(self) -> Any:
        if self._transport is None:
            conf = cfg.ConfigOpts()
            conf([], project="siderite")
            self._transport = oslo_messaging.get_notification_transport(conf, self._url)
        return self._transport


def _hand(todo: SimpleQueue[Callable[[], None]]) -> None:
    """In the thread: one thing after the other."""
    while True:
        todo.get()()
