"""The compute API over two real libvirt hosts."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import tests.compute.cloud
from tests.compute.real.guests import RealCloud
from tests.compute.real.guests import real_cloud
from tests.lab import LabHost
from tests.lab import lab_host


@pytest.fixture(scope="module")
def second() -> Iterator[LabHost]:
    with lab_host("second") as host:
        yield host


@pytest.fixture(scope="module")
def cloud(
    lab: LabHost, second: LabHost, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RealCloud]:
    folder: Path = tmp_path_factory.mktemp("cloud")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tests.compute.cloud, "PATIENCE_S", 180.0)
        with real_cloud(folder, (lab, second)) as made:
            yield made
