"""Who may do what: one table, by the policy that a route names.

Administrators and services may do everything but where a rule says otherwise. Others act on nodes
that their project owns or has on loan; what they may not see is not there for them (404).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from siderite.baremetal.domain.node import Node
from siderite.core.errors import Forbidden
from siderite.core.who import Who


@dataclass(frozen=True, slots=True)
class Rule:
    """The role that a caller needs, whether a node's lessee has a say, and whether it takes
    somebody who sees all projects.
    """

    role: str
    lessee: bool = True
    system: bool = False


RULES = {
    "node:read": Rule("reader"),
    "node:create": Rule("admin"),
    "node:delete": Rule("admin"),
    "node:update": Rule("member", lessee=False),
    "node:maintenance": Rule("member", lessee=False),
    "node:provision": Rule("member"),
    "node:power": Rule("member"),
    "node:management:read": Rule("reader", lessee=False),
    "node:management": Rule("member", lessee=False),
    "node:console": Rule("member"),
    "port:read": Rule("reader"),
    "port:create": Rule("admin"),
    "port:update": Rule("admin"),
    "port:delete": Rule("admin"),
    "chassis:read": Rule("reader", system=True),
    "chassis:create": Rule("admin"),
    "chassis:update": Rule("admin"),
    "chassis:delete": Rule("admin"),
}

_IMPLIED = {
    "reader": ("reader", "member", "admin", "service"),
    "member": ("member", "admin", "service"),
    "admin": ("admin", "service"),
}


def check(policy: str, who: Who) -> None:
    """Refuse a caller whose roles can never suffice."""
    rule = RULES[policy]
    if not who.roles.intersection(_IMPLIED[rule.role]):
        raise Forbidden(f"{policy} needs the role {rule.role}; ask an administrator for it.")
    if rule.system and not who.sees_all:
        raise Forbidden(
            f"{policy} is for those who see all projects; ask an administrator to look."
        )


def guard(policy: str, who: Who) -> Callable[[Node], None]:
    """What use cases ask before they change a node."""
    return partial(check_node, policy, who)


def check_node(policy: str, who: Who, node: Node) -> None:
    """Refuse a caller who sees the node but may not do this to it."""
    rule = RULES[policy]
    if who.sees_all:
        return
    if who.project_id == node.owner or (rule.lessee and who.project_id == node.lessee):
        return
    raise Forbidden(
        f"{policy} is for the owner of node {node.uuid}; ask them, or an administrator."
    )
