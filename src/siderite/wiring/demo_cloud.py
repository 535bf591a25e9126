"""A cloud to try: simulated hosts, flavors and an image, so that a server can be booted at once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from siderite.compute.drivers.simulated import Guests
from siderite.compute.drivers.simulated.scripts import Script
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.fleet import hosts
from siderite.compute.usecases.project import flavors
from siderite.compute.workers.host_watch import HostWatch
from siderite.core.errors import Conflict
from siderite.core.log import get_logger
from siderite.core.store import Duplicate
from siderite.core.transition import Cause
from siderite.image import Images
from siderite.wiring.own_images import SYSTEM

log = get_logger("demo")

HOSTS = 4
IMAGE = "7b4f1e52-6d0c-4c55-9a57-0d5ec0ffee01"
"""Always the same, so that it is made once."""
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
    """Make it all in an empty database, or go on where a process that did was killed.

    Hosts come last: whoever has them all, or others, has the rest.
    """
    names = [f"sim-{number}" for number in range(1, HOSTS + 1)]
    there = [host.name for host in await hosts.every(ctx)]
    if len(there) >= HOSTS or there != names[: len(there)]:
        return
    if "all" not in guests.scripts.every():
        guests.scripts.set("all", BEHAVIOUR)
    for ident, name, vcpus, ram, disk in FLAVORS:
        fields = {
            "flavorid": ident, "name": name, "vcpus": vcpus, "ram_mib": ram, "disk_gib": disk,
        }  # fmt: skip
        with suppress(Conflict):
            await flavors.create(ctx, fields, Cause())
    await _make_image(images)
    for name in names[len(there) :]:
        await hosts.add(ctx, name, "simulated", "", dict(SIZE))
    watch.look_now()
    log.info("made a simulated cloud", hosts=HOSTS, flavors=len(FLAVORS))


async def _make_image(images: Images) -> None:
    fields: dict[str, object] = {
        "uuid": IMAGE, "name": "tiny", "visibility": "public", "owner": None, "properties": {},
        "disk_format": "raw", "container_format": "bare",
    }  # fmt: skip
    with suppress(Conflict, Duplicate):
        await images.create(fields, who=SYSTEM, cause=Cause())
    await images.sweep()  # of an upload that broke off
    with suppress(Conflict):
        await images.upload(IMAGE, _disk(), who=SYSTEM, cause=Cause())


async def _disk() -> AsyncIterator[bytes]:
    await asyncio.sleep(0)
    yield b"siderite".ljust(510, b"\0") + b"\x55\xaa"
