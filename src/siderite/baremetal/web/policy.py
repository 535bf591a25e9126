"""Who may do what: one table, by the policy that a route names.

Administrators and services may do everything but where a rule says otherwise. Others act on nodes
that their project owns or has on loan; what they may not see is not there for them (404). A token
for no project, as that of a domain, is refused, as nothing would be theirs.
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol

import msgspec

from siderite.baremetal.domain.node import Node
from siderite.core.errors import Forbidden
from siderite.core.project import is_own
from siderite.core.project import need_project
from siderite.core.who import Who


class Rule(msgspec.Struct, frozen=True):
    """The role that a caller needs, whether a node's lessee has a say, and whether it takes
    somebody who sees all projects.
    """

    role: str
    lessee: bool = True
    system: bool = False


def _admins(noun: str, read: Rule) -> dict[str, Rule]:
    """What administrators keep and others at most read."""
    return {f"{noun}:read": read} | {
        f"{noun}:{action}": Rule("admin") for action in ("create", "update", "delete")
    }


RULES = {
    "node:read": Rule("reader"),
    "node:create": Rule("admin"),
    "node:delete": Rule("admin"),
    "node:validate": Rule("member"),
    "node:update": Rule("member", lessee=False),
    "node:update:instance": Rule("member"),
    "node:maintenance": Rule("member", lessee=False),
    "node:provision": Rule("member"),
    "node:provision:steps": Rule("member", lessee=False),
    "node:power": Rule("member"),
    "node:management:read": Rule("reader", lessee=False),
    "node:firmware:read": Rule("reader"),
    "node:management": Rule("member", lessee=False),
    "node:console": Rule("member"),
    "driver:vendor": Rule("admin"),
    "network_event:post": Rule("admin"),
    **_admins("port", Rule("reader")),
    **_admins("portgroup", Rule("reader")),
    **_admins("volume", Rule("reader")),
    **_admins("chassis", Rule("reader", system=True)),
    **_admins("deploy_template", Rule("reader", system=True)),
    **_admins("inspection_rule", Rule("reader", system=True)),
    **_admins("hook", Rule("reader", system=True)),
    "hold:read": Rule("reader"),
    "hold:answer": Rule("member", lessee=False),
    "runbook:read": Rule("reader"),
    "runbook:create": Rule("member"),
    "runbook:update": Rule("member"),
    "runbook:delete": Rule("member"),
    "runbook_trait:read": Rule("reader"),
    "runbook_trait:update": Rule("member"),
    "allocation:read": Rule("reader"),
    "allocation:create": Rule("member"),
    "allocation:update": Rule("member"),
    "allocation:delete": Rule("member"),
    "trait:read": Rule("reader"),
    "trait:update": Rule("member", lessee=False),
    "vif:read": Rule("reader"),
    "vif:update": Rule("member"),
    "shard:read": Rule("reader", system=True),
    "conductor:read": Rule("reader", system=True),
    "driver:read": Rule("reader"),
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


def check_project(policy: str, who: Who) -> None:
    """Refuse a token for no project, unless it sees all of them."""
    if not who.sees_all:
        need_project(who, f"{policy} is refused")


class Owned(Protocol):
    """What may belong to a project: a node, or a record that belongs to no node."""

    @property
    def uuid(self) -> str: ...
    @property
    def owner(self) -> str | None: ...


def guard(policy: str, who: Who) -> Callable[[Owned], None]:
    """What use cases ask before they change something."""
    return partial(check_owner, policy, who)


def check_owner(policy: str, who: Who, owned: Owned) -> None:
    """Refuse a caller who sees something but may not do this to it."""
    rule = RULES[policy]
    if who.sees_all or is_own(who, owned.owner):
        return
    if rule.lessee and is_own(who, getattr(owned, "lessee", None)):
        return
    noun = "node" if isinstance(owned, Node) else policy.partition(":")[0].replace("_", " ")
    raise Forbidden(
        f"{policy} is for the owner of {noun} {owned.uuid}; ask them, or an administrator."
    )
