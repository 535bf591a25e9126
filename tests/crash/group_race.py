"""Server groups under several processes: a service and three workers on one PostgreSQL place the
members of strict groups at the same moment; none may share a host that should not, or be parted.

    python -m tests.crash.group_race --trials 200        (scripts/soak)
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.postgres import running_postgres
from tests.support.server import PASSWORD
from tests.support.server import Server
from tests.support.server import clean_environment
from tests.support.server import command
from tests.support.server import running_server

HOSTS = 4
WORKERS = 3
SLOTS = "1"
"""Jobs that one process carries at once: so that all of them get some of each group."""
PATIENCE_S = 120.0
MEMBERS = 4
# What a group may look like: how many of its members are on each host.
POLICIES: dict[str, tuple[dict[str, Any], list[int]]] = {
    "apart": ({"policy": "anti-affinity"}, [1, 1, 1, 1]),
    "two a host": ({"policy": "anti-affinity", "rules": {"max_server_per_host": 2}}, []),
    "together": ({"policy": "affinity"}, [4]),
}


def ask(server: Server, method: str, path: str, body: Any = None) -> Any:
    headers = {**server.headers(), "OpenStack-API-Version": "compute 2.900"}
    reply = server.api.request(method, f"/compute/v2.1{path}", json=body, headers=headers)
    assert reply.is_success, reply.text
    return reply.json() if reply.content else None


@contextmanager
def workers(server: Server, db: str) -> Iterator[None]:
    """Further processes that work on the same database and the same simulated machines."""
    setpriv = str(shutil.which("setpriv"))
    program = [setpriv, "--pdeathsig", "KILL", str(command("siderite")), "worker"]
    environment = clean_environment() | {
        "SIDERITE_ADMIN_PASSWORD": PASSWORD, "SIDERITE_WORKER_SLOTS": SLOTS
    }  # fmt: skip
    made = []
    try:
        for _ in range(WORKERS):
            words = [*program, "--data", str(server.data), "--db", db]
            made.append(
                subprocess.Popen(
                    words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
            )
        yield
        assert all(one.poll() is None for one in made), "a worker ended by itself"
    finally:
        for one in made:
            one.kill()
            one.wait()


class Race:
    """The service, and what servers are made of."""

    def __init__(self, server: Server) -> None:
        self.server = server
        for number in range(HOSTS):
            host = {"name": f"h{number}", "uri": "simulated:"}
            assert ask(server, "POST", "/hosts", {"host": host})["host"]["problem"] is None
        flavor = {"name": "f", "ram": 16, "vcpus": 1, "disk": 0}
        self.flavor = ask(server, "POST", "/flavors", {"flavor": flavor})["flavor"]["id"]
        fields = {"name": "i", "disk_format": "raw", "container_format": "bare"}
        made = server.api.post("/image/v2/images", json=fields, headers=server.headers())
        self.image = str(made.json()["id"])
        octets = {**server.headers(), "content-type": "application/octet-stream"}
        path = f"/image/v2/images/{self.image}/file"
        assert server.api.put(path, content=b"boot", headers=octets).is_success

    def trial(self, kind: str) -> Counter[str]:
        """Place the members of one group at once; how many are on each host."""
        rules, _ = POLICIES[kind]
        body = {"server_group": {"name": "g", **rules}}
        group = ask(self.server, "POST", "/os-server-groups", body)["server_group"]["id"]
        wish = {
            "name": "s", "flavorRef": self.flavor, "imageRef": self.image, "networks": "none",
            "min_count": MEMBERS, "max_count": MEMBERS, "return_reservation_id": True,
        }  # fmt: skip
        hint = {"group": group}
        asked = {"server": wish, "os:scheduler_hints": hint}
        which = ask(self.server, "POST", "/servers", asked)["reservation_id"]
        seen = self._settled(f"/servers/detail?reservation_id={which}")
        assert {one["status"] for one in seen} == {"ACTIVE"}, seen
        for one in seen:
            ask(self.server, "DELETE", f"/servers/{one['id']}")
        ask(self.server, "DELETE", f"/os-server-groups/{group}")
        return Counter(one["OS-EXT-SRV-ATTR:host"] for one in seen)

    def _settled(self, path: str) -> list[dict[str, Any]]:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            seen: list[dict[str, Any]] = ask(self.server, "GET", path)["servers"]
            if all(one["OS-EXT-STS:task_state"] is None for one in seen):
                return seen
            assert time.monotonic() < deadline, seen
            time.sleep(0.02)


def is_right(kind: str, hosts: Counter[str]) -> bool:
    """Whether a group's members are where its policy lets them be."""
    wanted = POLICIES[kind][1]
    counts = sorted(hosts.values())
    return counts == wanted if wanted else max(counts) <= 2


def main() -> int:
    """As the command line says; 1 if a group was not as it should be."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    said = parser.parse_args()
    rng = random.Random(said.seed)
    plenty = {f"quota_{what}": "-1" for what in ("instances", "cores", "ram_mib")}
    plenty["worker_slots"] = SLOTS
    with (
        tempfile.TemporaryDirectory(prefix="siderite-groups-") as folder,
        running_postgres() as postgres,
        postgres.fresh_database() as db,
        running_server(Path(folder), db=db, options=plenty) as server,
        workers(server, db),
    ):
        race = Race(server)
        for number in range(said.trials):
            kind = rng.choice(list(POLICIES))
            hosts = race.trial(kind)
            if not is_right(kind, hosts):
                print(f"trial {number} of seed {said.seed}: {kind}: {dict(hosts)}")
                return 1
    print(f"{said.trials} groups of {MEMBERS}, {WORKERS + 1} processes: all as they should be")
    return 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
