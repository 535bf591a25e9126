"""Images of a server that nobody needs any more are removed by work of its own, which is committed
together with what makes them so: the one that a server came back from, as who interrupts that at
the very end finds it still there; and one that will not be filled, as nobody else knows of it then.
"""

from collections.abc import Mapping

import msgspec

from siderite.compute.domain.server import Server
from siderite.compute.usecases.server import interrupting
from siderite.core import work
from siderite.core.store import Op

KIND = "unwanted"
PATIENCE_S = 24 * 3600.0
"""For so long it is tried."""


class Unfilled(msgspec.Struct, frozen=True):
    """An image that goes unless it is whole by now."""

    image: str


Job = str | Unfilled
"""An image that goes in any case, by its id, or one that was being filled."""


def remove(server: Server, image: str, now: float) -> Op:
    """The work that removes an image of a server."""
    return _work(server, image, image, now)


def discard(server: Server, image: str, now: float) -> Op:
    """The work that removes an image which will not be filled. It waits for whoever fills it now to
    let go of the server.
    """
    return _work(server, image, Unfilled(image), now)


def given_up(server: Server, unfilled: Mapping[str, str], now: float) -> list[Op]:
    """The work on an image that will not be filled, as `interrupting.give_up` tells it."""
    does = {interrupting.DISCARD: discard, interrupting.REMOVE: remove}
    return [does[word](server, image, now) for word, image in unfilled.items()]


def _work(server: Server, image: str, job: Job, now: float) -> Op:
    return work.add(
        server.uuid, f"{KIND}/{image}", KIND, job=msgspec.json.encode(job).decode(), now=now,
        deadline=now + PATIENCE_S, reason=f"image {image} is to be removed",
    )  # fmt: skip
