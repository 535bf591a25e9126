"""A disk that takes its time, under an embedded store."""

import threading
import time
from typing import Any


def held(store: Any) -> threading.Event:
    """The disk waits, until what this gives is set."""
    disk, commit = threading.Event(), store._disk._commit
    store._disk._commit = lambda: disk.wait() and commit()
    return disk


def on_disk(store: Any) -> None:
    """Wait until the commit that is under way is on the disk; the loop has no turn meanwhile."""
    while store._writer.in_transaction:
        time.sleep(0.001)
