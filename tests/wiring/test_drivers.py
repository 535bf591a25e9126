"""The drivers of a program are as its options say, and end with it."""

import asyncio
from pathlib import Path

import pytest

from siderite.baremetal.drivers.agent import AgentSteps
from siderite.baremetal.drivers.agent.iso import NoRamdisk
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.simulated import Machines
from siderite.core.config import Config
from siderite.wiring.drivers import drivers
from tests.lab.bmc import files_served


def test_no_console_is_listened_for_after_the_end(tmp_path: Path) -> None:
    async def story() -> None:
        machines = Machines()
        fleet = drivers(Config(data=str(tmp_path)), tmp_path, machines, None)
        lines = fleet.drivers["fake-hardware"].console
        assert lines is not None
        opened = await lines.start(Endpoint("n1", {"sim_address": "10.0.0.1"}, {}, {}))
        for close in (*fleet.closers, machines.close):
            close()
        with pytest.raises(OSError, match="onnect"):
            await asyncio.open_connection("127.0.0.1", int(opened.url.rpartition(":")[2]))

    asyncio.run(story())


@pytest.mark.parametrize("allowed", ["", "10.0.0.0/8, 127.0.0.0/8"])
def test_nodes_name_ramdisks_of_this_machine_only_if_that_is_allowed(
    tmp_path: Path, allowed: str
) -> None:
    (tmp_path / "kernel").write_bytes(b"kernel")
    machines = Machines()
    fleet = drivers(Config(data=str(tmp_path), ramdisk_allow=allowed), tmp_path, machines, None)
    steps = fleet.drivers["ipmi"].steps
    assert isinstance(steps, AgentSteps)
    with files_served(tmp_path) as url:
        info = {"deploy_kernel": f"{url}/kernel", "deploy_ramdisk": f"{url}/kernel"}
        pair = steps._booter.ramdisks.pair(Endpoint("n1", info, {}, {}), "s")
        if allowed:
            asyncio.run(pair)
            assert (fleet.boot_folder / "n1" / "s" / "vmlinuz").read_bytes() == b"kernel"
        else:
            with pytest.raises(NoRamdisk, match="ramdisk_allow"):
                asyncio.run(pair)
    for close in (*fleet.closers, machines.close):
        close()
