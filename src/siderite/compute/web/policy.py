"""Who may do what: one table, by the policy that a route names.

Whose server it is, the lookup itself decides: what belongs to another project is not there for
anybody but administrators (404). The role says what they may do with what is theirs.
"""

from siderite.core.errors import Forbidden
from siderite.core.project import need_project
from siderite.core.who import Who

RULES = {
    "servers:read": "reader",
    "servers:create": "member",
    "servers:create:forced_host": "admin",
    "servers:update": "member",
    "servers:delete": "member",
    "servers:action": "member",
    "servers:admin_action": "admin",
    "servers:unshelve_to_host": "admin",
    "servers:all_projects": "admin",
    "servers:attributes": "admin",
    "servers:external_events": "service",
    "actions:read": "reader",
    "flavors:read": "reader",
    "flavors:manage": "admin",
    "images:read": "reader",
    "images:update": "member",
    "images:delete": "member",
    "migrations:read": "admin",
    "server_migrations:read": "admin",
    "server_migrations:manage": "admin",
    "networks:read": "reader",
    "hosts:manage": "admin",
    "keypairs:own": "reader",
    "limits:read": "reader",
    "quotas:read": "reader",
    "quotas:manage": "admin",
    "aggregates:manage": "admin",
    "zones:read": "reader",
    "zones:detail": "admin",
    "server_groups:read": "reader",
    "server_groups:manage": "member",
    "hypervisors:read": "admin",
    "services:manage": "admin",
    "usage:read": "reader",
    "usage:read_all": "admin",
}
"""The least role that a policy takes."""

_IMPLIED = {
    "reader": frozenset({"reader", "member", "admin", "service"}),
    "member": frozenset({"member", "admin"}),
    "admin": frozenset({"admin"}),
    "service": frozenset({"service", "admin"}),
}


def allows(policy: str, who: Who) -> bool:
    """Whether the caller's roles suffice."""
    return not who.roles.isdisjoint(_IMPLIED[RULES[policy]])


def check(policy: str, who: Who) -> None:
    """Refuse a caller whose roles do not suffice."""
    if not allows(policy, who):
        raise refusal(policy, RULES[policy])
    if not who.is_admin:
        check_project(policy, who)


def check_project(policy: str, who: Who) -> None:
    """Refuse a token for no project, as that of the system, where something is made that belongs to
    one.
    """
    need_project(who, f"Policy doesn't allow {policy} to be performed")


def refusal(what: str, role: str = "admin") -> Forbidden:
    """In the words that clients know, and then what is missing."""
    return Forbidden(
        f"Policy doesn't allow {what} to be performed: it needs the role {role}. Ask an"
        " administrator for it, or to do it."
    )
