"""A cloud to try: simulated hosts, flavors and an image, so that a server can be booted at once."""

import asyncio
from collections.abc import AsyncIterator

from siderite.compute.drivers.simulated import Guests
from siderite.compute.drivers.simulated.scripts import Script
from siderite.compute.usecases import flavors
from siderite.compute.usecases import hosts
from siderite.compute.usecases.context import Context
from siderite.compute.workers.host_watch import HostWatch
from siderite.core.errors import Conflict
from siderite.core.log import get_logger
from siderite.core.transition import Cause
from siderite.image import Images
from siderite.wiring.own_images import SYSTEM

log = get_logger("demo")

HOSTS = 4
FLAVORS = (
    ("1", "m1.tiny", 1, 512, 1),
    ("2", "m1.small", 1, 2048, 20),
    ("3", "m1.medium", 2, 4096, 40),
    ("4", "m1.large", 4, 8192, 80),
)
SIZE = {"vcpus": "32", "ram_mib": "131072", "disk_gib": "4000"}
BEHAVIOUR = Script(
    latency_s={"spawn": (1.0, 3.0), "snapshot": (1.0, 2.0), "live_migrate": (1.0, 3.0), "*": 0.1},
    shutdown_s=1.0,
)


async def fill_cloud(ctx: Context, watch: HostWatch, guests: Guests, images: Images) -> None:
    """Make it all in an empty database."""
    if await hosts.every(ctx):
        return
    if "all" not in guests.scripts.every():
        guests.scripts.set("all", BEHAVIOUR)
    for number in range(1, HOSTS + 1):
        await hosts.add(ctx, f"sim-{number}", "simulated", "", dict(SIZE))
    watch.look_now()
    for ident, name, vcpus, ram, disk in FLAVORS:
        fields = {
            "flavorid": ident, "name": name, "vcpus": vcpus, "ram_mib": ram, "disk_gib": disk,
        }  # fmt: skip
        try:
            await flavors.create(ctx, fields, Cause())
        except Conflict:
            continue
    fields = {"name": "tiny", "visibility": "public", "owner": None, "properties": {},
              "disk_format": "raw", "container_format": "bare"}  # fmt: skip
    ident = await images.create(fields, who=SYSTEM, cause=Cause())
    await images.upload(ident, _disk(), who=SYSTEM, cause=Cause())
    log.info("made a simulated cloud", hosts=HOSTS, flavors=len(FLAVORS))


async def _disk() -> AsyncIterator[bytes]:
    await asyncio.sleep(0)
    yield b"siderite".ljust(510, b"\0") + b"\x55\xaa"
