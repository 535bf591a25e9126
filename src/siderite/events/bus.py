"""The log on OpenStack's notification bus, by RabbitMQ.

`Bus.deal` publishes a batch of facts and returns when the broker has confirmed each; only then does
its follower commit how far it is. A broker that is away, or dies in the middle, costs time, and
messages that were confirmed but not committed come again with the same message id. One channel
publishes everything in the order of the log.

Exchanges and queues are used as they are found; missing ones are made, as oslo.messaging's notifier
does, so that what nobody reads yet is kept.
"""

import asyncio
import os
from collections.abc import Sequence
from typing import Any
from typing import cast
from urllib.parse import urlsplit
from urllib.parse import urlunsplit

import aio_pika
from aio_pika.abc import AbstractConnection
from aiormq.channel import Channel
from aiormq.exceptions import ChannelNotFoundEntity
from pamqp.commands import Basic

from siderite.core.eventlog import Entry
from siderite.core.log import get_logger
from siderite.core.store import Op
from siderite.events.envelope import Sorter
from siderite.events.envelope import Topic
from siderite.events.envelope import envelope

log = get_logger("bus")

CONNECT_S = 10.0
CONFIRM_S = 60.0
_PERSISTENT = 2
_QUORUM: dict[str, Any] = {"x-queue-type": "quorum"}


class BusUnavailable(Exception):
    """The broker cannot be reached, or did not confirm; it is tried again."""


def _said(why: Exception | None) -> str:
    """What an error has to say, without the names of classes if it can."""
    said: tuple[object, ...] = why.args if why else ()
    words = [part for part in said if isinstance(part, str) and part]
    if len(said) > 1 and isinstance(said[0], int) and said[0] > 0:  # the system's, and its words
        return os.strerror(said[0])
    return words[-1].rstrip(".") if words else type(why).__name__


def _place(url: str) -> str:
    """Where it leads, without its user and password."""
    return urlsplit(url).netloc.rpartition("@")[2]


class Bus:
    """A connection to the broker while there is one."""

    def __init__(self, url: str, sorter: Sorter, *, queues: str = "durable") -> None:
        self._urls = addresses(url)
        self._sorter = sorter
        self._is_durable = queues != "transient"
        self._arguments = _QUORUM if queues == "quorum" else None
        self._connection: AbstractConnection | None = None
        self._channel: Channel | None = None
        self._declared: set[str] = set()

    async def deal(self, entries: Sequence[Entry]) -> list[Op]:
        """Publish what goes out, and wait until the broker has it all."""
        going = [(entry, topic) for entry in entries if (topic := self._sorter.topic(entry))]
        if not going:
            return []
        try:
            channel = await self._open()
            async with asyncio.timeout(CONFIRM_S):
                for key, topic in {_key(entry, topic): topic for entry, topic in going}.items():
                    await self._declare(channel, key, topic)
                await _publish(channel, going)
        except BaseException as why:
            await self.close()
            if isinstance(why, BusUnavailable) or not isinstance(why, Exception):
                raise
            raise BusUnavailable(f"the broker did not take notifications: {_said(why)}") from why
        return []

    async def close(self) -> None:
        """Let go of the connection."""
        connection, self._connection, self._channel = self._connection, None, None
        self._declared.clear()
        if connection is not None:
            try:
                async with asyncio.timeout(2.0):
                    await connection.close()
            except Exception as why:
                log.debug("the connection was lost already", error=repr(why))

    async def _open(self) -> Channel:
        if self._channel is not None and not self._channel.is_closed:
            return self._channel
        await self.close()
        why: Exception | None = None
        for url in self._urls:
            try:
                async with asyncio.timeout(CONNECT_S):
                    self._connection = await aio_pika.connect(url)
                    self._channel = await self._new_channel()
                    return self._channel
            except Exception as error:
                why = error
                await self.close()  # it may have let us in, and no further
        raise BusUnavailable(
            f"no broker answers at {', '.join(map(_place, self._urls))}: {_said(why)}; check"
            " notification_url, and that the broker runs."
        )

    async def _new_channel(self) -> Channel:
        assert self._connection is not None  # noqa: S101
        opened = self._connection.channel(publisher_confirms=True, on_return_raises=True)
        await opened.initialize()
        return cast(Channel, await opened.get_underlay_channel())

    async def _declare(self, channel: Channel, key: str, topic: Topic) -> None:
        """The exchange, the queue and their binding, once per connection."""
        if key in self._declared:
            return
        if not await self._is_there(exchange=topic.exchange):
            await channel.exchange_declare(
                topic.exchange, exchange_type="topic", durable=self._is_durable
            )
        if not await self._is_there(queue=key):
            await channel.queue_declare(key, durable=self._is_durable, arguments=self._arguments)
        await channel.queue_bind(key, topic.exchange, routing_key=key)
        self._declared.add(key)

    async def _is_there(self, *, exchange: str | None = None, queue: str = "") -> bool:
        """Whether somebody made it already: a question that costs a channel if not."""
        probe = await self._new_channel()
        try:
            if exchange is not None:
                await probe.exchange_declare(exchange, passive=True)
            else:
                await probe.queue_declare(queue, passive=True)
        except ChannelNotFoundEntity:
            return False
        await probe.close()
        return True


def _key(entry: Entry, topic: Topic) -> str:
    return f"{topic.name}.{entry.priority.lower()}"


async def _publish(channel: Channel, going: Sequence[tuple[Entry, Topic]]) -> None:
    """Hand all over in order, then wait for all confirmations; one that is missing, or a
    refusal, fails all.
    """
    sent = [
        asyncio.ensure_future(
            channel.basic_publish(
                envelope(entry),
                exchange=topic.exchange,
                routing_key=_key(entry, topic),
                properties=_properties(entry),
                mandatory=True,  # a queue that was deleted under us is made again
                wait=False,
            )
        )
        for entry, topic in going
    ]
    try:
        await asyncio.gather(*sent)
    finally:
        for each in sent:
            each.cancel()


def _properties(entry: Entry) -> Basic.Properties:
    return Basic.Properties(
        content_type="application/json",
        content_encoding="utf-8",
        delivery_mode=_PERSISTENT,
        priority=0,
        message_id=entry.message_id,
    )


def addresses(url: str) -> list[str]:
    """AMQP URLs of the brokers in `amqp://…`, or in `rabbit://…` as oslo.messaging writes it, with
    several hosts if there are.
    """
    parts = urlsplit(url)
    scheme = "amqps" if parts.scheme == "amqps" or "ssl=1" in parts.query else "amqp"
    path = parts.path
    if parts.scheme == "rabbit":
        # Its virtual host is what follows the first slash, and none there is the default one.
        path = "/" + path.removeprefix("/").replace("/", "%2F")
    return [
        urlunsplit((scheme, host, path or "/", "" if parts.scheme == "rabbit" else parts.query, ""))
        for host in parts.netloc.split(",")
    ]
