"""What owners of servers are told of hosts: that there is one. Its name, and the way to it, are for
administrators.
"""

import re

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
