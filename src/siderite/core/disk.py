"""Waiting for the disk."""

import os
from pathlib import Path


def sync(path: Path) -> None:
    """Wait until a file, or a folder's list of names, is on the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
