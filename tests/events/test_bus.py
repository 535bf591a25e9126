"""The notification bus: a plain oslo.messaging consumer hears the log, whatever the broker does."""

import asyncio
import json
import re
from datetime import UTC
from datetime import datetime

import aio_pika
import msgspec
import pytest
from aiormq.exceptions import AMQPConnectionError
from aiormq.exceptions import AMQPError

from siderite.core import eventlog
from siderite.core.eventlog import Entry
from siderite.core.store import Op
from siderite.events import place
from siderite.events.bus import Bus
from siderite.events.bus import BusUnavailable
from siderite.events.bus import addresses
from siderite.events.envelope import Sorter
from siderite.events.envelope import Topic
from siderite.events.envelope import envelope
from siderite.events.follower import Unfollowed
from tests.events.listening import listening
from tests.events.log import NODE
from tests.events.log import fact
from tests.events.log import tell
from tests.support.app import running
from tests.support.ports import free_port
from tests.support.rabbitmq import Rabbit

# What oslo.messaging's RabbitMQ driver imports is not ours to mend.
pytestmark = [
    pytest.mark.filterwarnings(r"ignore:\s*Eventlet is deprecated"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

IRON = Topic("ironic", "ironic_versioned_notifications", ("baremetal.*",))
NOVA = Topic("nova", "versioned_notifications", ("instance.*",))


def an_entry(seq=1, **more):
    told = {
        "seq": seq, "message_id": f"m-{seq}", "event_type": "baremetal.node.update.end",
        "at": 1.5, "publisher_id": "ironic-api.here", "priority": "INFO", "request_id": "req-1",
        "resource_type": "node", "resource": NODE, "project": None,
        "payload": msgspec.Raw(b'{"n":1}'),
    }  # fmt: skip
    return Entry(**(told | more))


async def logged(app):
    """The whole log, when the bus has had all of it."""
    await tell(app)
    async with asyncio.timeout(60):
        while True:
            entries = await eventlog.read(app.program.store, limit=10_000)
            bus = await standing(app)
            if entries and bus is not None and bus.seq == entries[-1].seq:
                return entries
            await asyncio.sleep(0.02)


def as_heard(entry):
    """What a consumer must hear of a fact."""
    return {
        "priority": entry.priority,
        "publisher_id": entry.publisher_id,
        "event_type": entry.event_type,
        "payload": json.loads(bytes(entry.payload)),
        "request_id": entry.request_id,
        "message_id": entry.message_id,
        "timestamp": datetime.fromtimestamp(entry.at, UTC).strftime("%Y-%m-%d %H:%M:%S.%f"),
    }


async def heard_by(consumer, count):
    return await asyncio.to_thread(consumer.until, lambda told: len(told) >= count)


async def standing(app):
    """Where the bus is; None if it is off."""
    found = await place.standings(app.program.store)
    return next((each for each in found if each.name == "bus"), None)


async def bus_has_begun(app):
    async with asyncio.timeout(30):
        while await standing(app) is None:
            await asyncio.sleep(0.02)


def test_a_plain_consumer_hears_what_the_log_says(tmp_path, database_url, broker):
    _hears(tmp_path, database_url, broker, "rabbit")


def test_and_by_the_librarys_own_transport(tmp_path, broker):
    # Our own transport makes durable queues; the library's makes transient ones unless told.
    _hears(tmp_path, "", broker, "oslo+rabbit", durable=False)


def _hears(folder, database, broker, scheme, *, durable=True):
    async def story():
        async with running(folder, database, work=True, notification_url=broker.url(scheme)) as app:
            await bus_has_begun(app)
            uuid = await app.make_node(name="n1")
            await tell(app, fact(1), fact(2, kind="power_set.error", resource=uuid))
            entries = await logged(app)
            with listening(broker.url("rabbit"), durable=durable) as consumer:
                told = await heard_by(consumer, len(entries))
                assert len(consumer.all) == len(told) + 1
        for priority in ("INFO", "ERROR"):
            ours = [as_heard(entry) for entry in entries if entry.priority == priority]
            assert [said for said in told if said["priority"] == priority] == ours

    asyncio.run(story())


def test_a_consumer_that_was_there_first_keeps_its_queues(tmp_path, broker):
    async def story():
        with listening(broker.url("rabbit"), durable=False) as consumer:
            async with running(tmp_path, work=True, notification_url=broker.url()) as app:
                await bus_has_begun(app)
                await tell(app, fact(1))
                (told,) = await heard_by(consumer, 1)
        assert told["payload"] == {"n": 1}

    asyncio.run(story())


def test_what_nova_would_say_goes_where_nova_would_say_it(tmp_path, broker):
    async def story():
        bus = Bus(broker.url(), Sorter([IRON, NOVA], "info"))
        entry = an_entry(event_type="instance.power_off.end", publisher_id="nova-compute:here")
        await bus.deal([entry])
        await bus.close()
        with listening(
            broker.url("rabbit"), exchange="nova", topic="versioned_notifications"
        ) as consumer:
            (told,) = await heard_by(consumer, 1)
        assert told == as_heard(entry)

    asyncio.run(story())


def test_only_priorities_from_the_level_on_go_out(tmp_path, broker):
    async def story():
        async with running(
            tmp_path, work=True, notification_url=broker.url(), notification_level="error"
        ) as app:
            await bus_has_begun(app)
            await tell(app, fact(1), fact(2, kind="power_set.error"), fact(3))
            await logged(app)
            with listening(broker.url("rabbit")) as consumer:
                (told,) = await heard_by(consumer, 1)
        assert told["payload"] == {"n": 2}

    asyncio.run(story())


def test_what_stays_here_asks_nothing_of_a_broker():
    """So that facts of bare metal go by though the bus that hears of servers is away."""
    bus = Bus(f"rabbit://u:p@127.0.0.1:{free_port()}/", Sorter([NOVA], "info"))
    assert asyncio.run(bus.deal([an_entry()])) == []


def test_what_happened_while_it_was_off_is_history(tmp_path, broker):
    async def story():
        async with running(tmp_path) as app:
            await tell(app, fact(1))
        async with running(tmp_path, work=True, notification_url=broker.url()) as app:
            await bus_has_begun(app)
            await tell(app, fact(2))
            await logged(app)
        async with running(tmp_path) as app:
            assert await standing(app) is None
        with listening(broker.url("rabbit")) as consumer:
            (told,) = await heard_by(consumer, 1)
        assert told["payload"] == {"n": 2}

    asyncio.run(story())


def test_a_broker_that_is_away_costs_only_time(tmp_path, database_url, broker):
    """Requests are answered meanwhile, and the operator can read why nothing goes out."""

    async def story():
        port = free_port()
        async with running(
            tmp_path, database_url, work=True, notification_url=f"amqp://u:p@127.0.0.1:{port}/"
        ) as app:
            await bus_has_begun(app)
            await asyncio.gather(*(app.make_node() for _ in range(5)))
            async with asyncio.timeout(30):
                while not (await standing(app)).problem:
                    await asyncio.sleep(0.02)
        async with running(tmp_path, database_url, work=True, notification_url=broker.url()) as app:
            entries = await logged(app)
            assert (await standing(app)).problem is None
            with listening(broker.url("rabbit")) as consumer:
                told = await heard_by(consumer, len(entries))
        assert told == [as_heard(entry) for entry in entries]
        assert len(told) == 10

    asyncio.run(story())


def test_one_process_at_a_time_feeds_the_bus(tmp_path, postgres_url, broker):
    async def story():
        url = broker.url()
        async with (
            running(tmp_path / "a", postgres_url, work=True, notification_url=url) as one,
            running(tmp_path / "b", postgres_url, work=True, notification_url=url) as two,
        ):
            await bus_has_begun(one)
            for n in range(20):
                await tell((one, two)[n % 2], fact(n))
            entries = await logged(one)
            with listening(broker.url("rabbit")) as consumer:
                await heard_by(consumer, len(entries))
                assert len(consumer.all) == len(entries) + 1

    asyncio.run(story())


def test_a_process_without_a_broker_leaves_the_bus_to_those_that_have_one(
    tmp_path, postgres_url, broker
):
    """Though the one that has it is away just then, and facts happen meanwhile."""

    async def story():
        url = broker.url()
        async with running(tmp_path / "a", postgres_url, work=True, notification_url=url) as app:
            await bus_has_begun(app)
            await tell(app, fact(1))
            await logged(app)
        async with running(tmp_path / "b", postgres_url, work=True) as app:
            await tell(app, fact(2))
        async with running(tmp_path / "a", postgres_url, work=True, notification_url=url) as app:
            entries = await logged(app)
            with listening(broker.url("rabbit")) as consumer:
                told = await heard_by(consumer, 2)
        assert told == [as_heard(entry) for entry in entries]

    asyncio.run(story())


def test_a_bus_that_nobody_feeds_is_forgotten_after_a_while(tmp_path, postgres_url):
    async def story():
        time = [1000.0]
        async with running(tmp_path, postgres_url) as app:
            store = app.program.store
            await place.seq(store, "bus", begin_at=7, now=time[0])
            lease = "INSERT INTO leases (name, owner, until) VALUES (?, ?, ?)"
            await store.commit([Op(lease, ("events.bus", "another", 1500.0))])
            off = Unfollowed(store, "bus", after_s=100.0, clock=lambda: time[0])
            for time[0] in (1050.0, 1450.0, 1510.0, 1549.0):  # fed until 1450 at least
                await off.look()
                assert await standing(app)
            time[0] = 1551.0
            await off.look()
            assert await standing(app) is None

    asyncio.run(story())


async def without_queue(broker):
    connection = await aio_pika.connect(broker.url())
    async with connection, connection.channel() as channel:
        await channel.queue_delete(f"{IRON.name}.info")


@pytest.mark.parametrize("clear", [Rabbit.clear, without_queue], ids=["all", "the queue only"])
def test_a_queue_that_is_deleted_is_made_again(broker, clear):
    async def story():
        bus = Bus(broker.url(), Sorter([IRON], "info"))
        await bus.deal([an_entry(seq=1)])
        await clear(broker)
        with pytest.raises(BusUnavailable):
            await bus.deal([an_entry(seq=2)])
        await bus.deal([an_entry(seq=2)])
        await bus.close()
        with listening(broker.url("rabbit")) as consumer:
            (told,) = await heard_by(consumer, 1)
        assert told["message_id"] == an_entry(seq=2).message_id

    asyncio.run(story())


def test_what_the_broker_refuses_is_not_taken_for_sent(broker):
    """A queue that somebody else made, and which is full."""

    async def story():
        connection = await aio_pika.connect(broker.url())
        async with connection, connection.channel() as channel:
            full = {"x-max-length": 1, "x-overflow": "reject-publish"}
            await channel.declare_queue(f"{IRON.name}.info", durable=True, arguments=full)
            bus = Bus(broker.url(), Sorter([IRON], "info"))
            await bus.deal([an_entry(seq=1)])
            for _ in range(2):
                with pytest.raises(BusUnavailable):
                    await bus.deal([an_entry(seq=2)])
            queue = await channel.get_queue(f"{IRON.name}.info")
            await (await queue.get()).ack()
            await bus.deal([an_entry(seq=2)])
            await bus.close()
            assert (await queue.get(no_ack=True)).message_id == "m-2"

    asyncio.run(story())


def test_a_broker_that_does_not_answer_is_named_without_its_password():
    bus = Bus(f"rabbit://user:SECRET@127.0.0.1:{free_port()}/", Sorter([NOVA], "info"))
    with pytest.raises(BusUnavailable) as refused:
        asyncio.run(bus._open())
    said = str(refused.value)
    assert re.match(r"no broker answers at 127\.0\.0\.1:\d+: .*[Rr]efused.*; check ", said), said
    assert "SECRET" not in said
    assert "Error" not in said


class Halting:
    """A connection to a broker that gives no channels."""

    def __init__(self):
        self.is_open = True

    def channel(self, **_):
        return self

    async def initialize(self):
        raise AMQPError("channels are not to be had")

    async def close(self):
        self.is_open = False


def test_brokers_that_let_us_in_and_no_further_are_let_go_of(monkeypatch):
    made = []

    async def connect(_url):
        made.append(Halting())
        return made[-1]

    monkeypatch.setattr(aio_pika, "connect", connect)
    with pytest.raises(BusUnavailable, match="channels are not to be had"):
        asyncio.run(Bus("rabbit://u:p@h1,u:p@h2/", Sorter([IRON], "info")).deal([an_entry()]))
    assert [one.is_open for one in made] == [False, False]


def test_a_broker_that_makes_no_queue_is_not_waited_for_for_ever(monkeypatch):
    monkeypatch.setattr("siderite.events.bus.CONFIRM_S", 0.05)

    async def story():
        bus = Bus("rabbit://u:p@h/", Sorter([IRON], "info"))
        monkeypatch.setattr(bus, "_open", lambda: asyncio.sleep(0))
        monkeypatch.setattr(bus, "_is_there", lambda **_: asyncio.Event().wait())
        async with asyncio.timeout(10):
            with pytest.raises(BusUnavailable):
                await bus.deal([an_entry()])

    asyncio.run(story())


def test_of_a_broker_whose_name_nobody_knows_that_is_said(monkeypatch):
    async def connect(_url):
        raise AMQPConnectionError(-2, "Name or service not known")

    monkeypatch.setattr(aio_pika, "connect", connect)
    with pytest.raises(BusUnavailable, match="at nowhere: Name or service not known; check"):
        asyncio.run(Bus("rabbit://u:p@nowhere/", Sorter([NOVA], "info"))._open())


def test_the_envelope_is_oslo_messagings():
    outer = json.loads(envelope(an_entry()))
    assert sorted(outer) == ["oslo.message", "oslo.version"]
    assert outer["oslo.version"] == "2.0"
    assert json.loads(outer["oslo.message"]) == {
        "message_id": "m-1",
        "publisher_id": "ironic-api.here",
        "event_type": "baremetal.node.update.end",
        "priority": "INFO",
        "payload": {"n": 1},
        "timestamp": "1970-01-01 00:00:01.500000",
        "_context_request_id": "req-1",
        "_unique_id": "m-1",
    }


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("amqp://u:p@h:5672/v", ["amqp://u:p@h:5672/v"]),
        ("amqps://u:p@h/", ["amqps://u:p@h/"]),
        ("rabbit://u:p@h:5672/", ["amqp://u:p@h:5672/"]),
        ("rabbit://u:p@h:5672//", ["amqp://u:p@h:5672/%2F"]),
        ("rabbit://u:p@h:5672/v?ssl=1", ["amqps://u:p@h:5672/v"]),
        ("rabbit://u:p@h1:5672,u:p@h2:5672/v", ["amqp://u:p@h1:5672/v", "amqp://u:p@h2:5672/v"]),
    ],
)
def test_urls_are_taken_as_openstack_writes_them(url, shown):
    assert addresses(url) == shown
