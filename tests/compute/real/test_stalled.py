"""Guests that stand still since the disk of their host is full, and go on once it is not."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from siderite.compute.usecases.fleet import hosts
from tests.compute.cloud import cloud
from tests.compute.real.guests import RealCloud
from tests.lab import LabHost
from tests.lab import Mode
from tests.lab import tiny_disk
from tests.lab.host import SMALL

RUNNING, PAUSED = 1, 3


@pytest.fixture
def small(lab: LabHost, tmp_path: Path) -> Iterator[RealCloud]:
    """A cloud whose host has a small disk."""
    with cloud(tmp_path, hosts=0) as api:
        compute = api.app.app.program.compute
        options = {"pool": "small", "pool_path": SMALL}
        host = api.app.run(hosts.add(compute.context, lab.name, "libvirt", lab.uri, options))
        assert api.app.run(compute.watch.ask(host)) is None
        yield RealCloud(api, tmp_path, (lab,))
    for path in lab.small.iterdir():
        path.unlink()


def _stalled(small: RealCloud) -> str:
    """A server that began to write more than there is room for."""
    disk = tiny_disk(small.folder / "writer", Mode.WRITER, size_mib=16)
    server = small.boot(small.image(disk), small.api.make_flavor(ram=16, disk=0))
    shown = small.api.wait(server, lambda seen: seen["OS-EXT-STS:power_state"] == PAUSED)
    assert (shown["status"], shown["OS-EXT-STS:task_state"]) == ("ACTIVE", None)
    return server


def _look(small: RealCloud) -> None:
    """As is done every few seconds."""
    small.api.app.run(small.api.app.app.program.compute.watch.round())


def test_a_guest_goes_on_when_its_host_has_room_again(small: RealCloud, lab: LabHost) -> None:
    filler = lab.fill_small(but_mib=5)
    server = _stalled(small)
    _look(small)
    assert small.domain(server).info()[0] == PAUSED  # type: ignore[union-attr]
    filler.unlink()
    _look(small)
    small.wait_for_words(server, "armed")
    small.api.wait(server, lambda seen: seen["OS-EXT-STS:power_state"] == RUNNING)
    small.do(server, "os-stop", then="SHUTOFF")
    small.api.ask("DELETE", f"/servers/{server}")
    small.api.wait(server, lambda seen: seen["status"] == "GONE")


def test_one_that_its_user_paused_stays_so(small: RealCloud, lab: LabHost) -> None:
    filler = lab.fill_small(but_mib=5)
    server = _stalled(small)
    small.do(server, "pause", then="PAUSED")
    filler.unlink()
    _look(small)
    assert small.domain(server).info()[0] == PAUSED  # type: ignore[union-attr]
    small.do(server, "unpause", then="ACTIVE")
    small.wait_for_words(server, "armed")
    small.api.ask("DELETE", f"/servers/{server}")
    small.api.wait(server, lambda seen: seen["status"] == "GONE")
