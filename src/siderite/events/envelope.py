"""A fact as OpenStack's notification bus carries it: the message of oslo.messaging's notifier, in
its envelope of version 2.0, so that existing consumers read it unchanged.
"""

from collections.abc import Sequence
from datetime import UTC
from datetime import datetime
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

import msgspec

from siderite.core.eventlog import Entry

LEVELS = ("debug", "info", "warning", "error", "critical")


class Topic(msgspec.Struct, frozen=True):
    """Where facts of some types go: an exchange, and a topic that is followed by the priority."""

    exchange: str
    name: str
    event_types: Sequence[str]
    """Globs."""


class _Message(msgspec.Struct, frozen=True):
    message_id: str
    publisher_id: str
    event_type: str
    priority: str
    payload: msgspec.Raw
    timestamp: str
    request_id: str | None = msgspec.field(name="_context_request_id")
    unique_id: str = msgspec.field(name="_unique_id")


class _Envelope(msgspec.Struct, frozen=True):
    version: str = msgspec.field(name="oslo.version")
    message: str = msgspec.field(name="oslo.message")


_encode = msgspec.json.Encoder().encode


def message(entry: Entry) -> bytes:
    """The inner message. `_unique_id` is what oslo.messaging's own consumers tell doubles by."""
    return _encode(
        _Message(
            entry.message_id,
            entry.publisher_id,
            entry.event_type,
            entry.priority,
            entry.payload,
            _timestamp(entry.at),
            entry.request_id,
            entry.message_id,
        )
    )


def envelope(entry: Entry) -> bytes:
    """What is published."""
    return _encode(_Envelope("2.0", message(entry).decode()))


def as_notifier_says(entry: Entry) -> dict[str, Any]:
    """The inner message as a value, for transports that wrap it themselves."""
    said: dict[str, Any] = msgspec.json.decode(message(entry))
    del said["_context_request_id"], said["_unique_id"]
    return said


@lru_cache(64)
def _timestamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


class Sorter:
    """Which facts go out, and where to."""

    def __init__(self, topics: Sequence[Topic], level: str) -> None:
        self._topics = topics
        self._wanted = frozenset(name.upper() for name in LEVELS[LEVELS.index(level) :])
        self._known: dict[str, Topic | None] = {}

    def topic(self, entry: Entry) -> Topic | None:
        """The fact's topic; None if it stays here."""
        if entry.priority not in self._wanted:
            return None
        if entry.event_type not in self._known:
            self._known[entry.event_type] = self._find(entry.event_type)
        return self._known[entry.event_type]

    def _find(self, event_type: str) -> Topic | None:
        for topic in self._topics:
            if any(fnmatchcase(event_type, glob) for glob in topic.event_types):
                return topic
        return None
