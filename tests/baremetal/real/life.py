"""Leading a real machine through its life, as an operator does: over HTTP, and looking at it."""

import hashlib
import time
from pathlib import Path

from tests.lab import Mode
from tests.lab import linux_boot
from tests.lab import tiny_disk
from tests.lab.linux import COMMAND_LINE

PATIENCE_S = 120.0
VERSION = "1.900"


class Life:
    """One node of a running server."""

    def __init__(self, server, uuid):
        self.server = server
        self.uuid = uuid
        self.seen = []

    @classmethod
    def enrol(cls, server, **fields):
        """A new node."""
        made = server.api.post("/baremetal/v1/nodes", json=fields, headers=server.headers(VERSION))
        assert made.status_code == 201, made.text
        return cls(server, made.json()["uuid"])

    def ask(self, method, path="", body=None, status=None):
        """One request about the node."""
        answer = self.server.api.request(
            method, f"/baremetal/v1/nodes/{self.uuid}{path}", json=body,
            headers=self.server.headers(VERSION),
        )  # fmt: skip
        assert status is None or answer.status_code == status, answer.text
        return answer

    def add_port(self, mac):
        """A network card."""
        made = self.server.api.post(
            "/baremetal/v1/ports", json={"node_uuid": self.uuid, "address": mac},
            headers=self.server.headers(VERSION),
        )  # fmt: skip
        assert made.status_code == 201, made.text

    def patch(self, **fields):
        """Set fields of the node."""
        body = [{"op": "add", "path": f"/{name}", "value": value} for name, value in fields.items()]
        self.ask("PATCH", body=body, status=200)

    def show(self):
        """The node as the API shows it."""
        return self.ask("GET", status=200).json()

    def verb(self, target, state, **more):
        """Ask for a verb, and wait until its end."""
        self.ask("PUT", "/states/provision", {"target": target, **more}, 202)
        return self.until(lambda node: node["provision_state"] == state, f"{target} → {state}")

    def power(self, target, state):
        """Ask for a change of power, and wait until its end."""
        self.ask("PUT", "/states/power", {"target": target}, 202)
        return self.until(
            lambda node: node["target_power_state"] is None and node["power_state"] == state, target
        )

    def until(self, holds, what):
        """The node once something holds of it; any failed state is an end of patience."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            node = self.show()
            line = (node["provision_state"], node["power_state"], node["wait_reason"])
            if self.seen[-1:] != [line]:
                self.seen.append(line)
            if holds(node):
                return node
            over = time.monotonic() > deadline or node["provision_state"].endswith("failed")
            story = "\n".join(map(str, self.seen))
            assert not over, f"{what} did not come; seen:\n{story}\n{node['last_error']}"
            time.sleep(0.1)


def ramdisk_options():
    """Configuration for a server whose ramdisk is the lab's Linux guest."""
    boot = linux_boot()
    return {
        "deploy_kernel": str(boot.kernel),
        "deploy_ramdisk": str(boot.ramdisk),
        "ramdisk_url": "http://10.0.2.2:{port}",
        "agent_require_tls": "false",
        "callback_timeout_s": "600",
    }


def ramdisk_params(callback):
    """More words for the ramdisk's kernel: a role, and where it can be reached from outside."""
    return f"{COMMAND_LINE} role=deploy callback={callback}"


def image(folder: Path, tag: str):
    """A bootable disk image in a folder that is served, and its checksum."""
    path = tiny_disk(folder / "image.raw", Mode.GRACEFUL, tag=tag)
    return path.name, hashlib.sha256(path.read_bytes()).hexdigest()


def upload(server, path: Path):
    """The id of a public image in the server's own image service."""
    about = {"name": path.name, "disk_format": "raw", "container_format": "bare"}
    made = server.api.post(
        "/image/v2/images", json={**about, "visibility": "public"}, headers=server.headers()
    )
    assert made.status_code == 201, made.text
    sent = server.api.put(
        f"/image/v2/images/{made.json()['id']}/file",
        content=path.read_bytes(),
        headers={**server.headers(), "Content-Type": "application/octet-stream"},
    )
    assert sent.status_code == 204, sent.text
    return made.json()["id"]
