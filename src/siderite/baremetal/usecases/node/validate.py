"""Whether a node has what its interfaces need."""

from typing import Any

from siderite.baremetal.domain.driver_card import DriverCard
from siderite.baremetal.domain.node import INTERFACES
from siderite.baremetal.domain.node import Node
from siderite.baremetal.usecases.beside import templates
from siderite.baremetal.usecases.context import Context
from siderite.core.errors import Invalid

_NEED_DRIVER_INFO = ("power", "management", "boot", "inspect", "rescue")


async def interfaces(ctx: Context, node: Node) -> dict[str, dict[str, Any]]:
    """For each interface but vendor's: whether it can be used, and if not, why."""
    card = ctx.cards.get(node.driver)
    answer: dict[str, dict[str, Any]] = {}
    for kind in INTERFACES:
        if kind == "vendor":
            continue
        reason = None
        if card is None:
            reason = f"There is no driver {node.driver}."
        elif not card.supports(node, kind):
            reason = f"Driver {node.driver} does not support {kind} (disabled or not implemented)."
        elif kind == "deploy":
            reason = why_not_deployed(card, node) or await _why_not_by_templates(ctx, node)
        elif kind in _NEED_DRIVER_INFO:
            reason = card.shortcoming(node, kind)
        answer[kind] = {"result": True} if reason is None else {"result": False, "reason": reason}
    return answer


def why_not_deployed(card: DriverCard, node: Node) -> str | None:
    """Why no instance could be brought onto the node now."""
    wanted = node.instance_info.get("traits")
    each = wanted if isinstance(wanted, list) else ()
    missing = ", ".join(str(trait) for trait in each if trait not in node.traits)
    if missing:
        return f"instance_info.traits asks for {missing}, which the node does not have."
    return card.shortcoming(node, "deploy")


async def _why_not_by_templates(ctx: Context, node: Node) -> str | None:
    try:
        await templates.steps_for(ctx, node)
    except Invalid as why:
        return why.sentence
    return None
