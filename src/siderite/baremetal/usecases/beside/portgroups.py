"""Portgroups: when they may be changed, and that they are empty and free when they go."""

from typing import Any

from siderite.baremetal.domain import facts
from siderite.baremetal.domain.port import REWIRABLE
from siderite.baremetal.domain.port import VIF
from siderite.baremetal.domain.portgroup import Portgroup
from siderite.baremetal.store import PORTGROUPS
from siderite.baremetal.usecases.beside import ports
from siderite.baremetal.usecases.beside.records import Found
from siderite.baremetal.usecases.beside.records import Records
from siderite.baremetal.usecases.context import Context
from siderite.core.errors import Conflict
from siderite.core.errors import Invalid
from siderite.core.errors import SideriteError
from siderite.core.transition import Change

_WIRING = frozenset({"node_uuid", "mode", "properties", "physical_network"})


async def _may_update(
    ctx: Context, change: Change, found: Found[Portgroup], changes: dict[str, Any]
) -> SideriteError | None:
    group, node = found.value, found.home
    refusal = ports.why_not_moved("portgroup", group.uuid, node, changes)
    if refusal is not None:
        return refusal
    rewired = sorted(_WIRING & set(changes))
    if rewired and node.provision_state not in REWIRABLE and not node.maintenance:
        return Conflict(
            f"Portgroup {group.uuid} can not have {', '.join(rewired)} updated while node"
            f" {node.uuid} is in state {node.provision_state}; bring it to one of"
            f" {', '.join(REWIRABLE)}, or set maintenance."
        )
    members = []
    if "node_uuid" in changes or changes.get("standalone_ports_supported") is False:
        members = await ports.in_group(ctx, group.uuid)
    if "node_uuid" in changes and members:
        return Conflict(f"Portgroup {group.uuid} has ports; take them out before it is moved.")
    booting = [port.uuid for port in members if port.pxe_enabled]
    if booting:
        return Conflict(
            f"standalone_ports_supported of portgroup {group.uuid} can not be false while its"
            f" port {booting[0]} has pxe_enabled; set that to false first."
        )
    return None


async def _may_remove(
    ctx: Context, change: Change, found: Found[Portgroup], changes: dict[str, Any]
) -> SideriteError | None:
    group = found.value
    members = await ports.in_group(ctx, group.uuid)
    if members:
        return Invalid(
            f"Cannot complete the requested action because portgroup {group.uuid} contains"
            f" ports ({len(members)}); take them out by their portgroup_uuid first."
        )
    vif = group.internal_info.get(VIF)
    if vif is None or found.home.maintenance:
        return None
    return Conflict(
        f"Cannot delete the portgroup {group.uuid} as it is bound to VIF {vif} for use; detach that"
        " first, or set the node's maintenance."
    )


RECORDS = Records(
    kind=Portgroup,
    table=PORTGROUPS,
    facts=facts.PORTGROUP,
    command="port group",
    of_node=True,
    unique={
        "address": "A portgroup with MAC address {0.address} already exists; a MAC address"
        " belongs to one portgroup only.",
        "name": "A portgroup with name {0.name} already exists; choose another name.",
    },
    may_update=_may_update,
    may_remove=_may_remove,
)
