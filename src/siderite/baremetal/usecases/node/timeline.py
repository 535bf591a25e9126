"""All that ever happened to a node, from the event log, where each fact was written in the commit
that made it true.
"""

from typing import Any

import msgspec

from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.timeline import Line
from siderite.baremetal.domain.timeline import line
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.node import find
from siderite.baremetal.usecases.node.find import Guard
from siderite.core import eventlog
from siderite.core.eventlog import Acted
from siderite.core.project import is_own
from siderite.core.who import Who

_PREFIX = "baremetal.node."
_UPDATE = _PREFIX + "update."
_LARGE = 4096
"""The length of the text of an object that is only parsed where it has changed."""


class _Payload(msgspec.Struct, rename={"data": "ironic_object.data"}):
    data: dict[str, msgspec.Raw]


_decode = msgspec.json.Decoder(_Payload).decode


class Moment(msgspec.Struct, frozen=True):
    """A line of the timeline, its number in the log, when it was, and who asked for it."""

    seq: int
    at: float
    line: Line
    user: str | None
    project: str | None
    request_id: str | None


async def page(
    ctx: Context, ident: str, who: Who, guard: Guard, *, marker: int | None, limit: int, back: bool
) -> tuple[Node, list[Moment]]:
    """A part of a node's timeline after (or with `back` before) a number."""
    node = await find.node(ctx, ident, who, guard)
    store = ctx.door.store
    found = await eventlog.of_resource(
        store, node.uuid, beyond=marker, limit=limit + 1 if back else limit, descending=back
    )
    if back:
        earlier = found[limit:]
        found = found[:limit]
    elif found:
        first = found[0].entry.seq
        earlier = await eventlog.of_resource(
            store, node.uuid, beyond=first, limit=1, descending=True
        )
    else:
        earlier = []
    actors = await _actors(ctx, node.uuid, found)
    in_order = [*reversed(found)] if back else found
    moments = _told(in_order, earlier[0] if earlier else None, actors, who)
    return node, [*reversed(moments)] if back else moments


async def _actors(
    ctx: Context, uuid: str, found: list[Acted]
) -> dict[str, tuple[str | None, str | None]]:
    """Who made the requests that these facts follow from."""
    asked = {
        item.entry.request_id
        for item in found
        if item.entry.request_id is not None and item.actor is None
    }
    known = await eventlog.actors(ctx.door.store, uuid, sorted(asked)) if asked else {}
    for item in found:
        if item.entry.request_id is not None and item.actor is not None:
            known[item.entry.request_id] = (item.actor, item.project)
    return known


def _told(
    found: list[Acted],
    earlier: Acted | None,
    actors: dict[str, tuple[str | None, str | None]],
    who: Who,
) -> list[Moment]:
    before = None if earlier is None else _data(earlier)
    last = earlier
    moments = []
    for item in found:
        entry, data = item.entry, _data(item)
        what, _, status = entry.event_type.removeprefix(_PREFIX).partition(".")
        user, project = actors.get(entry.request_id or "", (item.actor, item.project))
        asked = entry.request_id is not None
        begun = before if _is_end(item, last, who) else None
        told = line(what, status, data, before, asked=asked, begun=begun)
        moments.append(Moment(entry.seq, entry.at, told, user, project, entry.request_id))
        before, last = data, item
    return moments


def _is_end(item: Acted, last: Acted | None, who: Who) -> bool:
    """Whether it ends an update whose start is the last fact, both of what the caller may see: a
    node may have been another project's then.
    """
    if last is None:
        return False
    one, other = last.entry, item.entry
    return (
        (one.event_type, other.event_type) == (_UPDATE + "start", _UPDATE + "end")
        and one.request_id == other.request_id
        and (who.sees_all or all(is_own(who, _data(fact)["owner"]) for fact in (last, item)))
    )


def _data(item: Acted) -> dict[str, Any]:
    fields = _decode(item.entry.payload).data
    return {
        name: raw if _is_large(memoryview(raw)) else msgspec.json.decode(raw)
        for name, raw in fields.items()
    }


def _is_large(text: memoryview) -> bool:
    return text.nbytes > _LARGE and text[0] == ord("{")
