"""The image that a server came back from is removed by work of its own, which is committed together
with that: who interrupts it at the very end finds the image still there.
"""

import msgspec

from siderite.compute.domain.server import Server
from siderite.core import work
from siderite.core.store import Op

KIND = "unwanted"
PATIENCE_S = 24 * 3600.0
"""For so long it is tried."""


def remove(server: Server, image: str, now: float) -> Op:
    """The work that removes an image of a server."""
    return work.add(
        server.uuid, f"{KIND}/{image}", KIND, job=msgspec.json.encode(image).decode(), now=now,
        deadline=now + PATIENCE_S, reason=f"image {image} is to be removed",
    )  # fmt: skip
