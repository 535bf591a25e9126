"""More Redfish BMCs than are read at once, swept; then all of them out of reach, and back."""

import asyncio
import re
import uuid as uuids

import libvirt
import pytest

from siderite.baremetal.store import NODES
from tests.lab.bmc import redfish_bmcs
from tests.support.app import running

BMCS = 150  # more than are read at once
PATIENCE_S = 240.0
_READ = re.compile("GET /redfish/v1/Systems/([0-9a-f-]+) ")
_DOMAIN = """
<domain type='test'><name>bmc-{n}</name><uuid>{uuid}</uuid><memory>8192</memory><vcpu>1</vcpu>
<os><type>hvm</type><boot dev='hd'/></os></domain>
"""


@pytest.fixture
def machines(lab):
    """libvirt's own mock machines, every other one on; they last as long as the connection."""
    uri = f"test+unix:///default?socket={lab.socket}"
    connection = libvirt.open(uri)
    found = {}
    for n in range(BMCS):
        uuid = str(uuids.uuid4())
        domain = connection.defineXML(_DOMAIN.format(n=n, uuid=uuid))
        if n % 2:
            domain.create()
        found[uuid] = domain
    yield uri, found
    connection.close()


def power(domain):
    return "power on" if domain.isActive() else "power off"


def test_bmcs_out_of_reach_lead_to_no_action_and_come_back_by_themselves(machines, tmp_path):
    uri, domains = machines

    async def story(bmcs):
        async with running(
            tmp_path / "data", work=True, power_policy="record", power_watch_interval_s=4.0
        ) as app:
            interfaces = app.program.baremetal.cards["redfish"].fill_in({})
            nodes = {}
            for uuid, domain in domains.items():
                info = bmcs.driver_info(uuid, redfish_auth_type="basic")
                node = await app.plant(
                    "active", driver="redfish", driver_info=info, power_state=power(domain),
                    **interfaces,
                )  # fmt: skip
                nodes[node] = domain

            async def until(holds):
                async with asyncio.timeout(PATIENCE_S):
                    while True:
                        seen = [await NODES.get(app.program.store, node) for node in nodes]
                        if all(holds(node) for node in seen):
                            return seen
                        await asyncio.sleep(0.2)

            async with asyncio.timeout(PATIENCE_S):
                while set(_READ.findall(log.read_text())) != set(domains):
                    await asyncio.sleep(0.2)
            bmcs.stop()
            for node in await until(lambda node: node.fault == "power failure"):
                assert node.power_state is None
                assert bmcs.url in node.power_state_reason
                assert "refuses the connection" in node.maintenance_reason
            bmcs.start()
            for node in await until(lambda node: node.power_state and not node.maintenance):
                assert node.power_state == power(nodes[node.uuid])
                assert (node.fault, node.power_state_reason) == (None, None)

    log = tmp_path / "bmc" / "emulator.log"
    before = {uuid: power(domain) for uuid, domain in domains.items()}
    with redfish_bmcs(tmp_path / "bmc", uri) as bmcs:
        asyncio.run(story(bmcs))
    assert {uuid: power(domain) for uuid, domain in domains.items()} == before
    assert "POST /redfish" not in log.read_text(), "no BMC was ever told to do anything"
