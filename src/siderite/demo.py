"""A simulated fleet to look at: nodes in racks, in all walks of life."""

import asyncio

from siderite.baremetal.drivers.simulated.machines import Machines
from siderite.baremetal.drivers.simulated.scripts import Script
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.life import provision
from siderite.baremetal.usecases.life.provision import Ask
from siderite.baremetal.usecases.node import enrol
from siderite.baremetal.usecases.node import find
from siderite.baremetal.usecases.node import maintenance
from siderite.core.errors import SideriteError
from siderite.core.log import get_logger
from siderite.core.store.table import Page
from siderite.core.transition import Cause
from siderite.core.who import Who

log = get_logger("demo")

WHO = Who("", "demo", None, None, frozenset({"admin"}), system=True)
PER_RACK = 20
BEHAVIOUR = Script(
    latency_s={
        "power": (0.2, 1.5),
        "deploy.write_image": (2.0, 6.0),
        "clean": (0.5, 3.0),
        "inspect": (1.0, 3.0),
        "rescue": (1.0, 3.0),
        "*": (0.05, 0.3),
    },
    ramdisk=True,
)
"""Machines that take their time, with ramdisks that call back."""


async def fill(ctx: Context, machines: Machines, count: int) -> None:
    """Make the fleet in an empty database, or go on where a process that did was killed, and bring
    its nodes to life.
    """
    fleet = [_fields(number) for number in range(count)]
    names = [fields["name"] for fields in fleet]
    there = await find.page(ctx, "uuid, name, provision_state", [], Page(count + 1), WHO)
    is_whole = len(there) >= count and any(row[2] != "enroll" for row in there)
    if is_whole or [row[1] for row in there] != names[: len(there)]:
        return
    if "all" not in machines.scripts.every():
        machines.scripts.set("all", BEHAVIOUR)
    cause = Cause(None, "demo")
    uuids = [str(row[0]) for row in there]
    for fields in fleet[len(there) :]:
        uuids.append((await enrol.create(ctx, fields, available=False, cause=cause)).uuid)
    log.info("made a simulated fleet", nodes=count)
    await asyncio.gather(*(_live(ctx, uuid, n, cause) for n, uuid in enumerate(uuids)))


def _fields(number: int) -> dict[str, object]:
    rack = f"r{number // PER_RACK + 1:02}"
    return {
        "driver": "fake-hardware",
        "name": f"{rack}-n{number % PER_RACK + 1:02}",
        "driver_info": {"rack": rack},
        "properties": {
            "cpus": "32",
            "memory_mb": "131072",
            "local_gb": "960",
            "cpu_arch": "x86_64",
        },
        "resource_class": "baremetal-large" if number % 4 == 0 else "baremetal",
        "description": f"simulated machine in rack {rack}",
    }


async def _live(ctx: Context, uuid: str, number: int, cause: Cause) -> None:
    """One node's way: most become available, many of them active, some stop earlier."""
    verbs = ["manage", "provide", "active"][: (0, 1, 2, 2, 3, 3, 3, 3, 3, 3)[number % 10]]
    settled = {"manage": "manageable", "provide": "available", "active": "active"}
    try:
        for verb in verbs:
            await provision.ask(ctx, uuid, Ask(verb), who=WHO, cause=cause)
            if not await _reaches(ctx, uuid, settled[verb]):
                return
        if number % 37 == 5:  # noqa: PLR2004 - a few, spread out
            await maintenance.set_maintenance(
                ctx, uuid, on=True, reason="fan replacement", who=WHO, cause=cause
            )
    except SideriteError as why:
        log.info("a demo node went its own way", node=uuid, why=why.sentence)


async def _reaches(ctx: Context, uuid: str, state: str) -> bool:
    for _ in range(600):
        node = await find.node(ctx, uuid, WHO)
        if node.provision_state == state:
            return True
        if node.target_provision_state is None or "failed" in node.provision_state:
            return False
        await asyncio.sleep(0.2)
    return False
