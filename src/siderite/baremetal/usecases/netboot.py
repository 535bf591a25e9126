"""What a machine that boots by network is to boot: the ramdisk that its node waits for, or its
disk.
"""

from dataclasses import dataclass
from typing import Any

from siderite.baremetal.store import NODES
from siderite.baremetal.usecases.context import Context

_NODE = (
    "SELECT nodes.doc FROM nodes JOIN ports ON ports.node_uuid = nodes.uuid WHERE ports.address = ?"
)


@dataclass(frozen=True, slots=True)
class Netboot:
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
