"""What tests of bare metal share."""

import pytest

from siderite.baremetal.drivers.redfish import Lines
from tests.lab.ipmi_sim import ipmi_sim
from tests.lab.redfish_front import redfish_front
from tests.lab.redfish_moody import moody_bmc
from tests.lab.redfish_paper import Paper


@pytest.fixture(scope="session")
def ipmi_board(tmp_path_factory):
    """An IPMI BMC with sensors and a serial line: one per test process, left switched off."""
    with ipmi_sim(tmp_path_factory.mktemp("ipmi_sim")) as sim:
        yield sim


@pytest.fixture
def paper():
    """A machine that is on paper only."""
    return Paper()


@pytest.fixture
def front(paper):
    """Its BMC, which has sessions and tasks."""
    with redfish_front(paper) as made:
        yield made


@pytest.fixture
def bmc():
    """A BMC of a few pages, with moods."""
    with moody_bmc() as made:
        yield made


@pytest.fixture
def lines():
    """Lines to such BMCs, with few threads."""
    made = Lines(threads=4, timeout_s=20.0)
    yield made
    made.close()
