"""A disk that takes its time, under an embedded store."""

import threading
from typing import Any


def held(store: Any) -> threading.Event:
    """The disk, which has been slow before, waits until what this gives is set."""
    disk, commit = threading.Event(), store._disk._commit
    store._disk._takes_s = 1.0
    store._disk._commit = lambda: disk.wait() and commit()
    return disk
