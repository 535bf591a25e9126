"""What tests of bare metal share."""

import pytest

from tests.lab.ipmi_sim import ipmi_sim


@pytest.fixture(scope="session")
def ipmi_board(tmp_path_factory):
    """An IPMI BMC with sensors and a serial line: one per test process, left switched off."""
    with ipmi_sim(tmp_path_factory.mktemp("ipmi_sim")) as sim:
        yield sim
