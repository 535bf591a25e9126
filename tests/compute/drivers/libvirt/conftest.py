"""A driver per test, and the lab's host as the driver is told of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from siderite.compute.drivers.contract import At
from tests.compute.drivers.libvirt.world import World
from tests.compute.drivers.libvirt.world import at_lab
from tests.compute.drivers.libvirt.world import new_world
from tests.lab import LabHost


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with new_world(tmp_path) as found:
        yield found


@pytest.fixture
def at(lab: LabHost) -> At:
    return at_lab(lab)
