"""What owners of servers are told of hosts: that there is one. Its name, and the way to it, are for
administrators.
"""

import re
from typing import Any

_WAY = re.compile(r" \([a-z+]+://[^)]*\)")
_NAME = re.compile(
    # Words of our own sentences, such as "No valid host was found".
    r"\bhost (?!(?:aggregate|and|answered|as|by|calls?|can|cannot|comes|could|counts|did|does|else"
    r"|for|goes|has|have|if|in|into|is|it|its|keeps|key|made|may|must|name|named|no|not|now|of"
    r"|offers|on|once|or|over|reachable|says|that|the|there|to|was|were|when|where|which|while"
    r"|will|with|without|would)\b)\w(?:[\w.-]*\w)?"
)


def discreet(text: str) -> str:
    """The same sentence without names and addresses of hosts."""
    return _NAME.sub("its host", _WAY.sub("", text))


_HOSTS: dict[str, Any] = {
    "host": None, "node": None, "selected_host": None, "force_hosts": None, "force_nodes": None,
    "ignore_hosts": None, "refusals": {},
}  # fmt: skip
_INSIDE = frozenset({"nova_object.data", "request_spec", "fault", "reason"})


def discreet_facts(said: dict[str, Any]) -> dict[str, Any]:
    """The same of what facts say of a server: which hosts there are, which of them it is on, and
    what each had against it.
    """
    told = dict(said)
    for name, value in said.items():
        if name in _HOSTS:
            told[name] = _HOSTS[name]
        elif name == "exception_message" and isinstance(value, str):
            told[name] = discreet(value)
        elif name in _INSIDE and isinstance(value, dict):
            told[name] = discreet_facts(value)
    return told
