"""A node's history as clients read it: its facts, told in words.

Nothing is recorded for it: the event log has the facts already, each in the commit that made it
true.
"""

import msgspec

from siderite.baremetal.domain.node import Node
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.node import find
from siderite.baremetal.usecases.node.find import Guard
from siderite.core import eventlog
from siderite.core.errors import NotFound
from siderite.core.eventlog import Entry
from siderite.core.times import iso
from siderite.core.who import Who

MOST = 300
"""How many entries of a node are shown."""

_PREFIX = "baremetal.node."
_KINDS = {
    "create.end": "enrolment",
    "provision_set.start": "provisioning",
    "provision_set.end": "provisioning",
    "provision_set.success": "provisioning",
    "provision_set.error": "provisioning",
    "power_set.end": "power",
    "power_set.error": "power",
    "power_state_corrected.success": "power",
    "maintenance_set.end": "maintenance",
    "console_set.end": "console",
    "console_set.error": "console",
    "console_restore.end": "console",
    "console_restore.error": "console",
    "console_stop.end": "console",
}
"""The facts that are history, and what they are about."""
_TYPES = tuple(_PREFIX + name for name in _KINDS)
_UPDATES = (f"{_PREFIX}update.start", f"{_PREFIX}update.end")
"""Of these, those that changed the maintenance are history: it comes with other fields, too."""
_Actor = tuple[str | None, str | None]
_NOBODY: _Actor = (None, None)


class _Data(msgspec.Struct):
    maintenance: bool
    maintenance_reason: str | None
    console_enabled: bool
    last_error: str | None
    provision_state: str
    target_provision_state: str | None
    power_state: str | None
    previous_provision_state: str | None = None
    event: str | None = None
    to_power: str | None = None
    from_power: str | None = None


class _Payload(msgspec.Struct, rename={"data": "ironic_object.data"}):
    """What of a payload is looked at: most of it may be large, and is passed over."""

    data: _Data


_decode = msgspec.json.Decoder(_Payload).decode


class Happened(msgspec.Struct, frozen=True):
    """One entry."""

    uuid: str
    created_at: str
    severity: str
    event: str
    event_type: str
    conductor: str
    user: str | None
    project: str | None
    state: str | None
    target: str | None
    duration_seconds: int | None


async def entries(ctx: Context, ident: str, who: Who, guard: Guard) -> tuple[Node, list[Happened]]:
    """What happened to a node, the oldest first."""
    node = await find.node(ctx, ident, who, guard)
    found = await eventlog.latest(ctx.door.store, node.uuid, _TYPES, MOST)
    updates = await eventlog.latest(ctx.door.store, node.uuid, _UPDATES, MOST)
    found = sorted([*found, *_of_maintenance(updates)], key=lambda entry: entry.seq)[-MOST:]
    requests = sorted({entry.request_id for entry in found if entry.request_id is not None})
    actors = await eventlog.actors(ctx.door.store, node.uuid, requests) if requests else {}
    began: float | None = None
    told = []
    for entry in found:
        name = entry.event_type.removeprefix(_PREFIX)
        took = None
        if name == "provision_set.start":
            began = entry.at
        elif name in ("provision_set.end", "provision_set.error") and began is not None:
            took, began = round(entry.at - began), None
        told.append(_happened(entry, name, took, actors.get(entry.request_id or "", _NOBODY)))
    return node, told


def _of_maintenance(updates: list[Entry]) -> list[Entry]:
    """The ends of those updates whose start still had the other."""
    told = []
    before = None
    for entry in updates:
        after = _decode(entry.payload).data.maintenance
        if entry.event_type == _UPDATES[0]:
            before = after
        elif before is not None and after is not before:
            told.append(entry)
    return told


async def entry(
    ctx: Context, ident: str, uuid: str, who: Who, guard: Guard
) -> tuple[Node, Happened]:
    """One of them."""
    node, told = await entries(ctx, ident, who, guard)
    for happened in told:
        if happened.uuid == uuid:
            return node, happened
    raise NotFound(f"Node {node.uuid} has no history entry {uuid[:80]!r}.")


def _happened(entry: Entry, name: str, took: int | None, who: _Actor) -> Happened:
    data = _decode(entry.payload).data
    return Happened(
        uuid=entry.message_id,
        created_at=iso(entry.at),
        severity=entry.priority,
        event=_words(name, data),
        event_type=_KINDS.get(name, "maintenance"),
        conductor=entry.publisher_id.partition(".")[2],
        user=who[0],
        project=who[1],
        state=data.provision_state,
        target=data.target_provision_state,
        duration_seconds=took,
    )


def _words(name: str, data: _Data) -> str:
    action, _, status = name.partition(".")
    if status == "error":
        return str(data.last_error or f"{action} failed")
    match action:
        case "provision_set":
            before, after = data.previous_provision_state, data.provision_state
            return f"Moved from {before} to {after} by {data.event}"
        case "power_set":
            return f"Power changed to {data.power_state} ({data.to_power} was asked for)"
        case "power_state_corrected":
            known = f"not {data.from_power}" if data.from_power else "which was not known"
            return f"Power found to be {data.power_state}, {known}"
        case "maintenance_set" | "update" if data.maintenance:
            return f"Maintenance set: {data.maintenance_reason or 'no reason given'}"
        case "maintenance_set" | "update":
            return "Maintenance cleared"
        case "create":
            return "Enrolled"
        case _:
            on = "on" if data.console_enabled else "off"
            return f"Console {action.removeprefix('console_')}: it is {on}"
