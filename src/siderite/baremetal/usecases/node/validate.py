"""Whether a node has what its interfaces need."""

from typing import Any

from siderite.baremetal.domain.node import INTERFACES
from siderite.baremetal.domain.node import Node
from siderite.baremetal.usecases.context import Context

_NEED_DRIVER_INFO = ("power", "management", "boot", "deploy", "inspect", "rescue")


def interfaces(ctx: Context, node: Node) -> dict[str, dict[str, Any]]:
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
        elif kind in _NEED_DRIVER_INFO:
            reason = card.shortcoming(node, kind)
        answer[kind] = {"result": True} if reason is None else {"result": False, "reason": reason}
    return answer
