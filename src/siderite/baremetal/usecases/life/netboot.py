"""What a machine that boots by network is to boot: the ramdisk that its node waits for, or its
disk; and which boots are over.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from siderite.baremetal.store import NODES
from siderite.baremetal.usecases.context import Context

_NODE = (
    "SELECT nodes.doc FROM nodes JOIN ports ON ports.node_uuid = nodes.uuid WHERE ports.address = ?"
)

_AT_ONCE = 200


class Netboot(msgspec.Struct, frozen=True):
    """Kernel, ramdisk and the kernel's parameters."""

    kernel: str
    ramdisk: str
    params: str


async def for_address(ctx: Context, mac: str) -> Netboot | None:
    """What the machine with this network address shall boot; None: its disk."""
    rows = await ctx.door.store.fetch(_NODE, (mac.lower(),))
    if not rows:
        return None
    record: Any = NODES.value(rows[0][0]).driver_internal_info.get("ramdisk") or {}
    boot = record.get("boot")
    if not boot or record.get("phase") not in ("on", "lost", "up"):
        return None
    return Netboot(boot["kernel"], boot["ramdisk"], boot["params"])


class Boot(msgspec.Struct, frozen=True):
    """One boot of a ramdisk: of which node, and the secret part of its files' address."""

    node: str
    secret: str


async def over(ctx: Context, boots: Sequence[Boot]) -> list[Boot]:
    """Those of these boots that no node knows of any more: it has another since, or none, or is
    gone itself. A record that cannot be read may know of any.
    """
    nodes = sorted({boot.node for boot in boots})
    known: dict[str, str | None] = {}
    for first in range(0, len(nodes), _AT_ONCE):
        some = nodes[first : first + _AT_ONCE]
        marks = ", ".join("?" * len(some))
        sql = f"SELECT uuid, doc FROM nodes WHERE uuid IN ({marks})"  # noqa: S608 - marks only
        rows = await ctx.door.store.fetch(sql, tuple(some))
        for (uuid, _), node in zip(rows, NODES.readable(row[1] for row in rows), strict=True):
            record: Any = None if node is None else node.driver_internal_info.get("ramdisk") or {}
            known[str(uuid)] = None if record is None else str(record.get("secret") or "")
    return [boot for boot in boots if known.get(boot.node, "") not in (None, boot.secret)]
