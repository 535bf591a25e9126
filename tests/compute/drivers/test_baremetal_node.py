"""What a node offers, whatever its owner wrote of it."""

import pytest

from siderite.compute.drivers.baremetal_node import offer

NODE = {
    "uuid": "a-node", "provision_state": "available", "instance_uuid": None, "maintenance": False,
    "resource_class": "baremetal",
}  # fmt: skip


@pytest.mark.parametrize(
    ("said", "size"),
    [
        (8, 8), ("8", 8), (8.9, 8), (2**31 - 1, 2**31 - 1), (2**31, 0), (10**300, 0),
        ("9" * 30, 0), (1e300, 0), (float("inf"), 0), (-1, 0), ("many", 0), (None, 0), ([8], 0),
    ],
)  # fmt: skip
def test_a_size_that_nobody_could_write_down_is_none(said: object, size: int) -> None:
    properties = dict.fromkeys(("cpus", "memory_mb", "local_gb"), said)
    found = offer({**NODE, "properties": properties})
    assert (found.vcpus, found.ram_mib, found.disk_gib) == (size, size, size)
