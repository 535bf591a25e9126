"""The log on any other transport that oslo.messaging knows (Kafka, AMQP 1.0 …), by that library.

Needs the extra `siderite[oslo]`. Its calls block, so that they are made in a thread of their own.
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import oslo_messaging  # type: ignore[import-untyped]  # has no types
from oslo_config import cfg

from siderite.core.eventlog import Entry
from siderite.core.store import Op
from siderite.events.envelope import Sorter
from siderite.events.envelope import Topic
from siderite.events.envelope import as_notifier_says

SEND_S = 60.0


class OsloBus:
    """A transport of oslo.messaging, opened when the first fact goes out."""

    def __init__(self, url: str, sorter: Sorter) -> None:
        self._url = url.removeprefix("oslo+")
        self._sorter = sorter
        self._thread = ThreadPoolExecutor(1, "oslo-bus")
        self._transport: Any = None

    async def deal(self, entries: Sequence[Entry]) -> list[Op]:
        """Send what goes out, one after the other."""
        going = [(entry, topic) for entry in entries if (topic := self._sorter.topic(entry))]
        if going:
            loop = asyncio.get_running_loop()
            async with asyncio.timeout(SEND_S):
                await loop.run_in_executor(self._thread, self._send, going)
        return []

    async def close(self) -> None:
        """Let go of the transport."""
        transport, self._transport = self._transport, None
        if transport is not None:
            await asyncio.get_running_loop().run_in_executor(self._thread, transport.cleanup)

    def _send(self, going: Sequence[tuple[Entry, Topic]]) -> None:
        for entry, topic in going:
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
