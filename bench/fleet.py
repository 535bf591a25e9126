"""The nodes that the benchmark works on: their ids, and the requests that make and remove one.

A fleet's ids and names follow from its name and a number, so that no workload has to remember or to
ask. Pure; used by the workloads and by the peer's bulk insert.
"""

import json
from dataclasses import dataclass
from uuid import NAMESPACE_URL
from uuid import uuid5

from bench.load import Request


@dataclass(frozen=True, slots=True)
class Fleet:
    """So many nodes of one resource class; or of none, as old versions of the API make them."""

    name: str
    size: int
    has_class: bool = True

    @property
    def resource_class(self) -> str:
        """What all of its nodes, and no others, have in common."""
        return f"bench-{self.name}"

    def uuid(self, number: int) -> str:
        """The id of the node with this number."""
        return str(uuid5(NAMESPACE_URL, self.node_name(number)))

    def node_name(self, number: int) -> str:
        """The name of the node with this number."""
        return f"bench-{self.name}-{number:05d}"

    def create(self, number: int) -> Request:
        """The request that makes the node with this number."""
        return Request("POST", "/v1/nodes", json.dumps(self._node(number)).encode(), 201)

    def creates(self) -> list[Request]:
        """The requests that make them all."""
        return [self.create(number) for number in range(self.size)]

    def deletes(self) -> list[Request]:
        """The requests that remove them all."""
        return [
            Request("DELETE", f"/v1/nodes/{self.uuid(number)}", b"", 204)
            for number in range(self.size)
        ]

    def _node(self, number: int) -> dict[str, object]:
        return {
            "uuid": self.uuid(number),
            "name": self.node_name(number),
            "driver": "fake-hardware",
            **({"resource_class": self.resource_class} if self.has_class else {}),
            "driver_info": {
                "fake_address": f"192.0.2.{number % 250}",
                "fake_username": "operator",
                "deploy_kernel": "file:///images/deploy.kernel",
                "deploy_ramdisk": "file:///images/deploy.initramfs",
            },
            "properties": {
                "cpu_arch": "x86_64",
                "cpus": 64,
                "memory_mb": 262144,
                "local_gb": 1800,
                "capabilities": "boot_mode:uefi,secure_boot:false",
            },
            "extra": {
                "rack": f"r{number // 40:03d}",
                "unit": number % 40,
                "serial": f"SN{number:08d}",
            },
        }
