"""BMCs that answer in odd ways: redirects, null where others have something, our own words."""

import asyncio
import gc
import json
import re
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from socketserver import StreamRequestHandler

import pytest

from siderite.baremetal.domain.hardware import BootDevice
from siderite.baremetal.domain.hardware import BootMode
from siderite.baremetal.domain.hardware import HardwareError
from siderite.baremetal.domain.hardware import MediaDevice
from siderite.baremetal.domain.hardware import Refused
from siderite.baremetal.domain.hardware import Unreachable
from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import Failed
from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.domain.power import PowerState
from siderite.baremetal.domain.power import PowerTarget
from siderite.baremetal.domain.steps import Family
from siderite.baremetal.domain.steps import Step
from siderite.baremetal.drivers.contract import Task
from siderite.baremetal.drivers.contract import TaskEnd
from siderite.baremetal.drivers.redfish.button import RedfishButton
from siderite.baremetal.drivers.redfish.lines import Lines
from tests.baremetal.drivers.machine import Machine
from tests.baremetal.drivers.test_redfish_tasks import process
from tests.lab.bmc import PASSWORD
from tests.lab.redfish_moody import moody_bmc
from tests.lab.redfish_paper import ADAPTER
from tests.lab.redfish_paper import BIOS
from tests.lab.redfish_paper import CHASSIS
from tests.lab.redfish_paper import MANAGER
from tests.lab.redfish_paper import SYSTEM
from tests.support.serving import serving
from tests.support.trickling import trickling


@contextmanager
def redirecting(to, status):
    """A port that sends everybody on to this address."""

    class Answers(BaseHTTPRequestHandler):
        def __getattr__(self, name):
            if name.startswith("do_"):
                return self.answer
            raise AttributeError(name)

        def answer(self):
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(status)
            self.send_header("Location", f"{to}{self.path}")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format, *args):
            """Say nothing."""

    with serving(Answers) as url:
        yield url


@pytest.mark.parametrize("status", [301, 302, 303])
def test_an_order_that_is_redirected_is_not_taken_for_given(tmp_path, status):
    async def story(bmc, address):
        fate = "may have been taken" if status == 303 else "do not arrive"
        words = f"sends orders on to {bmc.url}, where they {fate}.*redfish_address"
        for auth, is_read in (("auto", True), ("basic", True), ("session", False)):
            info = {**bmc.driver_info, "redfish_address": address, "redfish_auth_type": auth}
            at = Machine(info).at
            bmc.sessions.clear()
            with process(tmp_path) as driver:
                if auth != "basic":
                    with pytest.raises(Refused, match=words):
                        await driver.power.read(at)
                bmc.sessions.add(None)  # asks nobody who they are
                if is_read:
                    assert await driver.power.read(at) is PowerState.OFF
                with pytest.raises(Refused, match=words):
                    await driver.boot_devices.set_boot_device(at, BootDevice.PXE, persistent=False)
                if is_read:
                    assert await driver.power.read(at) is PowerState.OFF
        assert bmc.orders == []

    with moody_bmc() as bmc, redirecting(bmc.url, status) as address:
        asyncio.run(story(bmc, address))


def test_links_that_are_null_leave_out_only_what_they_would_lead_to(front, tmp_path):
    front.page = lambda path, page: page | ({"Links": None} if path == SYSTEM else {})
    machine = Machine({**front.driver_info, "redfish_system_id": SYSTEM}, inspect="redfish")

    async def story():
        with process(tmp_path) as driver:
            assert await driver.sensors.sensors(machine.at) == []
            parts = await driver.firmware.components(machine.at)
            assert [one.component for one in parts] == ["bios"]
            step = Step("inspect", "inspect")
            done = await driver.steps.run(machine.at, Family.INSPECT, step, "work/0")
            assert isinstance(done, Done), done
            with pytest.raises(Refused, match="no serial console"):
                await driver.console.start(machine.at)

    asyncio.run(story())


@pytest.mark.parametrize(
    "said",
    [
        b"[]", b"null", b'"no"', b"3", b'{"error": "no"}', b'{"error": null}', b"<html>", b"",
        b"\xff{", b'{"error": {"@Message.ExtendedInfo": ["no"]}}',
        b'{"error": {"@Message.ExtendedInfo": "no"}}', b'{"error": {"message": {"no": 1}}}',
    ],
)  # fmt: skip
def test_an_error_counts_whatever_is_said_with_it(front, tmp_path, said):
    """What is not there is not, what is refused is, and a busy BMC is busy."""
    at = Machine({**front.driver_info, "redfish_system_id": SYSTEM}, inspect="redfish").at
    secure = f"{SYSTEM}/SecureBoot"
    front.page = lambda path, page: (
        page | ({"SecureBoot": {"@odata.id": secure}} if path == SYSTEM else {})
    )
    front.says_with = said

    async def story():
        with process(tmp_path) as driver:
            front.is_busy = lambda method, path: 404 if path == secure else 0
            assert await driver.secure_boot.secure_boot(at) is None
            front.is_busy = lambda method, path: 400 if path.endswith("Reset") else 0
            failed = await driver.power.set(at, PowerTarget.ON, "t")
            assert isinstance(failed, Failed)
            assert "refused power on: HTTP 400" in failed.reason
            front.is_busy = lambda method, path: 503
            with pytest.raises(Unreachable, match="HTTP 503") as why:
                await driver.power.read(at)
            assert why.value.is_busy

    asyncio.run(story())


@pytest.mark.parametrize(
    ("where", "says"),
    [
        (f"{CHASSIS}/NetworkAdapters", {"Members": None}), (ADAPTER, {"Controllers": [None, 3]}),
        (CHASSIS, []), (MANAGER, []), (BIOS, []), (BIOS, {"Attributes": [1]}),
        (SYSTEM, {"Boot": None, "MemorySummary": None, "BiosVersion": 3, "Model": {"a": 1}}),
        (SYSTEM, {"EthernetInterfaces": {"@odata.id": BIOS}, "Manufacturer": ["x"]}),
        (SYSTEM, {"Storage": {"@odata.id": ADAPTER}, "Processors": {"@odata.id": ADAPTER}}),
        (SYSTEM, {"Processors": {"@odata.id": f"{CHASSIS}/NetworkAdapters"}}),
    ],
)  # fmt: skip
def test_a_page_that_makes_no_sense_leaves_out_only_what_it_would_tell(
    front, tmp_path, where, says
):
    def page(path, said):
        if path != where:
            return said
        return says if isinstance(says, list) else said | says

    front.page = page
    at = Machine({**front.driver_info, "redfish_system_id": SYSTEM}, inspect="redfish").at

    async def story():
        with process(tmp_path) as driver:
            step = Step("inspect", "inspect")
            done = await driver.steps.run(at, Family.INSPECT, step, "work/0")
            assert isinstance(done, Done), done
            assert done.found.inventory["cpu"]["count"] == 0
            assert "bios" in [one.component for one in done.found.firmware]
            for part in await driver.firmware.components(at):
                told = (part.current_version, part.vendor, part.model, part.serial_number)
                assert all(one is None or isinstance(one, str) for one in told)
            assert (await driver.boot_devices.boot_device(at)).boot_device is None
            assert await driver.boot_modes.boot_mode(at) in (BootMode.BIOS, None)
            assert await driver.sensors.sensors(at) == []

    asyncio.run(story())


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("1.0\0\0", "1.0"), ("1.0 \ud83d", "1.0 ?"), ("1.0 \N{GRINNING FACE}",) * 2,
        ("1.0 \\u0000",) * 2,
    ],
)  # fmt: skip
def test_what_no_database_can_store_is_left_out_of_what_a_bmc_says(front, tmp_path, said, kept):
    told = {SYSTEM: {"BiosVersion": said}, BIOS: {"Attributes": {said: said}}}
    front.page = lambda path, page: page | told.get(path, {})
    at = Machine({**front.driver_info, "redfish_system_id": SYSTEM}).at

    async def story():
        with process(tmp_path) as driver:
            assert (await driver.firmware.components(at))[0].current_version == kept
            [setting] = await driver.bios.settings(at)
            assert (setting.name, setting.value) == (kept, kept)
            front.says_with = json.dumps({"error": {"message": said}}).encode()
            front.is_busy = lambda method, path: 503
            with pytest.raises(Unreachable, match=re.escape(f"(HTTP 503, {kept})")):
                await driver.power.read(at)

    asyncio.run(story())


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (b"Content-Length: 900", b'{"Id": "1",'),
        (b"Transfer-Encoding: chunked", b'5\r\n{"Id"\r\nno\r\n'),
        (b"Content-Encoding: gzip", b'{"Id": "1"}'),
    ],
)
@pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning")
def test_an_answer_that_is_cut_short_is_told_as_that(tmp_path, head, body):
    """requests leaves the connection that such an answer came by to be collected as garbage."""

    class Answers(StreamRequestHandler):
        def handle(self):
            while self.rfile.readline().strip():
                pass
            self.wfile.write(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n" + body)

    async def story(url):
        with process(tmp_path) as driver:
            at = Machine({"redfish_address": url, "redfish_auth_type": "basic"}).at
            with pytest.raises(Unreachable, match="its answer was cut short or spoilt"):
                await driver.power.read(at)

    with serving(Answers) as url:
        asyncio.run(story(url))
    gc.collect()


@pytest.mark.parametrize(("pause_s", "silence_s"), [(0.05, 0.2), (0.0, 60.0)])
def test_an_answer_without_an_end_is_given_up_and_keeps_no_thread(tmp_path, pause_s, silence_s):
    """It trickles, so that the BMC is never silent for long; or it pours."""

    async def story(url):
        lines = Lines(threads=1, timeout_s=silence_s)
        at = Machine({"redfish_address": url, "redfish_auth_type": "basic"}).at
        async with asyncio.timeout(30):
            for _ in range(2):
                with pytest.raises(Unreachable, match="its answer does not come to an end"):
                    await RedfishButton(lines).power(at)
        lines.close()

    with trickling(pause_s) as url:
        asyncio.run(story(url))


@pytest.mark.parametrize(("count", "is_known"), [(0, False), (1, True), (2, False)])
def test_a_bmc_of_several_systems_has_no_only_one_though_others_are_away(
    front, tmp_path, count, is_known
):
    paths = [SYSTEM, "/redfish/v1/Systems/away"][:count]
    told = {"Name": "Systems", "Members": [{"@odata.id": path} for path in paths]}
    systems = {"Systems": {"@odata.id": CHASSIS}}
    front.page = lambda path, page: {CHASSIS: told, "/redfish/v1": page | systems}.get(path, page)
    at = Machine(front.driver_info).at

    async def story():
        with process(tmp_path) as driver:
            if is_known:
                assert await driver.power.read(at) is PowerState.OFF
                return
            with pytest.raises(Refused, match=r"not exactly one system\. Set redfish_system_id"):
                await driver.power.read(at)

    asyncio.run(story())


@pytest.mark.parametrize("part", ["EthernetInterfaces", "Storage", "Processors", "Bios"])
def test_a_bmc_that_falls_silent_in_an_inspection_has_not_told_that_there_is_nothing(
    front, tmp_path, part
):
    """Or the node would lose what is known of it."""
    path = f"{SYSTEM}/{part}"
    front.page = lambda at, said: said | ({part: {"@odata.id": path}} if at == SYSTEM else {})
    front.is_mute = lambda method, at: at == path
    machine = Machine({**front.driver_info, "redfish_system_id": SYSTEM}, inspect="redfish")

    async def story():
        with process(tmp_path) as driver:
            step = Step("inspect", "inspect")
            waiting = await driver.steps.run(machine.at, Family.INSPECT, step, "work/0")
            assert isinstance(waiting, Wait), waiting
            front.is_mute = lambda method, at: False
            assert isinstance(
                await driver.steps.run(machine.at, Family.INSPECT, step, "work/0"), Done
            )

    asyncio.run(story())


@pytest.mark.parametrize("state", [["Running"], {"a": 1}, 3, None])
def test_a_task_whose_state_is_no_word_has_none(front, tmp_path, state):
    at = Machine({**front.driver_info, "redfish_system_id": SYSTEM}).at
    front.page = lambda path, page: page | {"TaskState": state}

    async def story():
        with process(tmp_path) as driver:
            assert await driver.tasks.ask(at, Task(SYSTEM, "a test")) is TaskEnd.DONE

    asyncio.run(story())


NOWHERE = {"@odata.id": "/redfish/v1/Nowhere/1"}
MANAGERS, CHASSIS_ = ([NOWHERE, {"@odata.id": path}] for path in (MANAGER, CHASSIS))


@pytest.mark.parametrize(
    ("links", "parts"),
    [
        ({"ManagedBy": MANAGERS, "Chassis": CHASSIS_}, ["bios", "bmc", "nic:Slot1"]),
        ({"Managers": MANAGERS, "ManagedBy": [], "Chassis": [NOWHERE]}, ["bios", "bmc"]),
        ({"ManagedBy": [None, 3, "x", {}, {"@odata.id": 3}], "Chassis": {}}, ["bios"]),
        ({"ManagedBy": None, "Chassis": None}, ["bios"]),
        ({}, ["bios"]),
    ],
)
def test_links_that_lead_nowhere_leave_out_only_that(front, tmp_path, links, parts):
    front.page = lambda path, page: page | ({"Links": links} if path == SYSTEM else {})
    at = Machine({**front.driver_info, "redfish_system_id": SYSTEM}, inspect="redfish").at

    async def story():
        with process(tmp_path) as driver:
            assert [one.component for one in await driver.firmware.components(at)] == parts
            assert await driver.sensors.sensors(at) == []
            step = Step("inspect", "inspect")
            done = await driver.steps.run(at, Family.INSPECT, step, "work/0")
            assert [one.component for one in done.found.firmware] == parts
            with pytest.raises(Refused, match="no serial console"):
                await driver.console.start(at)

    asyncio.run(story())


def test_a_bmc_that_repeats_what_it_was_told_gives_no_secret_away(front, tmp_path):
    info = {**front.driver_info, "redfish_system_id": SYSTEM, "redfish_auth_type": "session"}
    at = Machine(info, boot="redfish-virtual-media").at

    async def story():
        with process(tmp_path) as driver:
            front.repeats = lambda method, path: path.endswith("Sessions")
            with pytest.raises(HardwareError, match="cannot take") as why:
                await driver.power.read(at)
            assert PASSWORD not in str(why.value)
            front.repeats = lambda method, path: method == "POST" and "Insert" in path
            with pytest.raises(Refused, match=r"cannot take.*images\.invalid/x\.iso") as why:
                await driver.virtual_media.insert(
                    at, MediaDevice.CDROM, "http://me:hunter2@images.invalid/x.iso"
                )
            assert "hunter2" not in str(why.value)

    asyncio.run(story())


@pytest.mark.sampled
@pytest.mark.parametrize("by_task", [True, False])
@pytest.mark.parametrize(
    "secret", ["http://me:hunter2@images.invalid/x", PASSWORD, "password=hunter2"]
)
def test_a_secret_where_a_bmcs_words_are_cut_is_not_shown_in_part(front, tmp_path, secret, by_task):
    at = Machine({**front.driver_info, "redfish_system_id": SYSTEM}).at

    async def story(driver, said):
        if by_task:
            front.by_task = lambda method, path: method == "PATCH"
            front.fails_with = said
        else:
            front.refuses = said
        with pytest.raises(Refused, match="the BMC says") as why:
            task = await driver.boot_devices.set_boot_device(at, BootDevice.CDROM, persistent=False)
            while True:
                await driver.tasks.ask(at, task)
        return str(why.value)

    with process(tmp_path) as driver:
        for room in range(1, len(secret)):
            said = f"the BMC says {'x' * (300 - 14 - room)} {secret}"
            told = asyncio.run(story(driver, said))
            assert not any(part in told for part in ("hunt", PASSWORD[:4])), room
