"""Redfish BMCs on a bad day: busy, half awake, without room, or different from others."""

import asyncio
import gc
import ssl
import threading

import pytest
import requests

from siderite.baremetal.domain.hardware import BootDevice
from siderite.baremetal.domain.hardware import Refused
from siderite.baremetal.domain.hardware import Unreachable
from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import Failed
from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.domain.power import PowerState
from siderite.baremetal.domain.power import PowerTarget
from siderite.baremetal.drivers import switch
from siderite.baremetal.drivers.agent import Booter
from siderite.baremetal.drivers.agent import Ramdisks
from siderite.baremetal.drivers.agent import RamdiskSettings
from siderite.baremetal.drivers.redfish import Lines
from siderite.baremetal.drivers.redfish import lines as lines_module
from siderite.baremetal.drivers.redfish.address import Address
from siderite.baremetal.drivers.redfish.answers import patience
from siderite.baremetal.drivers.redfish.board import RedfishBoard
from siderite.baremetal.drivers.redfish.button import RedfishButton
from siderite.baremetal.drivers.switch import Switch
from tests.baremetal.drivers.machine import node
from tests.lab.redfish_moody import HANGS_UP
from tests.lab.redfish_moody import moody_bmc
from tests.support.certificates import self_signed


def test_a_session_is_kept_through_failures_and_ended_with_the_line(bmc, lines):
    async def story():
        button = RedfishButton(lines)
        for mood in (500, 503, 429, HANGS_UP, 400):
            assert await button.power(node(bmc)) is PowerState.OFF
            bmc.mood = mood
            with pytest.raises((Unreachable, Refused)):
                await button.power(node(bmc))
            bmc.mood = 200
        assert await button.power(node(bmc)) is PowerState.OFF
        assert (bmc.logins, len(bmc.sessions)) == (1, 1)
        bmc.sessions.clear()  # as when the BMC starts anew, or finds a session too old
        assert await button.power(node(bmc)) is PowerState.OFF
        assert len(bmc.sessions) == 1

    asyncio.run(story())
    lines.close()
    assert not bmc.sessions


@pytest.mark.parametrize("mood", [503, 429])
def test_a_busy_bmc_is_left_alone_for_as_long_as_it_asks(bmc, lines, monkeypatch, mood):
    now = [0.0]
    monkeypatch.setattr(lines_module, "monotonic", lambda: now[0])

    async def story():
        button = RedfishButton(lines)
        assert await button.power(node(bmc)) is PowerState.OFF
        bmc.mood, bmc.adds = mood, {"Retry-After": "20"}
        outcome = await Switch(button).set(node(bmc), PowerTarget.ON, "t")
        assert isinstance(outcome, Wait)
        assert outcome.again_in == 20
        assert f"it is busy (HTTP {mood}, not now)" in outcome.reason
        asked, bmc.mood = bmc.asked, 200
        now[0] += 19.9
        with pytest.raises(Unreachable, match=r"busy, and asked to be left alone for 20 s") as why:
            await button.power(node(bmc))
        assert (why.value.is_busy, bmc.asked) == (True, asked)
        now[0] += 0.2
        assert await button.power(node(bmc)) is PowerState.OFF

    asyncio.run(story())


@pytest.mark.parametrize(
    ("said", "clock", "seconds"),
    [
        ("5", None, 5.0),
        ("0", None, 1.0),
        ("86400", None, 30.0),
        ("Thu, 01 Jan 1970 00:10:07 GMT", "Thu, 01 Jan 1970 00:10:00 GMT", 7.0),
        ("Thu, 01 Jan 1970 00:10:07 GMT", None, 1.0),
        ("Fri, 01 Jan 9999 00:00:00 GMT", "never", 30.0),
        ("soon", None, None),
        ("-3", None, None),
        ("\u00b2", None, None),
        (None, None, None),
    ],
)
def test_how_long_a_bmc_wants_to_be_left_alone_is_told_by_its_own_clock(said, clock, seconds):
    answer = requests.Response()
    told = {"Retry-After": said, "Date": clock}
    answer.headers.update({name: text for name, text in told.items() if text is not None})
    assert patience(answer) == seconds


def test_no_garbage_of_a_lost_bmc_holds_up_the_event_loop(bmc, lines, monkeypatch):
    """sushy logs out when it is thrown away, wherever that happens."""
    asked = []
    request = requests.Session.request

    def noted(self, *args, **more):
        asked.append(threading.current_thread() is threading.main_thread())
        return request(self, *args, **more)

    monkeypatch.setattr(requests.Session, "request", noted)

    async def story():
        button = RedfishButton(lines)
        await button.power(node(bmc))
        del bmc.system["Id"]  # what it says makes no sense any more: begin anew
        bmc.system["Boot"] = 17
        with pytest.raises((Unreachable, Refused)):
            await RedfishBoard(lines).boot_device(node(bmc))
        bmc.mood = 404
        with pytest.raises((Unreachable, Refused)):
            await button.power(node(bmc))
        gc.collect()

    asyncio.run(story())
    lines._lines.clear()
    gc.collect()
    assert asked
    assert not any(asked)


@pytest.mark.parametrize("mood", [408, 423, 425, 429, 500, 503])
def test_a_busy_bmc_is_asked_again(bmc, lines, mood):
    async def story():
        power = Switch(RedfishButton(lines))
        bmc.mood = mood
        outcome = await power.set(node(bmc), PowerTarget.ON, "t")
        assert isinstance(outcome, Wait)
        assert f"HTTP {mood}" in outcome.reason

    asyncio.run(story())


@pytest.mark.parametrize("said", [None, "Paused", "Sleeping", 17])
def test_power_that_is_neither_on_nor_off_is_told_as_such(bmc, lines, said):
    async def story():
        bmc.system["PowerState"] = said
        power = Switch(RedfishButton(lines))
        with pytest.raises(Unreachable, match=r"neither on nor off.*may be starting"):
            await power.read(node(bmc))
        outcome = await power.set(node(bmc), PowerTarget.ON, "t")
        assert isinstance(outcome, Wait)
        assert not bmc.orders

    asyncio.run(story())


@pytest.mark.parametrize("status", [400, 409])
def test_a_machine_that_is_there_by_itself_when_its_bmc_refuses_the_order_is_there(
    bmc, lines, status
):
    """One that flaps may have moved between the reading and the order."""

    def moved(method, body):
        bmc.orders.append(body)
        bmc.system["PowerState"] = "On"
        return status

    bmc.told = moved

    async def story():
        power = Switch(RedfishButton(lines))
        assert isinstance(await power.set(node(bmc), PowerTarget.ON, "t"), Wait)
        assert isinstance(await power.set(node(bmc), PowerTarget.ON, "t"), Done)
        assert len(bmc.orders) == 1

    asyncio.run(story())


def test_a_machine_on_its_way_off_is_not_off_yet_and_may_be_told_twice(bmc, lines, monkeypatch):
    monkeypatch.setitem(switch.RESEND_S, switch.PowerOrder.SOFT_OFF, 0.0)

    async def story():
        power = Switch(RedfishButton(lines))
        bmc.system["PowerState"] = "On"
        assert isinstance(await power.set(node(bmc), PowerTarget.SOFT_OFF, "t"), Wait)
        bmc.system["PowerState"] = "PoweringOff"
        bmc.reset_status = 400  # it has heard that before
        assert isinstance(await power.set(node(bmc), PowerTarget.SOFT_OFF, "t"), Wait)
        assert len(bmc.orders) == 2
        bmc.system["PowerState"] = "Off"
        assert isinstance(await power.set(node(bmc), PowerTarget.SOFT_OFF, "t"), Done)
        bmc.system["PowerState"] = "On"
        assert isinstance(await power.set(node(bmc), PowerTarget.SOFT_OFF, "new"), Failed)

    asyncio.run(story())


@pytest.mark.parametrize(
    ("info", "words"),
    [
        ({"redfish_address": "fe80::1"}, r"written in \[\]"),
        ({"redfish_address": "bmc:99999"}, "no proper port"),
        ({"redfish_address": "https://bmc:port"}, "no proper port"),
        ({"redfish_address": "https://a..b"}, "no name of a machine"),
        ({"redfish_address": {"a": 1}}, "Mend driver_info"),
        (
            {"redfish_auth_type": "basic", "redfish_password": "5 \u20ac"},
            "ASCII, or redfish_auth_type",
        ),
    ],
)
def test_an_address_that_is_none_is_refused_in_words(bmc, lines, info, words):
    async def story():
        with pytest.raises(Refused, match=words) as why:
            await RedfishButton(lines).power(node(bmc, **info))
        assert "\u20ac" not in str(why.value)

    asyncio.run(story())


def test_a_missing_file_of_a_ca_is_told_and_an_empty_word_trusts_nobody_more(bmc, lines):
    async def story():
        secure = bmc.url.replace("http:", "https:")
        with pytest.raises(Refused, match="redfish_verify_ca"):
            await RedfishButton(lines).power(
                node(bmc, redfish_address=secure, redfish_verify_ca="/nowhere/ca.pem")
            )
        known = {key.verify for key in lines._lines}
        with pytest.raises(Refused, match="TLS"):
            await RedfishButton(lines).power(
                node(bmc, redfish_address=secure, redfish_verify_ca="")
            )
        assert {key.verify for key in lines._lines} - known == {True}

    asyncio.run(story())


def test_a_certificate_that_becomes_another_in_the_middle_is_waited_for(lines, tmp_path):
    """As when it ends, or a BMC makes itself a new one; it may be mended at either side."""
    first, second = (self_signed(tmp_path / name) for name in ("first.pem", "second.pem"))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(first)

    async def story(bmc):
        button = RedfishButton(lines)
        known = node(bmc, redfish_verify_ca=str(first))
        assert await button.power(known) is PowerState.OFF
        tls.load_cert_chain(second)
        with pytest.raises(Unreachable, match=r"not one that is trusted here \(self.signed.*redf"):
            await button.power(known)
        with pytest.raises(Refused, match="not one that is trusted here"):
            await button.power(node(bmc, redfish_username="new", redfish_verify_ca=str(first)))
        assert await button.power(node(bmc, redfish_verify_ca=str(second))) is PowerState.OFF
        tls.load_cert_chain(first)
        assert await button.power(known) is PowerState.OFF

    with moody_bmc(tls=tls) as bmc:
        asyncio.run(story(bmc))


def test_a_bmc_may_call_its_drive_otherwise(lines):
    async def story(bmc):
        board = RedfishBoard(lines)
        assert await board.boot_devices(node(bmc)) == [BootDevice.DISK, BootDevice.CDROM]
        await board.set_boot_device(node(bmc), BootDevice.CDROM, persistent=False)
        assert bmc.system["Boot"]["BootSourceOverrideTarget"] == "UsbCd"
        assert (await board.boot_device(node(bmc))).boot_device is BootDevice.CDROM
        with pytest.raises(Refused, match="only from Hdd, UsbCd"):
            await board.set_boot_device(node(bmc), BootDevice.PXE, persistent=False)

    with moody_bmc(offered=("Hdd", "UsbCd")) as bmc:
        asyncio.run(story(bmc))


def test_a_bmc_without_lasting_choices_starts_the_disk_all_the_same(bmc, lines, tmp_path):
    told = bmc.told

    def once_only(method, body):
        enabled = (body.get("Boot") or {}).get("BootSourceOverrideEnabled")
        return 400 if enabled == "Continuous" else told(method, body)

    bmc.told = once_only

    async def story():
        ramdisks = Ramdisks(RamdiskSettings(tmp_path, "http://here", "http://here"))
        booter = Booter(Switch(RedfishButton(lines)), RedfishBoard(lines), None, ramdisks)
        assert isinstance(await booter.disk(node(bmc), "t"), Wait)
        assert bmc.system["Boot"]["BootSourceOverrideTarget"] == "Hdd"

    asyncio.run(story())


def test_bmcs_that_answer_slowly_do_not_hold_up_those_that_do_not(bmc, monkeypatch):
    lines = Lines(threads=2)
    slow = [node(bmc, redfish_username=f"user-{n}") for n in range(6)]

    async def story(quick):
        button = RedfishButton(lines)
        monkeypatch.setattr(lines_module, "_LONG_S", -1.0)  # whatever they take is long
        await asyncio.gather(*(button.power(at) for at in slow))
        monkeypatch.setattr(lines_module, "_LONG_S", 3600.0)
        await button.power(node(quick))
        bmc.answers.clear()
        asked = [asyncio.create_task(button.power(at)) for at in slow]
        await asyncio.sleep(0.1)
        async with asyncio.timeout(15.0):
            assert await button.power(node(quick)) is PowerState.OFF
        assert not any(one.done() for one in asked)
        bmc.answers.set()
        assert set(await asyncio.gather(*asked)) == {PowerState.OFF}

    with moody_bmc() as quick:
        asyncio.run(story(quick))
    lines.close()


def test_ten_thousand_bmcs_keep_their_sessions_from_one_sweep_to_the_next():
    """Else each would be logged in anew every time."""
    lines = Lines()
    addresses = [Address.of({"redfish_address": f"bmc-{number}"}) for number in range(10_000)]
    first, second = ([lines._line(address) for address in addresses] for _ in range(2))
    assert all(before is now for before, now in zip(first, second, strict=True))
    lines.close()
