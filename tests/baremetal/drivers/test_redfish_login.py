"""Getting into Redfish BMCs: wrong credentials are tried once, and then seldom."""

import asyncio

import pytest

from siderite.baremetal.domain.hardware import Refused
from siderite.baremetal.domain.hardware import Unreachable
from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.domain.power import PowerState
from siderite.baremetal.domain.power import PowerTarget
from siderite.baremetal.drivers.bmc import PowerOrder
from siderite.baremetal.drivers.redfish import lines as lines_module
from siderite.baremetal.drivers.redfish.board import RedfishBoard
from siderite.baremetal.drivers.redfish.button import RedfishButton
from siderite.baremetal.drivers.switch import Switch
from tests.baremetal.drivers.machine import node


@pytest.mark.parametrize("auth", ["auto", "session", "basic"])
def test_a_reading_with_a_wrong_password_is_one_login(bmc, lines, auth):
    async def story():
        bmc.password = "another"
        for number in (1, 2, 3):
            with pytest.raises(Refused, match="does not take the credentials") as why:
                await RedfishButton(lines).power(node(bmc, redfish_auth_type=auth))
            assert why.value.refuses_login
            assert bmc.failed_logins == number

    asyncio.run(story())


def test_a_bmc_without_sessions_that_asks_first_who_one_is_is_let_in_by_basic(bmc, lines):
    async def story():
        bmc.has_sessions, bmc.password = False, "hunter2"
        assert await RedfishButton(lines).power(node(bmc)) is PowerState.OFF
        wrong = node(bmc, redfish_password="wrong")
        for number in (1, 2, 3):
            with pytest.raises(Refused, match="does not take the credentials"):
                await RedfishButton(lines).power(wrong)
            assert bmc.failed_logins == number

    asyncio.run(story())


def test_work_asks_ever_more_seldom_once_the_password_is_another(bmc, lines):
    async def story():
        power = Switch(RedfishButton(lines))
        bmc.password = "hunter2"
        assert await power.read(node(bmc)) is PowerState.OFF
        bmc.password = "another"
        bmc.sessions.clear()
        pauses = []
        for number in range(1, 7):
            outcome = await power.set(node(bmc), PowerTarget.ON, "t")
            assert isinstance(outcome, Wait)
            assert bmc.failed_logins == number
            pauses.append(outcome.again_in)
        assert pauses == [30, 60, 120, 240, 300, 300]
        bmc.password = "hunter2"
        assert isinstance(await power.set(node(bmc), PowerTarget.ON, "t"), Wait)
        bmc.password = "another"
        bmc.sessions.clear()
        with pytest.raises(Unreachable) as why:
            await power.read(node(bmc))
        assert why.value.again_in == 30

    asyncio.run(story())


def test_the_systems_of_one_bmc_do_not_each_try_what_was_just_refused(bmc, lines, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(lines_module, "monotonic", lambda: now[0])
    bmc.password = "another"

    def system(number, **more):
        return node(bmc, redfish_system_id=f"/redfish/v1/Systems/{number}", **more)

    async def story():
        button = RedfishButton(lines)
        for number in range(1, 17):
            with pytest.raises(Refused, match=r"refuse.*redfish_password") as why:
                await button.power(system(number))
            assert why.value.refuses_login
        assert bmc.failed_logins == 1
        with pytest.raises(Refused):
            await button.power(system(1))
        assert bmc.failed_logins == 2, "who asks for the same again is heard"
        now[0] += 31
        with pytest.raises(Refused):
            await button.power(system(2))
        assert bmc.failed_logins == 3
        assert await button.power(system(1, redfish_password="another")) is PowerState.OFF

    asyncio.run(story())


def test_one_who_may_not_see_the_system_leaves_no_sessions_behind(bmc, lines):
    async def story():
        bmc.forbids = True
        for _ in range(3):
            with pytest.raises(Refused, match=r"credentials \(HTTP 403\).*role"):
                await RedfishButton(lines).power(node(bmc))

    asyncio.run(story())
    assert len(bmc.sessions) <= 1  # the last is being ended


def test_power_is_read_whatever_else_the_system_says(bmc, lines):
    async def story():
        button = RedfishButton(lines)
        assert await button.power(node(bmc)) is PowerState.OFF
        odd = {"Boot": 17, "Id": ["1"], "Links": "none", "Status": 3, "Actions": [], "UUID": {}}
        bmc.system = {"PowerState": "On", **odd}
        assert await button.power(node(bmc)) is PowerState.ON
        assert await button.power(node(bmc, redfish_username="new")) is PowerState.ON
        with pytest.raises((Refused, Unreachable)):
            await RedfishBoard(lines).boot_device(node(bmc))
        assert await button.power(node(bmc)) is PowerState.ON

    asyncio.run(story())


@pytest.mark.parametrize(
    "odd",
    [
        {"Boot": 17, "Id": ["1"], "Links": "none", "Status": 3, "UUID": {}, "Memory": "much"},
        {"MemorySummary": {"TotalSystemMemoryGiB": {}}, "Bios": [], "IndicatorLED": 1},
    ],
)
def test_power_is_changed_whatever_else_the_system_says(bmc, lines, odd):
    async def story():
        bmc.system |= odd
        power = Switch(RedfishButton(lines))
        for target in (PowerTarget.ON, PowerTarget.OFF):
            outcomes = [await power.set(node(bmc), target, str(target)) for _ in range(3)]
            outcome = outcomes[-1]
            assert isinstance(outcome, Done), outcome

    asyncio.run(story())
    assert [order["ResetType"] for order in bmc.orders] == ["On", "ForceOff"]


@pytest.mark.parametrize(
    ("action", "outcome"),
    [
        ({}, ["ForceOn"]),
        ({"@Redfish.ActionInfo": "/redfish/v1/Odd"}, ["ForceOn"]),
        ({"@Redfish.ActionInfo": "/redfish/v1/Nothing"}, ["On"]),
        ({"@Redfish.ActionInfo": 3, "ResetType@Redfish.AllowableValues": "On"}, ["On"]),
        ({"ResetType@Redfish.AllowableValues": [3, "ForceOn"]}, ["ForceOn"]),
        ({"ResetType@Redfish.AllowableValues": ["Nmi"]}, "offers no On or ForceOn, only Nmi"),
        ({"target": None}, "has no address for resets"),
        ({"target": ["x"]}, "has no address for resets"),
    ],
)
def test_a_bmc_may_say_what_it_offers_elsewhere_or_not_at_all(bmc, lines, action, outcome):
    reset = bmc.system["Actions"]["#ComputerSystem.Reset"]
    del reset["ResetType@Redfish.AllowableValues"]
    reset |= action
    if action == {}:
        reset["@Redfish.ActionInfo"] = "/redfish/v1/Offers"
    offers = {"Name": "ResetType", "AllowableValues": ["ForceOff", "ForceOn"]}
    pages, page = {"/redfish/v1/Offers": [offers], "/redfish/v1/Odd": [3, offers]}, bmc.page
    bmc.page = lambda path: {"Parameters": pages[path]} if path in pages else page(path)

    async def story():
        press = RedfishButton(lines).press(node(bmc), PowerOrder.ON)
        if isinstance(outcome, list):
            await press
        else:
            with pytest.raises(Refused, match=outcome):
                await press

    asyncio.run(story())
    told = [order["ResetType"] for order in bmc.orders]
    assert told == (outcome if isinstance(outcome, list) else [])


def test_a_bmc_may_offer_other_orders_once_its_machine_is_on(bmc, lines):
    offers = {"On": ["ForceOff", "Nmi"], "Off": ["On"]}
    action = bmc.system["Actions"]["#ComputerSystem.Reset"]
    action["ResetType@Redfish.AllowableValues"] = offers["Off"]
    told = bmc.told

    def changed(method, body):
        status = told(method, body)
        action["ResetType@Redfish.AllowableValues"] = offers[bmc.system["PowerState"]]
        return status

    bmc.told = changed

    async def story():
        power = Switch(RedfishButton(lines))
        for number in range(2):
            for target in (PowerTarget.ON, PowerTarget.OFF):
                while isinstance(
                    outcome := await power.set(node(bmc), target, f"{target} {number}"), Wait
                ):
                    pass
                assert isinstance(outcome, Done), outcome

    asyncio.run(story())
    assert [order["ResetType"] for order in bmc.orders] == ["On", "ForceOff"] * 2


@pytest.mark.parametrize("page", [[], "no", 3, None])
def test_a_page_that_is_none_says_nothing_of_power(bmc, lines, page):
    async def story():
        bmc.whole = page
        with pytest.raises(Unreachable, match="its answer makes no sense"):
            await RedfishButton(lines).power(node(bmc))

    asyncio.run(story())
