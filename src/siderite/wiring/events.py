"""The events room: every way out of the log."""

import asyncio
import contextlib
from collections.abc import Sequence
from functools import partial
from typing import Any

from siderite.core import eventlog
from siderite.core import sequencer
from siderite.core.config import Config
from siderite.core.eventlog import Entry
from siderite.core.guard import Guard
from siderite.core.guard import networks
from siderite.core.log import get_logger
from siderite.core.singleton import Singleton
from siderite.events import Discretion
from siderite.events import EventsService
from siderite.events import Ways
from siderite.events import monitor
from siderite.events import place
from siderite.events import search
from siderite.events.envelope import Sorter
from siderite.events.envelope import Topic
from siderite.events.follower import Follower
from siderite.events.follower import Unfollowed
from siderite.events.follower import job_of
from siderite.events.monitor import Monitor
from siderite.events.retention import Retention
from siderite.events.search import Search
from siderite.events.webhooks.sender import CHANGED
from siderite.events.webhooks.sender import Sender
from siderite.events.webhooks.web import Webhooks
from siderite.wiring.connections import most_connections
from siderite.wiring.part import Base
from siderite.wiring.part import Job
from siderite.wiring.part import Part

log = get_logger("wiring")

FACTS = "siderite_facts"
"""The signal to other processes that the log has grown."""
GATHER_S = 0.4
"""How long the index and the monitor wait for more facts, and a few times as long when there are
many: they can be a little late.
"""
PLACE_S, SHARED_PLACE_S = 0.05, 0.2
"""How long facts gather before they get their places, and the same while other processes give out
places too.
"""
BATCH = 6000
"""Facts that the index and the monitor deal with at a time: what is said of a machine several times
costs once.
"""


async def events(base: Base, rooms: Sequence[Part]) -> Part:
    """Pages, streams and the notification bus, for what the other rooms record."""
    known = tuple(glob for room in rooms for glob in room.event_types)
    jobs: list[Job] = []
    serving: list[Job] = [base.hub.run]
    if base.store.dialect != "sqlite":
        (jobs if base.role.works else serving).append(partial(_place_facts, base))
    if base.config.notification_url:
        jobs.append(_followed(base, _bus(base, rooms)))
    elif base.store.dialect == "sqlite":
        await base.store.commit([place.forgotten("bus")])
    else:
        jobs.append(Unfollowed(base.store, "bus").run)
    ways = _ways(base, known, rooms)
    jobs += _kept_up(base, ways)
    streams = max(1, most_connections(base.config) // 4)
    service = EventsService(
        base.hub, base.identity, known=known, ways=ways, streams=streams,
        discretion=_discretion(rooms),
    )  # fmt: skip
    measures = (ways.monitor.measure, ways.retention.measure)
    return Part(
        services={"events": service},
        heard={CHANGED: ways.webhooks.sender.look},
        jobs=jobs,
        serving=serving,
        measures=measures,
    )


def _ways(base: Base, known: Sequence[str], rooms: Sequence[Part]) -> Ways:
    config = base.config
    retention = Retention(
        base.store,
        keep_s=config.events_keep_s,
        keep_unread_s=config.events_keep_unread_s,
        history_s=config.webhook_history_s,
        remembered=[kind for room in rooms for kind in room.remembered],
    )
    watching = Monitor(base.store, overdue_s=config.operation_overdue_s)
    search = Search(
        base.store,
        fields=frozenset(name for room in rooms for name in room.fields),
        freely_named=[kind for room in rooms for kind in room.freely_named],
        discretion=_discretion(rooms),
    )
    return Ways(_webhooks(base, known, rooms), watching, search, retention)


def _discretion(rooms: Sequence[Part]) -> Discretion:
    return Discretion({kind: hide for room in rooms for kind, hide in room.hidden.items()})


def _kept_up(base: Base, ways: Ways) -> list[Job]:
    """What the ways out do beside answering."""
    store = base.store
    kept = ((search.NAME, ways.search.deal), (monitor.NAME, ways.monitor.deal))
    followers = [
        Follower(store, name, eventlog.heads, deal, batch=BATCH, gather_s=GATHER_S)
        for name, deal in kept
    ]
    return [
        *(_followed(base, follower) for follower in followers),
        Singleton(store, "events.webhooks", ways.webhooks.sender.run).run,
        Singleton(store, "events.retention", ways.retention.run).run,
    ]


def _webhooks(base: Base, known: Sequence[str], rooms: Sequence[Part]) -> Webhooks:
    guard = Guard(networks(base.config.webhook_allow))
    timeout_s = base.config.webhook_timeout_s
    sender = Sender(
        base.store, guard, timeout_s=timeout_s, give_up_s=base.config.webhook_give_up_s,
        discretion=_discretion(rooms),
    )  # fmt: skip
    base.hub.on_news(sender.wake)
    return Webhooks(base.store, guard, sender, known, timeout_s)


def _followed(base: Base, follower: Follower[Any]) -> Job:
    """The job of following, by one process at a time."""
    base.hub.on_news(follower.wake)
    return Singleton(base.store, job_of(follower.name), follower.run).run


def _bus(base: Base, rooms: Sequence[Part]) -> Follower[Entry]:
    bus = _transport(base.config, rooms)
    # What happened before somebody turned it on is history to its consumers.
    return Follower(base.store, "bus", eventlog.read, bus.deal, from_start=False, let_go=bus.close)


def _transport(config: Config, rooms: Sequence[Part]) -> Any:
    topics = [Topic(*room.topic, room.event_types) for room in rooms if room.topic is not None]
    sorter = Sorter(topics, config.notification_level)
    if config.notification_url.startswith(("amqp://", "amqps://", "rabbit://")):
        from siderite.events.bus import Bus

        return Bus(config.notification_url, sorter, queues=config.notification_queues)
    from siderite.events.bus_oslo import OsloBus

    return OsloBus(config.notification_url, sorter)


async def _place_facts(base: Base) -> None:
    """Give facts their place in the log soon after they are committed (PostgreSQL)."""
    wake = asyncio.Event()
    base.door.on_facts(wake.set)
    seen, is_shared = 0, False
    while True:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await wake.wait()
        wake.clear()
        try:
            before, last = await sequencer.place(base.store, FACTS)
            if last > before:
                base.hub.wake()
            is_shared, seen = before != seen, last
        except Exception as why:
            log.warning("cannot place facts in the log", error=repr(why))
            await asyncio.sleep(0.5)
        # Many facts at a time cost little more than one, and others may have done it for us.
        await asyncio.sleep(SHARED_PLACE_S if is_shared else PLACE_S)
