"""A disk that takes its time, under an embedded store."""

import threading
from typing import Any


def held(store: Any) -> threading.Event:
    """The disk waits, until what this gives is set."""
    disk, commit = threading.Event(), store._disk._commit
    store._disk._commit = lambda: disk.wait() and commit()
    return disk
