"""Virtual interfaces: attached to a node's ports and portgroups, where others read them.

Which port carries one is decided here and kept in `internal_info`; who plugs the network itself is
the network service, which reads it there. A node with the `noop` network has nothing to attach.
"""

from typing import Any

from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.port import VIF
from siderite.baremetal.domain.port import Port
from siderite.baremetal.domain.portgroup import Portgroup
from siderite.baremetal.store import NODES
from siderite.baremetal.store import PORTGROUPS
from siderite.baremetal.store import PORTS
from siderite.baremetal.usecases.beside import portgroups
from siderite.baremetal.usecases.beside import ports
from siderite.baremetal.usecases.beside.records import By
from siderite.baremetal.usecases.beside.records import Records
from siderite.baremetal.usecases.beside.records import of_node
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.node import find
from siderite.core.errors import Conflict
from siderite.core.errors import Invalid
from siderite.core.transition import Change

NO_NETWORK = "noop"

Carrier = Port | Portgroup


async def _carriers(ctx: Context, node: Node) -> list[Carrier]:
    kinds: tuple[Records[Any], ...] = (ports.RECORDS, portgroups.RECORDS)
    return [carrier for _, carrier in await of_node(ctx, node, kinds)]


async def listed(ctx: Context, ident: str, by: By) -> list[str]:
    """The virtual interfaces of a node."""
    node = await find.node(ctx, ident, by.who)
    if node.network_interface == NO_NETWORK:
        return []
    vifs = (carrier.tenant_vif for carrier in await _carriers(ctx, node))
    return [vif for vif in vifs if vif is not None]


async def attach(ctx: Context, ident: str, vif: str, only: str | None, by: By) -> None:
    """Attach one to a free port or portgroup of the node, or to the one whose UUID is `only`."""

    async def decide(change: Change) -> None:
        node = await find.node(ctx, ident, by.who, by.guard)
        if node.network_interface == NO_NETWORK:
            return
        carriers = await _carriers(ctx, node)
        taken = next((carrier for carrier in carriers if carrier.tenant_vif == vif), None)
        if taken is not None:
            raise Conflict(
                f"Unable to attach VIF because VIF {vif} is already attached to {_noun(taken)}"
                f" {taken.uuid}; detach it there first."
            )
        carrier = _free(carriers, only)
        if carrier is None:
            raise Invalid(
                f"Unable to attach VIF {vif}, not enough free physical ports: node {node.uuid} has"
                f" {len(carriers)} ports and portgroups in all; detach another or add a port."
            )
        _carry(change, carrier, {**carrier.internal_info, VIF: vif}, carrier.extra)
        # Others who attach to this node must know of it.
        change.put(NODES.swap(node, node.touched()))

    await ctx.door.attempt(by.cause, ident, decide)


async def detach(ctx: Context, ident: str, vif: str, by: By) -> None:
    """Detach one from the node."""

    async def decide(change: Change) -> None:
        node = await find.node(ctx, ident, by.who, by.guard)
        if node.network_interface == NO_NETWORK:
            return
        for carrier in await _carriers(ctx, node):
            if carrier.tenant_vif == vif:
                _release(change, carrier)
                change.put(NODES.hold(node))
                return
        raise Invalid(
            f"Unable to detach VIF {vif[:255]} from node {node.uuid} because it is not attached"
            " to it."
        )

    await ctx.door.attempt(by.cause, ident, decide)


async def release_all(ctx: Context, change: Change, node: Node) -> None:
    """An instance goes, and its virtual interfaces with it."""
    for carrier in await _carriers(ctx, node):
        if carrier.tenant_vif is not None:
            _release(change, carrier)


def _release(change: Change, carrier: Carrier) -> None:
    info = {key: value for key, value in carrier.internal_info.items() if key != VIF}
    extra = {key: value for key, value in carrier.extra.items() if key != "vif_port_id"}
    _carry(change, carrier, info, extra)


def _carry(change: Change, carrier: Carrier, info: dict[str, Any], extra: dict[str, Any]) -> None:
    changes = {"internal_info": info, "extra": extra}
    if isinstance(carrier, Port):
        change.put(PORTS.swap(carrier, carrier.changed(change.now, changes)))
    else:
        change.put(PORTGROUPS.swap(carrier, carrier.changed(change.now, changes)))


def _noun(carrier: Carrier) -> str:
    return "port" if isinstance(carrier, Port) else "portgroup"


def _free(carriers: list[Carrier], only: str | None) -> Carrier | None:
    """A portgroup with ports rather than a port, one that boots from the network rather than not.

    The ports of a portgroup stand for themselves only when one of them already does.
    """
    members = [port for port in carriers if isinstance(port, Port) and port.portgroup_uuid]
    split = {port.portgroup_uuid for port in members if port.vif is not None}
    grouped = {port.portgroup_uuid for port in members}

    def rank(carrier: Carrier) -> int:
        if isinstance(carrier, Portgroup):
            free = carrier.tenant_vif is None and carrier.uuid in grouped - split
            return 3 if free else 0
        if carrier.vif is not None or carrier.tenant_vif is not None:
            return 0
        if carrier.portgroup_uuid is not None and carrier.portgroup_uuid not in split:
            return 0
        return 2 if carrier.pxe_enabled else 1

    free = [carrier for carrier in carriers if rank(carrier) and only in (None, carrier.uuid)]
    return max(free, key=rank, default=None)
