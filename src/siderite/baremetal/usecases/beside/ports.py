"""Ports: when their wiring may be changed, and how they go with their portgroup."""

from typing import Any

from siderite.baremetal.domain import facts
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.node_machine import P
from siderite.baremetal.domain.port import REWIRABLE
from siderite.baremetal.domain.port import WIRING
from siderite.baremetal.domain.port import Port
from siderite.baremetal.store import PORTGROUPS
from siderite.baremetal.store import PORTS
from siderite.baremetal.usecases.beside.records import Found
from siderite.baremetal.usecases.beside.records import Records
from siderite.baremetal.usecases.context import Context
from siderite.core.errors import Conflict
from siderite.core.errors import Invalid
from siderite.core.errors import SideriteError
from siderite.core.store.table import Where
from siderite.core.transition import Change

_GROUPING = frozenset({"portgroup_uuid", "pxe_enabled", "physical_network"})


async def _may_create(
    ctx: Context, change: Change, found: Found[Port], changes: dict[str, Any]
) -> SideriteError | None:
    return await _why_not_grouped(ctx, change, found.value)


async def _may_update(
    ctx: Context, change: Change, found: Found[Port], changes: dict[str, Any]
) -> SideriteError | None:
    refusal = why_not_moved("port", found.value.uuid, found.home, changes)
    if refusal is not None:
        return refusal
    rewired = sorted(WIRING & set(changes))
    state = found.home.provision_state
    if rewired and state not in REWIRABLE and not found.home.maintenance:
        return Conflict(
            f"Port {found.value.uuid} can not have {', '.join(rewired)} updated while node"
            f" {found.home.uuid} is in state {state}; bring it to one of {', '.join(REWIRABLE)},"
            " or set maintenance."
        )
    if rewired and found.home.uuid == changes.get("node_uuid", found.value.node_uuid):
        return await _why_not_grouped(ctx, change, found.value.changed(0, changes))
    return None


def why_not_moved(
    noun: str, uuid: str, node: Node, changes: dict[str, Any]
) -> SideriteError | None:
    """An address in use stays, unless its node is in maintenance."""
    in_use = node.provision_state == P.ACTIVE or node.instance_uuid is not None
    if "address" in changes and in_use and not node.maintenance:
        return Conflict(
            f"The address of {noun} {uuid} can not be changed while node {node.uuid} is active"
            " or has an instance_uuid; undeploy it first, or set maintenance."
        )
    return None


async def _why_not_grouped(ctx: Context, change: Change, port: Port) -> SideriteError | None:
    """A port fits into its portgroup, if it is in one."""
    if port.portgroup_uuid is None:
        return None
    group = await PORTGROUPS.get(ctx.door.store, port.portgroup_uuid)
    if group is None:
        raise Invalid(
            f"Portgroup {port.portgroup_uuid} could not be found; `baremetal port group list`"
            " shows those there are."
        )
    if group.node_uuid != port.node_uuid:
        raise Invalid(
            f"Portgroup {group.uuid} belongs to node {group.node_uuid}, the port to"
            f" {port.node_uuid}; they must be of one node."
        )
    change.put(PORTGROUPS.hold(group))
    if port.pxe_enabled and not group.standalone_ports_supported:
        return Conflict(
            f"Port {port.uuid} can not have pxe_enabled: portgroup {group.uuid} does not support"
            " standalone ports; set pxe_enabled to false."
        )
    for other in await in_group(ctx, group.uuid):
        if other.uuid != port.uuid and other.physical_network != port.physical_network:
            return Conflict(
                f"The ports of portgroup {group.uuid} are on physical network"
                f" {other.physical_network}, this one on {port.physical_network}; they must be on"
                " the same."
            )
    return None


async def in_group(ctx: Context, portgroup: str) -> list[Port]:
    """The ports of a portgroup."""
    return await PORTS.find(ctx.door.store, Where("portgroup_uuid = ?", (portgroup,)))


async def _may_remove(
    ctx: Context, change: Change, found: Found[Port], changes: dict[str, Any]
) -> SideriteError | None:
    if found.value.vif is None or found.home.maintenance:
        return None
    return Conflict(
        f"Cannot delete the port {found.value.uuid} as it is bound to VIF {found.value.vif} for"
        " use; detach that first, or set the node's maintenance."
    )


RECORDS = Records(
    kind=Port,
    table=PORTS,
    facts=facts.PORT,
    command="port",
    of_node=True,
    unique={
        "address": "A port with MAC address {0.address} already exists; a MAC address belongs to"
        " one port only, so look for it with `baremetal port list --address`.",
        "name": "A port with name {0.name} already exists; choose another name.",
    },
    touches=_GROUPING,
    may_create=_may_create,
    may_update=_may_update,
    may_remove=_may_remove,
)
