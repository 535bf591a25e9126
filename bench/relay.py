"""The workload of the notification bus: the log relayed to RabbitMQ with confirms, against a bare
publisher of messages of the same size, also with confirms.
"""

import asyncio
import time
from functools import partial

import aio_pika
import msgspec

from bench import load
from bench.figure import Figure
from bench.figure import Measured
from bench.figure import Unit
from bench.stage import Stage
from siderite.core import eventlog
from siderite.core import sequencer
from siderite.core.fact import Fact
from siderite.core.ids import new_uuid
from siderite.core.store import Store
from siderite.core.store import open_store
from siderite.core.store.migrations import migrate
from siderite.events import place
from siderite.events.bus import Bus
from siderite.events.envelope import Sorter
from siderite.events.envelope import Topic
from siderite.events.follower import Follower
from tests.support.rabbitmq import running_rabbitmq

_PAYLOAD = msgspec.json.encode({"text": "x" * 1700}).decode()  # as a node's is
_TOPIC = Topic("bench", "bench_notifications", ("bench.*",))
_AT_ONCE = 200


def relay(stage: Stage) -> Measured:
    """Events per second from the log to the broker."""
    with running_rabbitmq() as rabbit:
        return load.run(_relay(stage, rabbit.url()))


async def _relay(stage: Stage, url: str) -> Measured:
    size = int(3000 * stage.plan.limit_seconds)
    store = await open_store(stage.scratch or f"sqlite:///{stage.place}/relay.db")
    await migrate(store)
    relayed, bare = [], []
    try:
        for _ in range(stage.plan.rounds):
            await _fill(store, size)
            relayed.append(size / await _timed(partial(_follow, store, url)))
            body = b"x" * 2300
            bare.append(size / await _timed(partial(_publish, url, body, size)))
    finally:
        await store.close()
    return Measured(Figure(Unit.RATE, tuple(relayed)), Figure(Unit.RATE, tuple(bare)))


async def _timed(work: partial) -> float:  # type: ignore[type-arg]  # of coroutines
    begin = time.perf_counter()
    await work()
    return time.perf_counter() - begin


async def _fill(store: Store, size: int) -> None:
    for start in range(0, size, _AT_ONCE):
        facts = [
            Fact("bench.node.update.end", "bench", "node", new_uuid(), _PAYLOAD)
            for _ in range(min(_AT_ONCE, size - start))
        ]
        await store.commit(eventlog.record(facts, at=time.time(), host="h", request_id="req-1"))
    if store.dialect == "postgresql":
        await sequencer.place(store)


async def _follow(store: Store, url: str) -> None:
    bus = Bus(url, Sorter([_TOPIC], "info"))
    follower = asyncio.create_task(
        Follower(store, "bus", eventlog.read, bus.deal, let_go=bus.close).run()
    )
    newest = await eventlog.newest(store)
    while await place.seq_of(store, "bus") < newest:  # noqa: ASYNC110 - of the store, not of ours
        await asyncio.sleep(0.005)
    follower.cancel()
    await asyncio.gather(follower, return_exceptions=True)


async def _publish(url: str, body: bytes, size: int) -> None:
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel(publisher_confirms=True)
        exchange = await channel.declare_exchange(_TOPIC.exchange, "topic", durable=True)
        queue = await channel.declare_queue("bench_bare", durable=True)
        await queue.bind(exchange, "bench_bare")
        for start in range(0, size, _AT_ONCE):
            await asyncio.gather(
                *(
                    exchange.publish(aio_pika.Message(body, delivery_mode=2), "bench_bare")
                    for _ in range(min(_AT_ONCE, size - start))
                )
            )
