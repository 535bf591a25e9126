"""A full cloud, paying servers come, preemptible ones go: the reaper as a process of its own."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support.server import Server
from tests.support.server import clean_environment
from tests.support.server import running_server

HEADERS = {"OpenStack-API-Version": "compute 2.901"}
PATIENCE_S = 120.0
OPTIONS = {
    "use_pending_state": "true", "cpu_allocation_ratio": "1", "quota_instances": "-1",
    "quota_cores": "-1", "quota_ram_mib": "-1",
}  # fmt: skip


class Cloud:
    """A service with small simulated hosts, and where PENDING is on."""

    def __init__(self, server: Server, hosts: int) -> None:
        self.server = server
        for number in range(hosts):
            options = {"vcpus": "4", "ram_mib": "4096", "disk_gib": "100"}
            body = {"name": f"h{number}", "uri": "simulated:", "options": options}
            self.ask("POST", "/hosts", {"host": body})
        image = server.api.post(
            "/image/v2/images", headers=server.headers(),
            json={"name": "i", "disk_format": "raw", "container_format": "bare"},
        ).json()["id"]  # fmt: skip
        server.api.put(
            f"/image/v2/images/{image}/file", content=b"x" * 512,
            headers={**server.headers(), "Content-Type": "application/octet-stream"},
        ).raise_for_status()  # fmt: skip
        self.image = image
        self.flavors = {
            name: self.ask("POST", "/flavors", {"flavor": {
                "name": name, "vcpus": vcpus, "ram": 1024 * vcpus, "disk": 1}})["flavor"]["id"]
            for name, vcpus in (("small", 1), ("large", 2))
        }  # fmt: skip

    def ask(self, method, path, body=None):
        answer = self.server.api.request(
            method, "/compute/v2.1" + path, json=body, headers={**self.server.headers(), **HEADERS}
        )
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None

    def boot(self, name, flavor, **more):
        body = {
            "name": name, "flavorRef": self.flavors[flavor], "imageRef": self.image,
            "networks": "none", **more,
        }  # fmt: skip
        return self.ask("POST", "/servers", {"server": body})["server"]["id"]

    def all(self):
        found = self.ask("GET", "/servers/detail?all_tenants=1&limit=1000")["servers"]
        return {one["name"]: one for one in found}

    def until(self, is_so):
        deadline = time.monotonic() + PATIENCE_S
        while not is_so(servers := self.all()):
            assert time.monotonic() < deadline, {n: s["status"] for n, s in servers.items()}
            time.sleep(0.1)
        return servers

    def fill(self, count):
        for number in range(count):
            self.boot(f"cheap{number}", "small", metadata={"preemptible": "true"})
        self.until(lambda all_: [s["status"] for s in all_.values()] == ["ACTIVE"] * count)


def reaper(server: Server, *words: str) -> "subprocess.Popen[str]":
    program = Path(sys.executable).with_name("siderite")
    return subprocess.Popen(
        [program, "reaper", "--data", server.data, *words], env=clean_environment(), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def compete(folder: Path, hosts: int) -> None:
    """More paying servers come than a cloud full of preemptible ones has room for."""
    with running_server(folder, options=OPTIONS) as server:
        cloud = Cloud(server, hosts)
        cloud.fill(4 * hosts)
        paying = {f"paying{number}" for number in range(2 * hosts + 1)}
        for name in sorted(paying):
            cloud.boot(name, "large")
        cloud.until(lambda all_: {all_[n]["status"] for n in paying} == {"PENDING"})
        dry = reaper(server, "--dry-run")
        said = dry.communicate(timeout=60)[0]
        assert "would go to h" in said, said
        assert cloud.all().keys() >= {f"cheap{number}" for number in range(4 * hosts)}
        first = reaper(server, "--name", "one")
        try:
            cloud.until(lambda all_: any(all_[n]["status"] == "ACTIVE" for n in paying))
        finally:
            first.kill()
            first.communicate()
        pair = [reaper(server, "--name", name) for name in ("one", "two")]
        try:
            done = cloud.until(
                lambda all_: (
                    {all_[n]["status"] for n in paying} <= {"ACTIVE", "ERROR"}
                    and not any(all_[n]["OS-EXT-STS:task_state"] for n in paying)
                )
            )
        finally:
            for one in pair:
                one.terminate()
            words = [one.communicate(timeout=30)[0] for one in pair]
        states = sorted(done[name]["status"] for name in paying)
        # A host of four takes two servers of two: one is left that cannot be helped.
        assert states == ["ACTIVE"] * 2 * hosts + ["ERROR"], words
        [lost] = [done[name] for name in paying if done[name]["status"] == "ERROR"]
        assert "No valid host was found" in lost["fault"]["message"]
        assert not [name for name in done if name.startswith("cheap")], "all were needed"


def test_every_paying_server_gets_room_or_a_reason_though_the_reaper_is_killed(tmp_path):
    compete(tmp_path, hosts=2)


if __name__ == "__main__":  # scripts/soak
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        compete(Path(folder), hosts=25)
        print(
            f"50 of 51 paying servers got room, one a reason, in {time.monotonic() - began:.0f} s"
        )
