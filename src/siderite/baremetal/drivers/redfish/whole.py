"""Answers of Redfish BMCs are read whole here: requests has a limit for how long a BMC may say
nothing, but none for one that says a little again and again, nor for one that says too much.

Loaded with the first real BMC, for requests comes with sushy.
"""

from time import monotonic
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError

from siderite.baremetal.drivers.redfish.errors import ENDLESS

PARTS = 3
"""All of an answer may take so many times as long as a BMC may say nothing."""
MOST_BYTES = 32 << 20
"""Larger than any page."""
_PIECE = 1 << 16


class Whole(HTTPAdapter):
    """Sends requests, and gives answers that are there to their end."""

    def send(self, request: Any, *args: Any, **more: Any) -> Any:
        """One request, as a session of requests asks for it."""
        answer = super().send(request, *args, **{**more, "stream": True})
        _, silence_s = more["timeout"]
        until = monotonic() + PARTS * silence_s
        try:
            # What requests itself would read when it is asked for the content.
            answer._content = _read(answer.raw, until)
        except HTTPError as why:
            answer.close()
            raise requests.ConnectionError(why, request=request) from why
        return answer


def _read(raw: Any, until: float) -> bytes:
    pieces = []
    size = 0
    while piece := raw.read1(_PIECE, decode_content=True):
        pieces.append(piece)
        size += len(piece)
        if size > MOST_BYTES or monotonic() > until:
            raise HTTPError(ENDLESS)
    return b"".join(pieces)
