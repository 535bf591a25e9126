"""The drivers of a program end with it."""

import asyncio
from pathlib import Path

import pytest

from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.simulated import Machines
from siderite.core.config import Config
from siderite.wiring.drivers import drivers


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
