"""Chassis: what is special about them, and nodes put into them."""

from typing import Any

from siderite.baremetal.domain import facts
from siderite.baremetal.domain.chassis import Chassis
from siderite.baremetal.store import CHASSIS
from siderite.baremetal.store import CHASSIS_CONTENTS
from siderite.baremetal.store import remove_chassis
from siderite.baremetal.store import take_place
from siderite.baremetal.usecases.beside.records import Found
from siderite.baremetal.usecases.beside.records import Records
from siderite.baremetal.usecases.context import Context
from siderite.core.errors import Invalid
from siderite.core.errors import SideriteError
from siderite.core.transition import Change


async def _keeps_its_uuid(
    ctx: Context, change: Change, found: Found[Chassis], changes: dict[str, Any]
) -> SideriteError | None:
    if "uuid" not in changes:
        return None
    return Invalid(
        f"Cannot overwrite UUID for an existing chassis, which is {found.value.uuid};"
        " create another one in its place."
    )


async def _is_empty(
    ctx: Context, change: Change, found: Found[Chassis], changes: dict[str, Any]
) -> SideriteError | None:
    uuid = found.value.uuid
    rows = await ctx.door.store.fetch(CHASSIS_CONTENTS, (uuid,))
    if not rows:
        raise RECORDS.missing(uuid)
    taken, nodes = (int(number or 0) for number in rows[0])
    if nodes:
        return Invalid(
            "Cannot complete the requested action because chassis"
            f" {uuid} contains nodes ({nodes}); take them out by their chassis_uuid first."
        )
    change.put(remove_chassis(found.value, taken))
    return None


RECORDS = Records(
    kind=Chassis,
    table=CHASSIS,
    facts=facts.CHASSIS,
    command="chassis",
    unique={},
    may_update=_keeps_its_uuid,
    may_remove=_is_empty,
    removes_itself=True,
)


async def put_node_into(ctx: Context, change: Change, uuid: str) -> None:
    """With this change a node comes into a chassis, which must be there."""
    if await CHASSIS.get(ctx.door.store, uuid) is None:
        raise Invalid(f"chassis_uuid: {RECORDS.missing(uuid).sentence}")
    change.put(take_place(uuid))
