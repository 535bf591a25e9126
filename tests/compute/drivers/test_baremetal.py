"""Servers on nodes of a bare metal API that is not there: what is asked of it, and what is not
asked twice by whoever carries on.
"""

import asyncio

import pytest

from siderite.compute.domain.outcome import Done
from siderite.compute.domain.outcome import Wait
from siderite.compute.drivers.baremetal import baremetal_driver
from siderite.compute.drivers.baremetal_api import NotNow
from siderite.compute.drivers.contract import At
from siderite.compute.drivers.contract import Guest

SERVER, NODE = "a-server", "a-node"
STAMP = "last_power_state_change"


class Api:
    """One node, as Ironic has it: it takes a change of power, and ends it when told to."""

    endpoint = "http://here"

    def __init__(self, *, stamps=True, is_ours=False):
        self.is_ours = is_ours
        self.found = {
            "uuid": NODE, "instance_uuid": SERVER, "provision_state": "active",
            "power_state": "power on", "target_power_state": None, "maintenance": False,
            "instance_info": {"image_source": "x"}, "driver_internal_info": {},
        }  # fmt: skip
        self.orders = []
        self.stamps = stamps
        self.busy = 0

    async def node(self, ident):
        return {**self.found}

    async def patch(self, ident, *changes):
        for op, path, value in changes:
            assert op == "add"
            place, key = path.strip("/").split("/")
            self.found[place] = {**self.found[place], key: value}

    async def power(self, ident, target, timeout=None):
        if self.busy:
            self.busy -= 1
            raise NotNow("the node is locked")
        self.orders.append(target if timeout is None else (target, timeout))
        self.found["target_power_state"] = "power off" if target.endswith("off") else "power on"
        if self.stamps:
            self.found["driver_internal_info"] = {STAMP: f"time {len(self.orders)}"}

    def end(self):
        self.found["target_power_state"] = None


@pytest.fixture
def guest():
    return Guest(SERVER, "instance-1", "one", "one", "a-project", NODE, 1, 1, 1)


def ask(api, guest, token="reboot/0", *, driver=None):
    """What a process that knows nothing answers; or this driver."""
    power = (driver or baremetal_driver(lambda at: api)).power
    return asyncio.run(power.reset(At("a-host"), guest, token))


def test_a_reboot_is_ordered_once_by_however_many_processes(guest):
    api = Api()
    assert isinstance(ask(api, guest), Wait)
    assert isinstance(ask(api, guest), Wait), "it is under way"
    api.end()
    assert isinstance(ask(api, guest), Done)
    assert api.orders == ["rebooting"]
    assert isinstance(ask(api, guest, "reboot/1"), Wait)
    assert api.orders == ["rebooting"] * 2, "another reboot is another order"
    api.end()
    assert isinstance(ask(api, guest, "reboot/1"), Done)


def test_a_reboot_that_was_noted_and_not_ordered_is_ordered(guest):
    api = Api()
    api.busy = 2
    for _ in range(2):
        assert isinstance(ask(api, guest), Wait)
        assert api.orders == []
    assert isinstance(ask(api, guest), Wait)
    assert api.orders == ["rebooting"]


def test_a_service_that_notes_no_times_is_told_once_by_one_process(guest):
    api = Api(stamps=False)
    driver = baremetal_driver(lambda at: api)
    assert isinstance(ask(api, guest, driver=driver), Wait)
    api.end()
    assert isinstance(ask(api, guest, driver=driver), Done)
    assert api.orders == ["rebooting"]


def test_a_machine_that_is_off_after_its_reboot_is_switched_on(guest):
    api = Api()
    ask(api, guest)
    api.end()
    api.found["power_state"] = "power off"
    assert isinstance(ask(api, guest), Wait)
    assert api.orders == ["rebooting", "power on"]


@pytest.mark.parametrize(("is_ours", "timeout"), [(True, 55), (False, 10)])
def test_ours_gives_a_guest_all_its_time_and_an_ironic_is_asked_again(guest, is_ours, timeout):
    api = Api(is_ours=is_ours)
    power = baremetal_driver(lambda at: api).power
    for left_s in (54.4, 44.4):
        assert isinstance(asyncio.run(power.signal(At("a-host"), guest, left_s, "signal")), Done)
    assert api.orders == [("soft power off", timeout)], "it is under way"
    api.end()
    asyncio.run(power.signal(At("a-host"), guest, 0.2, "signal"))
    assert api.orders[1:] == [("soft power off", 1 if is_ours else 10)]


@pytest.mark.parametrize("was_asked", [True, False])
def test_a_plug_is_pulled_once_whether_the_guest_was_asked_before_or_not(guest, was_asked):
    api = Api()
    power = baremetal_driver(lambda at: api).power

    def off():
        return asyncio.run(power.off(At("a-host"), guest, "off"))

    if was_asked:
        asyncio.run(power.signal(At("a-host"), guest, 60.0, "signal"))
    api.busy = 1  # as an Ironic is till it gives up
    assert [type(off()) for _ in range(3)] == [Wait] * 3
    assert api.orders == [("soft power off", 10)] * was_asked + ["power off"]
    api.end()
    api.found["power_state"] = "power off"
    assert isinstance(off(), Done)
