"""Waiting for the disk, and files that go with the process that writes them."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


def sync(path: Path) -> None:
    """Wait until a file, or a folder's list of names, is on the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


@contextlib.contextmanager
def passing(path: Path) -> Iterator[None]:
    """A file that is gone afterwards. It is locked meanwhile, by which others see that it is not
    left by a process that died.
    """
    try:
        with path.open("ab") as file:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
    finally:
        path.unlink(missing_ok=True)


def remove_if_left(path: Path) -> None:
    """Remove what a process that died has left; another may be at it still."""
    with contextlib.suppress(OSError), path.open("rb+") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
