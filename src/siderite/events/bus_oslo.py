"""The log on any other transport that oslo.messaging knows (Kafka, AMQP 1.0 …), by that library.

Needs the extra `siderite[oslo]`. Its calls block, some for ever, so that they are made in a thread
of their own, for which nothing waits longer than it says: not the end of the process either. One
that hangs for longer is left to itself, and another begins with a transport of its own; a few
may hang so.
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
MOST_HANGING = 3
"""Threads that were left to themselves: while there are so many, the last one is waited for."""


class OsloBus:
    """A transport of oslo.messaging, opened when the first fact goes out."""

    def __init__(self, url: str, sorter: Sorter) -> None:
        self._url = url.removeprefix("oslo+")
        self._sorter = sorter
        self._hand = _Hand()
        self._hanging: set[_Hand] = set()

    async def deal(self, entries: Sequence[Entry]) -> list[Op]:
        """Send what goes out, one after the other."""
        going = [(entry, topic) for entry in entries if (topic := self._sorter.topic(entry))]
        if going:
            hand, began = self._hand, False
            try:
                async with asyncio.timeout(SEND_S):
                    await hand.is_free.wait()  # nothing piles up behind a call that hangs
                    began = True
                    await hand.do(lambda is_late: self._send(hand, going, is_late))
            except TimeoutError as why:
                if not began:
                    self._leave(hand)
                raise TimeoutError(
                    f"the transport did not take notifications within {SEND_S:.0f} s; check"
                    " notification_url, and what it leads to."
                ) from why
        return []

    async def close(self) -> None:
        """Let go of the transport."""
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._hand.let_go()
        except Exception as why:
            log.warning("the transport was left as it is", error=repr(why))

    def _leave(self, hand: "_Hand") -> None:
        """It has had its time twice: the next facts go by another. What it still does ends with the
        call in which it hangs, and one fact may go out late and twice.
        """
        self._hanging = {one for one in self._hanging if not one.is_free.is_set()}
        if len(self._hanging) < MOST_HANGING:
            log.warning("a call of the transport hangs: it is opened anew")
            self._hanging.add(hand)
            hand.leave()
            self._hand = _Hand()

    def _send(
        self,
        hand: "_Hand",
        going: Sequence[tuple[Entry, Topic]],
        is_late: Callable[[], bool],
    ) -> None:
        for entry, topic in going:
            if is_late():
                return  # all of it is sent again, perhaps by another process
            target = oslo_messaging.Target(
                exchange=topic.exchange, topic=f"{topic.name}.{entry.priority.lower()}"
            )
            # The notifier itself would make up message ids of its own.
            self._opened(hand)._send_notification(
                target, {"request_id": entry.request_id}, as_notifier_says(entry), 2.0, retry=0
            )

    def _opened(self, hand: "_Hand") -> Any:
        if hand.transport is None:
            conf = cfg.ConfigOpts()
            conf([], project="siderite")
            hand.transport = oslo_messaging.get_notification_transport(conf, self._url)
        return hand.transport


class _Hand:
    """A thread, begun when it is first needed, and the transport that only it touches."""

    def __init__(self) -> None:
        self.transport: Any = None
        self.is_free = asyncio.Event()
        self.is_free.set()
        self._todo: SimpleQueue[Callable[[], None] | None] | None = None

    async def do(self, what: Callable[[Callable[[], bool]], None]) -> None:
        """Have the thread do this after what it has to do; it is told when nobody waits for it."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def over(why: Exception | None) -> None:
            self.is_free.set()
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
            Thread(target=self._run, args=(self._todo,), name="oslo-bus", daemon=True).start()
        self.is_free.clear()
        self._todo.put(work)
        await done

    async def let_go(self) -> None:
        """Have the thread let go of the transport, if it has one."""
        if self._todo is not None:
            await self.do(lambda _: self._clean_up())

    def leave(self) -> None:
        """The same, whenever it comes to it; then the thread ends."""
        if self._todo is not None:
            self._todo.put(None)

    def _clean_up(self) -> None:
        transport, self.transport = self.transport, None
        if transport is not None:
            transport.cleanup()

    def _run(self, todo: SimpleQueue[Callable[[], None] | None]) -> None:
        """In the thread: one thing after the other."""
        while (work := todo.get()) is not None:
            work()
        with contextlib.suppress(Exception):  # nobody is there to hear of it
            self._clean_up()
