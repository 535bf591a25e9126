"""Where tests keep their files: in memory, if this machine has room for them there.

Every test has a database of its own, and every commit waits for the disk; most of a run would be
spent on that. What a killed process leaves behind is the same on either, and that is what tests
look at. The benchmarks keep to the disk.
"""

import os
import shutil
import tempfile
from pathlib import Path

_MEMORY = Path("/dev/shm")
_ROOM = 4 << 30


def keep_in_memory() -> None:
    """Have this process, and those that it starts, make temporary files in memory."""
    if "TMPDIR" in os.environ or not _MEMORY.is_dir():
        return
    may_run = not os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC
    if may_run and shutil.disk_usage(_MEMORY).free >= _ROOM:
        os.environ["TMPDIR"] = str(_MEMORY)
        tempfile.tempdir = None


def cache_folder() -> Path:
    """`siderite-lab` in the user's cache folder: what all test processes of this user share."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "siderite-lab"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
