"""What is known of a machine beside its node: kept when a step or a verification finds it out."""

import contextlib
from collections.abc import Sequence

import msgspec

from siderite.baremetal.domain import details
from siderite.baremetal.domain import facts
from siderite.baremetal.domain.details import Inventory
from siderite.baremetal.domain.details import KnownFirmware
from siderite.baremetal.domain.details import KnownSetting
from siderite.baremetal.domain.hardware import Found
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.port import Port
from siderite.baremetal.store import NODES
from siderite.baremetal.store import PORTS
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.node import find
from siderite.baremetal.usecases.node.find import Guard
from siderite.core.errors import NotFound
from siderite.core.ids import new_uuid
from siderite.core.store import Duplicate
from siderite.core.store import Line
from siderite.core.store import Op
from siderite.core.times import iso
from siderite.core.transition import Cause
from siderite.core.transition import Change
from siderite.core.who import Who

_PUT = (
    "INSERT INTO node_details (node_uuid, kind, doc) VALUES (?, ?, ?)"
    " ON CONFLICT (node_uuid, kind) DO UPDATE SET doc = excluded.doc"
)
_GET = "SELECT doc FROM node_details WHERE node_uuid = ? AND kind = ?"
_KNOWN = "SELECT kind, doc FROM node_details WHERE node_uuid = ? AND kind <> 'inventory'"
_TAKEN = "SELECT address, node_uuid FROM ports WHERE address IN (%s)"
_TRIES = 3
_encode = msgspec.json.Encoder().encode
_SETTINGS = msgspec.json.Decoder(list[KnownSetting])
_FIRMWARE = msgspec.json.Decoder(list[KnownFirmware])
_INVENTORY = msgspec.json.Decoder(Inventory)


async def keep(ctx: Context, uuid: str, found: Found) -> None:
    """Keep what was found, and make the ports that the node lacks; again changes nothing more.
    Nothing is kept of a node that is gone.
    """
    if found == Found():
        return

    async def decide(change: Change) -> None:
        node = await NODES.get(ctx.door.store, uuid)
        if node is not None and not await put(ctx, change, uuid, found):
            change.put(NODES.hold(node))

    for _ in range(_TRIES):
        with contextlib.suppress(Duplicate):  # somebody made one of the ports just now
            return await ctx.door.attempt(Cause(), uuid, decide)


async def put(ctx: Context, change: Change, uuid: str, found: Found) -> bool:
    """The same, as a part of another change; whether that counts the node's version up."""
    now = iso(change.now)
    rows: Sequence[Line] = ()
    if found.bios is not None or found.firmware is not None:
        rows = await ctx.door.store.fetch(_KNOWN, (uuid,))
    docs = {str(row[0]): str(row[1]) for row in rows}
    if found.bios is not None:
        known = _SETTINGS.decode(docs.get("bios", "[]"))
        _put(change, uuid, "bios", known, details.settings(known, found.bios, now))
    if found.firmware is not None:
        parts = _FIRMWARE.decode(docs.get("firmware", "[]"))
        _put(change, uuid, "firmware", parts, details.firmware(parts, found.firmware, now))
    if found.inventory is not None:
        made = Inventory(found.inventory, found.plugin_data or {})
        _put(change, uuid, "inventory", None, made)
    return bool(found.ports) and await _make_ports(ctx, change, uuid, found.ports)


def _put(change: Change, uuid: str, kind: str, before: object, after: object) -> None:
    if after != before:
        change.put(Op(_PUT, (uuid, kind, _encode(after).decode()), 1))


async def _make_ports(ctx: Context, change: Change, uuid: str, macs: Sequence[str]) -> bool:
    """A port for each address that none has yet; the conductor announces them, and as a failure
    what another node has. Whether there was one to make.
    """
    wanted = details.mac_addresses(macs)
    marks = ", ".join("?" * len(wanted))
    rows = await ctx.door.store.fetch(_TAKEN % marks, wanted) if wanted else ()
    taken = {str(row[0]): row[1] for row in rows}
    node = await NODES.get(ctx.door.store, uuid)
    missing = [mac for mac in wanted if taken.get(mac) != uuid]
    if node is None or not missing:
        return False
    for mac in missing:
        port = Port(uuid=new_uuid(), node_uuid=uuid, address=mac, created_at=iso(change.now))
        if mac not in taken:
            change.put(PORTS.insert(port))
        for status in ("start", "error" if mac in taken else "end"):
            fact = facts.record_crud(
                facts.PORT, "create", status, port, node.owner, by=facts.CONDUCTOR
            )
            change.tell(fact)
    if taken.keys() >= set(missing):
        return False
    change.put(NODES.swap(node, node.touched()))
    return True


def forget(uuid: str) -> Op:
    """The node is gone, and all that with it."""
    return Op("DELETE FROM node_details WHERE node_uuid = ?", (uuid,))


async def settings(
    ctx: Context, ident: str, who: Who, guard: Guard
) -> tuple[Node, list[KnownSetting]]:
    """The BIOS settings of a node."""
    node = await find.node(ctx, ident, who, guard)
    return node, await _settings(ctx, node.uuid)


async def firmware(ctx: Context, ident: str, who: Who, guard: Guard) -> list[KnownFirmware]:
    """The firmware of a node."""
    node = await find.node(ctx, ident, who, guard)
    return await _firmware(ctx, node.uuid)


async def found_by_inspection(ctx: Context, uuid: str) -> Inventory | None:
    """What inspection found of a node, if it was inspected."""
    doc = await _doc(ctx, uuid, "inventory")
    return None if doc is None else _INVENTORY.decode(doc)


async def inventory(ctx: Context, ident: str, who: Who, guard: Guard) -> Inventory:
    """What inspection found."""
    node = await find.node(ctx, ident, who, guard)
    found = await found_by_inspection(ctx, node.uuid)
    if found is None:
        raise NotFound(
            f"There is no inventory of node {node.uuid}; inspect it first"
            f" (`baremetal node inspect {node.ident}`)."
        )
    return found


async def _settings(ctx: Context, uuid: str) -> list[KnownSetting]:
    doc = await _doc(ctx, uuid, "bios")
    return [] if doc is None else _SETTINGS.decode(doc)


async def _firmware(ctx: Context, uuid: str) -> list[KnownFirmware]:
    doc = await _doc(ctx, uuid, "firmware")
    return [] if doc is None else _FIRMWARE.decode(doc)


async def _doc(ctx: Context, uuid: str, kind: str) -> str | None:
    rows = await ctx.door.store.fetch(_GET, (uuid, kind))
    return str(rows[0][0]) if rows else None
