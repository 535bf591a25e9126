"""The compute API over two real libvirt hosts: one of this machine, one reached over ssh."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import tests.compute.cloud
from tests.compute.real.guests import RealCloud
from tests.compute.real.guests import real_cloud
from tests.lab import LabHost


@pytest.fixture(scope="module")
def cloud(
    lab: LabHost, far: LabHost, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RealCloud]:
    folder: Path = tmp_path_factory.mktemp("cloud")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tests.compute.cloud, "PATIENCE_S", 180.0)
        with real_cloud(folder, (lab, far)) as made:
            yield made
