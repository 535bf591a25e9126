"""A fact as readers get it: in a page, and as a server-sent event."""

from collections.abc import Sequence
from typing import get_type_hints

import msgspec

from siderite.core import shape
from siderite.core.eventlog import Entry
from siderite.core.times import iso


class _Resource(msgspec.Struct, frozen=True):
    type: str
    id: str


class _Event(msgspec.Struct, frozen=True):
    seq: int
    event_type: str
    time: str
    publisher_id: str
    priority: str
    message_id: str
    request_id: str | None
    resource: _Resource
    payload: msgspec.Raw


class _Page(msgspec.Struct, frozen=True):
    events: list[_Event]
    next: int


_encode = msgspec.json.Encoder().encode


def _event(entry: Entry) -> _Event:
    return _Event(
        seq=entry.seq,
        event_type=entry.event_type,
        time=iso(entry.at),
        publisher_id=entry.publisher_id,
        priority=entry.priority,
        message_id=entry.message_id,
        request_id=entry.request_id,
        resource=_Resource(entry.resource_type, entry.resource),
        payload=entry.payload,
    )


def page(entries: Sequence[Entry], reached: int) -> bytes:
    """The facts, and the number to go on from."""
    return _encode(_Page([_event(entry) for entry in entries], reached))


def form() -> shape.Json:
    """The form of a page; what an event says is told in the catalogue of events."""
    entry = {name: shape.typed(kind) for name, kind in get_type_hints(_Event).items()
             if name not in ("payload", "resource")}  # fmt: skip
    entry |= {"payload": shape.OBJECT, "resource": shape.wire(_Resource("", ""))}
    item = shape.record(entry, list(entry))
    return shape.record(
        {"events": {"type": "array", "items": item}, "next": {"type": "integer"}},
        ["events", "next"],
    )


def event(entry: Entry) -> bytes:
    """One fact by itself."""
    return _encode(_event(entry))


def frame(entry: Entry) -> bytes:
    """A server-sent event. A line break in JSON is only ever space between its parts."""
    data = event(entry).replace(b"\n", b" ").replace(b"\r", b" ")
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (entry.seq, entry.event_type.encode(), data)


def alive(reached: int) -> bytes:
    """Nothing new, but somebody is there: a comment, and the number to go on from, which in a
    filtered stream is further than the last event's.
    """
    return b": alive\nid: %d\n\n" % reached
