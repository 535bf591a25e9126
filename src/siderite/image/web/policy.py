"""Who may do what: one table, by the policy that a route names.

The role is asked for here; whose image it is, and who may see it, the use cases ask.
"""

from siderite.core.errors import Forbidden
from siderite.core.who import Who

RULES = {
    "image:read": "reader",
    "image:create": "member",
    "image:update": "member",
    "image:delete": "member",
    "image:upload": "member",
    "image:download": "reader",
    "image:share": "member",
    "image:accept": "member",
}

_SUFFICES = {
    "reader": frozenset({"reader", "member", "admin", "service"}),
    "member": frozenset({"member", "admin", "service"}),
}


def check(policy: str, who: Who) -> None:
    """Refuse a caller whose roles can never suffice."""
    role = RULES[policy]
    if not who.roles & _SUFFICES[role]:
        raise Forbidden(f"{policy} needs the role {role}; ask an administrator for it.")
