"""What passes between a node and the agent in its ramdisk: who may call, and what is remembered.

All of it stands in the node's `driver_internal_info` as long as the ramdisk is wanted.
"""

import hmac
from collections.abc import Mapping
from typing import Any

from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.node_machine import P

URL = "agent_url"
TOKEN = "agent_secret_token"  # noqa: S105 - a key's name
PREGENERATED = "agent_secret_token_pregenerated"
VERSION = "agent_version"
VERIFY_CA = "agent_verify_ca"
LAST = "agent_last_heartbeat"
STATUS = "agent_status"
STATUS_MESSAGE = "agent_status_message"
INSPECTED = "inspection_received_at"
"""When the ramdisk last sent what it found."""
_SESSION = frozenset({
    URL, TOKEN, PREGENERATED, VERSION, VERIFY_CA, LAST, STATUS, STATUS_MESSAGE, INSPECTED,
    "agent_command", "agent_rescue",
})  # fmt: skip

STATUSES = ("start", "end", "error")
"""What an installer that takes no commands says of itself."""

MAY_LOOK_UP = frozenset({
    P.DEPLOYING, P.DEPLOYWAIT, P.CLEANING, P.CLEANWAIT, P.INSPECTING, P.INSPECTWAIT, P.RESCUING,
    P.RESCUEWAIT, P.SERVICING, P.SERVICEWAIT,
})  # fmt: skip
"""States in which a ramdisk may be expected; to others the node is not there."""


def without_session(info: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same without anything of a ramdisk; the same object if there was nothing."""
    if _SESSION.isdisjoint(info):
        return info
    return {key: value for key, value in info.items() if key not in _SESSION}


def without_ramdisk(info: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same when the machine starts anew: the token on a medium made for it is on it still."""
    left = without_session(info)
    if left is info or not info.get(PREGENERATED):
        return left
    kept = {key: info[key] for key in (TOKEN, PREGENERATED) if key in info}
    return {**left, **kept}


def is_right(token: str, info: Mapping[str, Any]) -> bool:
    """Whether this is the token that the ramdisk was given."""
    known = info.get(TOKEN)
    return isinstance(known, str) and hmac.compare_digest(known.encode(), token.encode())


def has_inspected(node: Node, since: str) -> bool:
    """Whether the ramdisk has sent what it found, since then."""
    return str(node.driver_internal_info.get(INSPECTED, "")) >= since
