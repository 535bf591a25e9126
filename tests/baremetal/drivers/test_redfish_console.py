"""The console of Redfish machines: OpenIPMI's simulator carries it, a few fixed Redfish answers
say so, as sushy-emulator has no console.
"""

import asyncio

import pytest

from siderite.baremetal.domain.hardware import ConsoleInfo
from siderite.baremetal.domain.hardware import Refused
from siderite.baremetal.drivers.ipmi import IpmiTool
from siderite.baremetal.drivers.ipmi import SerialOverLan
from siderite.baremetal.drivers.redfish import Lines
from siderite.baremetal.drivers.redfish.console import RedfishConsole
from tests.baremetal.drivers.machine import Machine
from tests.lab.ipmi_sim import greeted
from tests.lab.redfish_static import SYSTEM
from tests.lab.redfish_static import redfish_static


@pytest.fixture
def console():
    lines, sol = Lines(threads=2), SerialOverLan(IpmiTool(at_once=2))
    yield RedfishConsole(lines, sol)
    sol.close()
    lines.close()


def machine(url, **more):
    info = {"redfish_address": url, "redfish_system_id": SYSTEM, "redfish_auth_type": "basic"}
    return Machine({**info, "redfish_username": "operator", "redfish_password": "wrong", **more}).at


def test_serial_over_lan_is_carried_with_the_accounts_of_the_node(console, ipmi_board):
    async def story(url):
        own = ipmi_board.driver_info
        at = machine(url, redfish_password=own["ipmi_password"], ipmi_cipher_suite=3)
        place = await console.start(at)
        assert await console.start(at) == place, "starting it again is harmless"
        host, port = place.url.removeprefix("tcp://").split(":")
        async with asyncio.timeout(60):
            reader, writer = await asyncio.open_connection(host, int(port))
            await greeted(reader, writer)
            await console.stop(at)
            await reader.read()
        writer.close()
        with pytest.raises(Refused, match=r"BMC 127\.0\.0\.1 .* credentials"):
            await console.start(machine(url, ipmi_cipher_suite=3))

    ways = {"IPMI": {"ServiceEnabled": True, "Port": ipmi_board.driver_info["ipmi_port"]}}
    with redfish_static(SerialConsole={**ways, "SSH": {"ServiceEnabled": True}}) as url:
        asyncio.run(story(url))


def test_a_console_by_ssh_is_the_bmcs_own(console):
    ways = {"SSH": {"ServiceEnabled": True, "Port": 2200}, "IPMI": {"ServiceEnabled": False}}
    with redfish_static(SerialConsole=ways) as url:
        found = asyncio.run(console.start(machine(url)))
    assert found == ConsoleInfo("ssh", "ssh://127.0.0.1:2200")


def test_older_managers_tell_it_for_their_systems(console):
    told = {"ServiceEnabled": True, "ConnectTypesSupported": ["SSH", "Telnet"]}
    with redfish_static(manager={"SerialConsole": told}) as url:
        found = asyncio.run(console.start(machine(url)))
    assert found == ConsoleInfo("ssh", "ssh://127.0.0.1:22")


@pytest.mark.parametrize("told", [None, {}, {"IPMI": {"ServiceEnabled": False}}, {"IPMI": 3}])
def test_a_bmc_without_a_console_is_a_refusal_with_the_remedy(console, told):
    with (
        redfish_static(SerialConsole=told) as url,
        pytest.raises(Refused, match=r"BMC http://127\.0\.0\.1.* no serial console.*Enable"),
    ):
        asyncio.run(console.start(machine(url)))
