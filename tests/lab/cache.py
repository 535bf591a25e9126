"""What the lab builds or downloads once per machine: outside the repository, safe to delete."""

import fcntl
import subprocess
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.scratch import cache_folder


class LabUnavailable(Exception):
    """A part of the lab is missing or does not start; the text says what to do."""


@contextmanager
def alone(name: str) -> Iterator[Path]:
    """The cache folder, with no other test process in the part called `name`."""
    folder = cache_folder()
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def run(command: Sequence[str | Path], *, cwd: Path | None = None) -> str:
    """What a command prints; if it fails, its last words and the way out."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
    except FileNotFoundError:
        raise LabUnavailable(f"{command[0]} is missing; scripts/test installs it") from None
    if done.returncode:
        words = " ".join(map(str, command))
        raise LabUnavailable(f"{words} failed: {done.stderr.strip()[-2000:]}")
    return done.stdout
