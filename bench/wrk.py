"""wrk, for reads: a load generator in C which leaves the processor to the server."""

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench.address import Address

_SCRIPT = Path(__file__).with_name("wrk.lua")


class NoWrk(Exception):
    """wrk is not installed; as root: apt-get install wrk."""

    def __str__(self) -> str:
        return type(self).__doc__ or ""


@dataclass(frozen=True, slots=True)
class Blow:
    """What one run of wrk saw."""

    rate: float
    p50_s: float
    failed: int


def blow(address: Address, path: str, *, connections: int, seconds: float) -> Blow:
    """GET a path over so many connections for so long."""
    if shutil.which("wrk") is None:
        raise NoWrk
    headers = [f"-H{name}: {value}" for name, value in address.headers.items()]
    # wrk's clock has whole seconds.
    whole = max(1, round(seconds))
    done = subprocess.run(
        [
            *("wrk", "-t1", f"-c{connections}", f"-d{whole}s", "--timeout", "120s"),
            *headers,
            *("-s", str(_SCRIPT), address.root + address.path(path)),
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    seen = json.loads(done.stdout.strip().splitlines()[-1])
    return Blow(
        rate=(seen["requests"] - seen["bad_status"]) * 1e6 / seen["duration_us"],
        p50_s=seen["p50_us"] / 1e6,
        failed=seen["bad_status"] + seen["broken"],
    )
