"""The facts about this computer without which no figure means anything."""

import os
import platform
import shutil
import sqlite3
import subprocess
from datetime import UTC
from datetime import datetime
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version
from pathlib import Path


def facts(place: Path) -> dict[str, str]:
    """Processor, memory, versions, load, and the file system that `place` is on."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "processor": f"{os.cpu_count()} × {_processor()}",
        "memory": f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 1e9:.0f} GB",
        "load before": load(),
        "kernel": platform.release(),
        "file system": _file_system(place),
        "python": f"{platform.python_version()} ({platform.python_compiler()})",
        "sqlite": sqlite3.sqlite_version,
        **{name: _version(name) for name in ("uvicorn", "uvloop", "httptools", "asyncpg")},
        "wrk": _wrk(),
    }


def load() -> str:
    """How many processes have wanted a core, over 1, 5 and 15 minutes: our own and others'."""
    return " ".join(f"{value:.1f}" for value in os.getloadavg())


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _file_system(place: Path) -> str:
    found = subprocess.run(
        ["findmnt", "-n", "-o", "FSTYPE", "-T", str(place)],
        check=False,
        capture_output=True,
        text=True,
    )
    return found.stdout.strip() or "unknown"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"


def _wrk() -> str:
    if shutil.which("wrk") is None:
        return "absent"
    # It tells its version only together with an error code.
    told = subprocess.run(["wrk", "--version"], check=False, capture_output=True, text=True)
    return " ".join((told.stdout + told.stderr).split()[1:2])
