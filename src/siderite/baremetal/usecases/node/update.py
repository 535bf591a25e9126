"""A node's fields are changed by a client, within what its state allows."""

from collections.abc import Callable
from typing import Any

import msgspec

from siderite.baremetal.domain import facts
from siderite.baremetal.domain import watch_facts
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.node_machine import CHANGEABLE_WHILE_MOVING
from siderite.baremetal.domain.node_machine import P
from siderite.baremetal.domain.power_truth import POWER_FAILURE
from siderite.baremetal.domain.power_truth import with_hush
from siderite.baremetal.domain.steps import serves_its_parent
from siderite.baremetal.store import NODES
from siderite.baremetal.usecases.beside import allocations
from siderite.baremetal.usecases.beside import chassis
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.life import cut_short
from siderite.baremetal.usecases.machine import console
from siderite.baremetal.usecases.node import find
from siderite.baremetal.usecases.node.enrol import announce_failure
from siderite.baremetal.usecases.node.enrol import duplicate
from siderite.baremetal.usecases.node.enrol import put_below
from siderite.baremetal.usecases.node.find import Guard
from siderite.baremetal.usecases.node.refit import INTERFACE_FIELDS
from siderite.baremetal.usecases.node.refit import refitted
from siderite.baremetal.usecases.power import power_schedule
from siderite.baremetal.usecases.power import tell_compute
from siderite.core import work
from siderite.core.errors import Busy
from siderite.core.errors import Conflict
from siderite.core.errors import Forbidden
from siderite.core.errors import Invalid
from siderite.core.errors import NotAcceptable
from siderite.core.errors import SideriteError
from siderite.core.store import Duplicate
from siderite.core.transition import Cause
from siderite.core.transition import Change
from siderite.core.who import Who

LONGEST_NAME = 255
"""Of an instance."""

HARMLESS = frozenset({"extra", "description", "name"})
"""Fields that no work reads: they may be changed in any state."""

_ACCESS = (
    "_username", "_password", "_verify_ca", "_auth_type", "_priv_level", "_cipher_suite",
)  # fmt: skip
"""How keys of `driver_info` end that say how one gets into a BMC, not which machine that is: they
may be changed in any state, lest work that is no longer let in waits in vain.
"""

_READ_AGAIN = frozenset({"maintenance", "power_policy", "driver_info", "driver"})
"""Fields after whose change the power may well be read otherwise than before."""

_DRIVEN_BY = INTERFACE_FIELDS | {"driver", "driver_info", "parent_node"}
"""Fields that say how a node's machine is driven, and for whom."""

_OPERATORS = frozenset({"chassis_uuid", "conductor_group", "shard"})
"""Fields that say where in the cloud a node is, and which processes are to drive it."""

_REFITTABLE = frozenset({P.ENROLL, P.INSPECTING, P.INSPECTWAIT, P.MANAGEABLE, P.AVAILABLE})


class Update(msgspec.Struct, frozen=True):
    """What a client asks: how to get from the node to its new fields, and what it said along."""

    changes: Callable[[Node], dict[str, Any]]
    reset_interfaces: bool = False
    refuse_inspecting: bool = False
    """From 1.39 on a node being inspected is not changed."""
    only_removes_instance: bool = False


async def update(
    ctx: Context, ident: str, ask: Update, *, who: Who, cause: Cause, guard: Guard
) -> Node:
    """Change the node, or say why not; it announces both."""

    async def decide(change: Change) -> Node:
        node = await find.node(ctx, ident, who, guard)
        try:
            changes = await _decided(ctx, change, node, ask, who=who, guard=guard)
        except SideriteError as error:
            if not isinstance(error, Invalid | NotAcceptable):
                await announce_failure(ctx, cause, "update", node)
            raise
        if not changes:
            return node
        if console.changes_hands(node, changes):
            changes |= await _shut(ctx, change, node)
        if "driver_info" in changes and node.console_enabled:
            change.put(console.anew(node.uuid))
        after = node.changed(change.now, with_hush(node, changes))
        change.tell(facts.node_crud("update", "start", node))
        change.put(NODES.swap(node, after))
        change.tell(facts.node_crud("update", "end", after))
        change.tell(
            *watch_facts.settled(node, after), *watch_facts.policy_set(after, node.power_policy)
        )
        tell_compute.note(ctx, change, node, after)
        if "conductor_group" in changes:
            change.work(work.regroup(node.uuid, ctx.rules.pool(after), change.now))
        elif "driver_info" in changes:
            change.work(work.hasten(node.uuid, change.now))
        if _READ_AGAIN & set(changes):
            change.put(power_schedule.look_soon(node.uuid, change.now))
        return after

    try:
        return await ctx.door.attempt(cause, ident, decide)
    except Duplicate as clash:
        node = await find.node(ctx, ident, who)
        await announce_failure(ctx, cause, "update", node)
        raise duplicate(clash, node.changed(0, ask.changes(node))) from clash
    except Busy:
        await announce_failure(ctx, cause, "update", await find.node(ctx, ident, who))
        raise


async def _shut(ctx: Context, change: Change, node: Node) -> dict[str, Any]:
    """The console ends, or what would have switched it."""
    await cut_short.consoles(ctx, change, node)
    if not node.console_enabled:
        return {}
    change.put(console.forget(node.uuid))
    after = node.changed(change.now, {"console_enabled": False})
    change.tell(*(facts.console("console_stop", status, after) for status in ("start", "end")))
    return {"console_enabled": False}


async def _decided(
    ctx: Context, change: Change, node: Node, ask: Update, *, who: Who, guard: Guard
) -> dict[str, Any]:
    """The fields that change, if they may; what else becomes true is put into the change."""
    asked = ask.changes(node)
    changes = {field: value for field, value in asked.items() if value != getattr(node, field)}
    if asked.get("maintenance") and node.fault == POWER_FAILURE:
        changes["fault"] = None  # the power watch no longer ends what a user sets
    _check(node, changes, ask, who)
    changes = _consequences(ctx, node, changes, ask)
    if changes.get("chassis_uuid") is not None:
        await chassis.put_node_into(ctx, change, changes["chassis_uuid"])
    if changes.get("parent_node") is not None:
        above = changes["parent_node"]
        await put_below(ctx, change, node.uuid, above, who=who, guard=guard)
    if changes and node.allocation_uuid is not None:
        changes |= await _check_allocated(ctx, change, node, changes)
    return changes


async def _check_allocated(
    ctx: Context, change: Change, node: Node, changes: dict[str, Any]
) -> dict[str, Any]:
    """An allocation ends with the instance_uuid that it gave, and keeps the owner it chose by."""
    allocation = await allocations.of_node(ctx, node)
    owner = None if allocation is None else allocation.owner
    if "owner" in changes and owner not in (None, changes["owner"]):
        raise Conflict(
            f"Node {node.uuid} is allocated to its owner {owner}; remove allocation"
            f" {node.allocation_uuid} before the owner is changed."
        )
    if "instance_uuid" not in changes:
        return {}
    refusal = allocations.why_not_freed(str(node.allocation_uuid), node)
    if refusal is not None:
        raise refusal
    await allocations.end_with(ctx, change, node)
    left = {} if "instance_info" in changes else allocations.without_traits(node)
    return {"allocation_uuid": None, **left}


def _check(node: Node, changes: dict[str, Any], ask: Update, who: Who) -> None:
    state = node.provision_state
    _check_under_way(node, changes, ask)
    refit = sorted(INTERFACE_FIELDS & set(changes))
    refits = refit or "driver" in changes or ask.reset_interfaces
    if refits and state not in _REFITTABLE and not node.maintenance:
        what = ", ".join(refit) or "driver"
        raise Conflict(
            f"Node {node.uuid} can not have {what} updated in state {state};"
            f" bring it to one of {', '.join(sorted(_REFITTABLE))}, or set maintenance."
        )
    if "resource_class" in changes and state not in _REFITTABLE and node.resource_class is not None:
        raise Conflict(
            f"Node {node.uuid} can not have resource_class updated in state {state};"
            f" bring it to one of {', '.join(sorted(_REFITTABLE))}."
        )
    if changes.get("instance_uuid") is not None and node.instance_uuid is not None:
        raise Conflict(
            f"Node {node.uuid} is associated with instance {node.instance_uuid}; remove that first."
        )
    if changes.get("protected") and state not in (P.ACTIVE, P.RESCUE):
        raise Conflict(
            f"Node {node.uuid} can only be protected while active or in rescue, not {state}."
        )
    if changes.get("retired") and state == P.AVAILABLE:
        raise Conflict(f"Node {node.uuid} is available; `manage` it before it is retired.")
    carried = sorted({"driver", "console_interface"} & set(changes))
    if carried and node.console_enabled:
        raise Conflict(
            f"Node {node.uuid} has its console on; stop it before the {carried[-1]} is changed."
        )
    _check_kept(changes, who)
    _check_reasons(node, changes)


def _check_kept(changes: dict[str, Any], who: Who) -> None:
    """Refuse an owner what is for the operator of the cloud to decide. So is the lessee, whose
    images the node may then be given.
    """
    if ("owner" in changes or "lessee" in changes) and not who.is_admin:
        raise Forbidden("Only administrators change the owner or lessee of a node.")
    kept = sorted(_OPERATORS & set(changes))
    if kept and not who.sees_all:
        raise Forbidden(f"Only those who see all projects change the {kept[0]} of a node.")
    if changes.get("automated_clean") is False and not who.sees_all:
        raise Forbidden("Only those who see all projects turn off a node's automated_clean.")


def _check_under_way(node: Node, changes: dict[str, Any], ask: Update) -> None:
    """Refuse what work that is under way would trip over."""
    state = node.provision_state
    harmless = set(changes) <= HARMLESS or _lets_in(node, changes)
    freed = ask.only_removes_instance and node.maintenance
    if node.target_provision_state is not None and not harmless and not freed:
        inspecting = state == P.INSPECTING and ask.refuse_inspecting
        if state not in CHANGEABLE_WHILE_MOVING or inspecting:
            raise Conflict(
                f"Node {node.uuid} can not be updated while a state transition is in progress"
                f" ({state}, on its way to {node.target_provision_state}); try again when"
                f" it is done.",
                retry_after_s=5,
            )
    if _DRIVEN_BY & set(changes) and not harmless and serves_its_parent(node.driver_internal_info):
        raise Conflict(
            f"Node {node.uuid} runs a step for its parent {node.parent_node}; change how it is"
            " driven when that is done.",
            retry_after_s=5,
        )


def _lets_in(node: Node, changes: dict[str, Any]) -> bool:
    """Whether all that changes, beside what is harmless, is how one gets into the BMC."""
    if not set(changes) <= HARMLESS | {"driver_info"}:
        return False
    before, after = node.driver_info, changes["driver_info"]
    keys = (key for key in {*before, *after} if before.get(key) != after.get(key))
    return all(key.endswith(_ACCESS) for key in keys)


def _check_reasons(node: Node, changes: dict[str, Any]) -> None:
    for flag in ("protected", "retired"):
        reason = f"{flag}_reason"
        if changes.get(reason) is not None and not changes.get(flag, getattr(node, flag)):
            raise Invalid(f"{reason} can only be set together with {flag}.")


def _consequences(ctx: Context, node: Node, changes: dict[str, Any], ask: Update) -> dict[str, Any]:
    """What else changes with it."""
    changes = dict(changes)
    if ask.reset_interfaces or "driver" in changes or INTERFACE_FIELDS & set(changes):
        changes |= refitted(ctx.cards, node, changes, reset=ask.reset_interfaces)
    if changes.get("maintenance") is False:
        changes |= {"maintenance_reason": None, "fault": None}
    for flag in ("protected", "retired"):
        if changes.get(flag) is False:
            changes[f"{flag}_reason"] = None
    display = changes.get("instance_info", {}).get("display_name")
    if isinstance(display, str) and node.instance_name is None and "instance_name" not in changes:
        changes["instance_name"] = display[:LONGEST_NAME] or None
    return {field: value for field, value in changes.items() if value != getattr(node, field)}
