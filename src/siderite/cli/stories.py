"""The longer stories of `siderite demo`: told while they happen, over HTTP."""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from siderite.cli import server as servers
from siderite.cli.cloud import Cloud
from siderite.cli.cloud import Late
from siderite.cli.cloud import Missing
from siderite.cli.cloud import Refused

_PATIENCE_S = 300.0
_PAUSE_S = 0.3
_FULL = "demo-full"


def full_cloud(cloud: Cloud, said: argparse.Namespace) -> None:
    """Room for two, three come: the third pays."""
    with _small_host(cloud):
        cheap = [
            _boot(cloud, f"cheap-{number}", zone=_FULL, preemptible="true") for number in (1, 2)
        ]
        for ident in cheap:
            _until(cloud, ident, "ACTIVE")
        _tell("cheap-1 and cheap-2 are ACTIVE. They are preemptible, and their host is full.")
        paying = _boot(cloud, "paying", zone=_FULL)
        state = _until(cloud, paying, "PENDING", "ERROR")
        if state["status"] != "PENDING":
            raise Refused(
                "the paying server is ERROR: this service does not hold servers; start it with"
                " SIDERITE_USE_PENDING_STATE=true (or --demo)."
            )
        _tell("paying found no room. It is PENDING, not ERROR: `siderite pending list` shows it.")
        _tell("Now one round of `siderite reaper`:")
        _reap(said.data)
        _until(cloud, paying, "ACTIVE")
        left = sum(_is_there(cloud, ident) for ident in cheap)
        _tell(f"paying is ACTIVE. Of the cheap ones {left} is left: no more went than had to.")


def lost_signal(cloud: Cloud, said: argparse.Namespace) -> None:
    """A signal that nobody hears, and one that somebody does."""
    ident = _boot(cloud, "drowsy")
    scope = f"/simulated-hosts/v1/scripts/server:{ident}"
    try:
        cloud.ask("PUT", scope, {"ready_s": said.deaf_for, "shutdown_s": 0.5})
        _until(cloud, ident, "ACTIVE")
        _tell(f"drowsy is ACTIVE, but its guest still boots: for {said.deaf_for:g} seconds it hears"
              " no signal.")  # fmt: skip
        cloud.compute("POST", f"/servers/{ident}/action", {"os-stop": None})
        _tell("It is asked to stop. The first signal is lost; another follows, every"
              " shutdown_retry_interval_s.")  # fmt: skip
        _until(cloud, ident, "SHUTOFF")
        _tell(f"drowsy is SHUTOFF: {_how(cloud, ident)}.")
        _tell("A hard stop would not have asked: siderite server stop --hard-shutdown drowsy")
    finally:
        _drop(cloud, ident)
        cloud.ask("DELETE", scope)


def _how(cloud: Cloud, ident: str) -> str:
    """What the record of the stop says of the guest's end."""
    path = f"/servers/{ident}/os-instance-actions"
    actions = cloud.compute("GET", path)["instanceActions"]
    stop = next(one["request_id"] for one in actions if one["action"] == "stop")
    events = cloud.compute("GET", f"{path}/{stop}")["instanceAction"]["events"]
    return str(events[-1]["details"])


@contextmanager
def _small_host(cloud: Cloud) -> Iterator[None]:
    """A host for two tiny servers, in a zone of its own; gone afterwards, with all on it."""
    options = {"vcpus": "2", "ram_mib": "1024", "disk_gib": "2"}
    host = {"name": _FULL, "uri": "simulated:", "options": options}
    cloud.compute("POST", "/hosts", {"host": host})
    zone = {"name": _FULL, "availability_zone": _FULL}
    made = cloud.compute("POST", "/os-aggregates", {"aggregate": zone})["aggregate"]["id"]
    try:
        _add(cloud, made)
        yield
    finally:
        for one in servers.every(cloud, {"limit": 1000}):
            if one["OS-EXT-AZ:availability_zone"] == _FULL or one["name"] == "paying":
                _drop(cloud, one["id"])
        cloud.compute("POST", f"/os-aggregates/{made}/action", {"remove_host": {"host": _FULL}})
        cloud.compute("DELETE", f"/os-aggregates/{made}")
        cloud.compute("DELETE", f"/hosts/{_FULL}")


def _add(cloud: Cloud, aggregate: int) -> None:
    body = {"add_host": {"host": _FULL}}
    cloud.compute("POST", f"/os-aggregates/{aggregate}/action", body)


def _boot(cloud: Cloud, name: str, *, zone: str = "", **metadata: str) -> str:
    body: dict[str, Any] = {
        "name": name, "flavorRef": servers.flavor(cloud, "m1.tiny"),
        "imageRef": servers.image(cloud, "tiny"), "networks": "none", "metadata": metadata,
    }  # fmt: skip
    if zone:
        body["availability_zone"] = zone
    return str(cloud.compute("POST", "/servers", {"server": body})["server"]["id"])


def _until(cloud: Cloud, ident: str, *states: str) -> dict[str, Any]:
    server: dict[str, Any] = {}

    def is_there() -> bool:
        server.update(cloud.compute("GET", f"/servers/{ident}")["server"])
        return server["status"] in states and server["OS-EXT-STS:task_state"] is None

    _wait(is_there, lambda: f"{server['name']} is still {server['status']}")
    return server


def _wait(is_so: Callable[[], bool], otherwise: Callable[[], str]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not is_so():
        if time.monotonic() > deadline:
            raise Late(f"{otherwise()} after {_PATIENCE_S:g} seconds.")
        time.sleep(_PAUSE_S)


def _is_there(cloud: Cloud, ident: str) -> bool:
    try:
        cloud.compute("GET", f"/servers/{ident}")
    except Missing:
        return False
    return True


def _drop(cloud: Cloud, ident: str) -> None:
    try:
        cloud.compute("DELETE", f"/servers/{ident}")
    except Missing:
        return
    _wait(lambda: not _is_there(cloud, ident), lambda: f"server {ident} is still there")


def _reap(data: str | None) -> None:
    command = [sys.executable, "-m", "siderite.cli.main", "reaper", "--once"]
    where = ["--data", data] if data else []
    done = subprocess.run([*command, *where, "--log-level", "warning"], check=False)  # noqa: S603
    if done.returncode:
        raise Refused("the reaper could not do its work; see above.")


def _tell(sentence: str) -> None:
    print(sentence, flush=True)
