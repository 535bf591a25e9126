"""A libvirtd that is killed in a live migration between two words to QEMU leaves there what the
next one does not know of. The moment is too short to meet it by chance: here it is said to QEMU.
"""

import json
from typing import Any

import libvirt_qemu
import pytest
from msgspec.structs import replace

from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.power import Power
from siderite.compute.drivers.contract import At
from tests.compute.drivers.libvirt.world import World
from tests.compute.drivers.libvirt.world import at_lab
from tests.lab import LabHost

_STORAGE = {"driver": "null-co", "node-name": "migration-vdb-storage", "size": 1 << 30}
_FORMAT = {"driver": "raw", "node-name": "migration-vdb-format", "file": "migration-vdb-storage"}


def _tell(domain: Any, command: str, arguments: dict[str, Any]) -> Any:
    text = json.dumps({"execute": command, "arguments": arguments})
    answer = json.loads(libvirt_qemu.qemuMonitorCommand(domain, text, 0))
    assert "error" not in answer, answer
    return answer["return"]


def _copy(domain: Any) -> None:
    (source,) = (
        block["inserted"]["node-name"]
        for block in _tell(domain, "query-block", {})
        if "virtio-disk1" in block["qdev"]
    )
    _tell(
        domain, "blockdev-mirror",
        {"job-id": "drive-virtio-disk1", "device": source, "target": "migration-vdb-format",
         "sync": "top", "auto-dismiss": False},
    )  # fmt: skip


@pytest.mark.parametrize("left", ["a node", "two nodes", "a copy"])
def test_a_guest_migrates_though_an_earlier_libvirtd_left_something_of_that_in_its_qemu(
    lab: LabHost, far: LabHost, at: At, world: World, left: str
) -> None:
    live: Any = world.driver.live_migrate
    to = at_lab(far)
    guest = replace(world.spawn(at, ephemeral_gib=1, is_running=False), is_running=True)
    world.done(world.driver.power.on, at, guest)
    domain = lab.connection().lookupByUUIDString(guest.uuid)
    _tell(domain, "blockdev-add", _STORAGE)
    if left != "a node":
        _tell(domain, "blockdev-add", _FORMAT)
    if left == "a copy":
        _copy(domain)
    world.done(live.live_migrate, at, guest, to)
    assert (world.state(at, guest), world.state(to, guest)) == (None, Power.RUNNING)
    world.done(world.driver.life.destroy, to, guest)


def test_a_node_that_is_in_use_is_no_reason_to_try_for_ever(
    lab: LabHost, far: LabHost, at: At, world: World
) -> None:
    """As by somebody who talks to QEMU himself."""
    live: Any = world.driver.live_migrate
    guest = replace(world.spawn(at, ephemeral_gib=1, is_running=False), is_running=True)
    world.done(world.driver.power.on, at, guest)
    domain = lab.connection().lookupByUUIDString(guest.uuid)
    _tell(domain, "blockdev-add", _STORAGE)
    _tell(domain, "blockdev-add", {**_FORMAT, "node-name": "another"})
    refused = world.outcome(live.live_migrate, at, guest, at_lab(far))
    assert isinstance(refused, Failed)
    assert "migration-vdb-storage" in refused.reason
    assert world.state(at, guest) is Power.RUNNING
    world.done(world.driver.life.destroy, at, guest)
