"""Seed 003: a guest gets a chance to shut down before it is powered off.

Each test names the promise that it is about. Time is simulated where it is the point; real guests
are in tests/compute/drivers/libvirt.
"""

import re
import time
from collections.abc import Callable
from collections.abc import Iterator
from datetime import UTC
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from siderite.compute.domain.outcome import Wait
from siderite.compute.domain.power import Power
from siderite.compute.domain.shutdown import Down
from siderite.compute.domain.shutdown import Look
from siderite.compute.domain.shutdown import PullPlug
from siderite.compute.domain.shutdown import Shutdown
from siderite.compute.domain.shutdown import Signal
from siderite.compute.domain.shutdown import decide
from siderite.compute.drivers.simulated import driver as simulated
from siderite.core.config import Config
from tests.compute.cloud import Cloud
from tests.compute.cloud import cloud
from tests.crash import server_storm
from tests.support.server import running_server

OURS = 901


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """A cloud whose shutdowns take as long as the default: nobody here waits for their end."""
    with cloud(tmp_path_factory.mktemp("data")) as made:
        yield made


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """A cloud that gives up after two seconds, and signals every second."""
    data = tmp_path_factory.mktemp("data")
    with cloud(data, shutdown_timeout_s=2, shutdown_retry_interval_s=1) as made:
        yield made


def ended(cloud: Cloud, uuid: str) -> str:
    return str(cloud.actions(uuid)[0]["events"][-1]["details"])


def is_asked(server: dict[str, Any]) -> bool:
    """Whether the guest was signalled, and gets its time."""
    return "asked to shut down" in str(server["wait_reason"])


def deaf(cloud: Cloud, **fields: Any) -> str:
    """A server that runs, and whose guest ignores signals."""
    uuid = cloud.boot(**fields)
    cloud.script(f"server:{uuid}", guest="ignores")
    return uuid


def signals_of_a_deaf_guest(timeout: float, interval: float) -> tuple[list[float], float, str]:
    """When a guest that ignores everything is signalled, when it is powered off, and how."""
    shutdown = Shutdown(timeout_s=timeout, interval_s=interval)
    now, sent = 0.0, list[float]()
    while True:
        match decide(shutdown, Power.RUNNING, now):
            case Signal():
                sent.append(now)
                began = now if shutdown.began is None else shutdown.began
                shutdown = Shutdown(timeout, interval, began, shutdown.signals + 1)
            case Look(again_in):
                now += again_in
            case PullPlug(how):
                return sent, now, how
            case Down():
                raise AssertionError("it is deaf")


def test_timeout_60_and_interval_10_are_six_signals_before_the_power_off() -> None:
    sent, off_at, how = signals_of_a_deaf_guest(60, 10)
    assert sent == pytest.approx([0, 10, 20, 30, 40, 50])
    assert (off_at, how) == (pytest.approx(60), "forced")


def test_a_timeout_of_0_powers_off_without_a_signal() -> None:
    assert signals_of_a_deaf_guest(0, 10) == ([], 0.0, "hard")


def test_the_defaults_are_60_and_10() -> None:
    assert (Config().shutdown_timeout_s, Config().shutdown_retry_interval_s) == (60, 10)


def test_soft_is_the_default_and_an_obeying_guest_stops_at_once(hasty: Cloud) -> None:
    uuid = hasty.boot()
    assert hasty.act(uuid, "os-stop").status == 202
    hasty.until(uuid, "SHUTOFF")
    assert ended(hasty, uuid).startswith("the guest shut down after 1 signals")


def test_a_guest_that_ignores_it_is_powered_off_at_the_timeout(hasty: Cloud) -> None:
    uuid = hasty.boot()
    hasty.script(f"server:{uuid}", guest="ignores")
    hasty.act(uuid, "os-stop")
    hasty.until(uuid, "SHUTOFF")
    assert ended(hasty, uuid).startswith("powered off after")
    facts = hasty.facts(uuid)
    [told] = [data for name, data in facts if name == "instance.shutdown.end"]
    begun = [name for name, _ in facts if name.startswith("instance.shutdown")]
    assert begun == ["instance.shutdown.start", "instance.shutdown.end"]
    assert told["how"] == "forced"
    assert told["signals"] in (1, 2)  # a machine that is slow may be late for the second
    assert told["seconds"] >= 2


def test_the_time_of_a_guest_that_cannot_even_be_signalled_ends_too(
    hasty: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its agent hangs, say, and its host waits for that."""
    uuid = hasty.boot(imageRef=hasty.make_image(os_shutdown_timeout="1"))
    driver = simulated._Simulated
    signal = driver.signal

    async def busy(its: Any, at: Any, guest: Any, *rest: Any) -> Any:
        if guest.uuid == uuid:
            return Wait("its agent does not answer", 3600.0)
        return await signal(its, at, guest, *rest)

    monkeypatch.setattr(driver, "signal", busy)
    hasty.act(uuid, "os-stop")
    hasty.until(uuid, "SHUTOFF")
    assert ended(hasty, uuid).startswith("powered off after 0 signals and")
    told = [name for name, _ in hasty.facts(uuid) if name.startswith("instance.shutdown")]
    assert told == ["instance.shutdown.start", "instance.shutdown.end"]


def test_what_its_host_does_not_have_is_down(patient: Cloud) -> None:
    uuid = deaf(patient)
    patient.guests.remove(uuid, patient.show(uuid)["OS-EXT-SRV-ATTR:host"])
    patient.act(uuid, "os-stop")
    patient.until(uuid, "SHUTOFF")
    assert ended(patient, uuid) == "nothing ran"


def test_a_guest_whose_power_cannot_be_read_is_not_signalled(patient: Cloud) -> None:
    uuid = patient.boot()
    patient.script(f"server:{uuid}", unreachable=True)
    patient.act(uuid, "os-stop")
    patient.wait(uuid, lambda seen: "cannot be read" in str(seen["wait_reason"]))
    told = [name for name, _ in patient.facts(uuid)]
    assert "instance.shutdown.start" not in told


def test_a_guest_that_is_not_ready_yet_stops_when_the_signal_comes_again(hasty: Cloud) -> None:
    uuid = hasty.boot(imageRef=hasty.make_image(os_shutdown_timeout="600"))
    hasty.script(f"server:{uuid}", ready_s=3600)
    hasty.act(uuid, "os-stop")
    hasty.wait(uuid, is_asked)
    hasty.script(f"server:{uuid}", ready_s=0)
    hasty.until(uuid, "SHUTOFF")
    signals = re.fullmatch(r"the guest shut down after (\d+) signals.*", ended(hasty, uuid))
    assert signals is not None
    assert int(signals[1]) > 1


@pytest.mark.parametrize(
    ("action", "value", "status"),
    [
        ("os-stop", {}, "SHUTOFF"),
        ("rescue", {}, "RESCUE"),
        ("resize", {}, "VERIFY_RESIZE"),
        ("shelve", {}, "SHELVED_OFFLOADED"),
        ("migrate", {}, "VERIFY_RESIZE"),
    ],
)
@pytest.mark.parametrize("word", ["HARD", "hard"])
def test_hard_powers_off_at_once_for_each_of_the_five(
    patient: Cloud, action: str, value: dict[str, str], status: str, word: str
) -> None:
    uuid = patient.boot()
    patient.script(f"server:{uuid}", guest="ignores")
    if action == "resize":
        value = {"flavorRef": patient.make_flavor(ram=256)}
    answer = patient.act(uuid, action, {**value, "shutdown_type": word}, version=OURS)
    assert answer.status in (200, 202), answer
    patient.until(uuid, status)


def test_resize_takes_the_seeds_flavor_id_too(patient: Cloud) -> None:
    uuid, flavor = patient.boot(), patient.make_flavor(ram=256)
    asked = {"flavor_id": flavor, "shutdown_type": "HARD"}
    torn = patient.act(uuid, "resize", {**asked, "flavorRef": patient.flavor}, version=OURS)
    assert torn.status == 400, "two sizes at once"
    answer = patient.act(uuid, "resize", asked, version=OURS)
    assert answer.status == 202, answer
    patient.until(uuid, "VERIFY_RESIZE")


@pytest.mark.parametrize("action", ["os-stop", "rescue", "resize", "shelve", "migrate"])
def test_another_word_is_refused(patient: Cloud, action: str) -> None:
    uuid = patient.boot()
    wish = {"flavorRef": patient.make_flavor(ram=256)} if action == "resize" else {}
    for word in ("GENTLY", "", None, 1):
        answer = patient.act(uuid, action, {**wish, "shutdown_type": word}, version=OURS)
        assert answer.status == 400
    assert patient.show(uuid)["status"] == "ACTIVE"


@pytest.mark.parametrize("action", ["os-stop", "shelve", "shelveOffload"])
def test_what_is_misspelt_is_refused_where_the_parameter_is_known(
    patient: Cloud, action: str
) -> None:
    uuid = patient.boot()
    assert patient.act(uuid, action, {"shutdownType": "HARD"}, version=OURS).status == 400
    assert patient.show(uuid)["status"] == "ACTIVE"


def test_below_its_version_resize_and_rescue_refuse_the_parameter(patient: Cloud) -> None:
    uuid = patient.boot()
    assert patient.act(uuid, "rescue", {"shutdown_type": "HARD"}, version=104).status == 400
    asked = {"flavorRef": patient.flavor, "shutdown_type": "HARD"}
    assert patient.act(uuid, "resize", asked, version=104).status == 400
    for version in (56, 104, 900):  # before that, its body is not looked at
        answer = patient.act(uuid, "migrate", {"shutdown_type": "HARD"}, version=version)
        assert answer.status == 400
    assert patient.show(uuid)["status"] == "ACTIVE"


def test_the_image_overrides_the_timeout(patient: Cloud) -> None:
    image = patient.make_image(os_shutdown_timeout="0")
    uuid = patient.boot(imageRef=image)
    patient.script(f"server:{uuid}", guest="ignores")
    patient.act(uuid, "os-stop")
    patient.until(uuid, "SHUTOFF")
    assert ended(patient, uuid) == "powered off without a signal"


FIVE = {
    "os-stop": "SHUTOFF", "rescue": "RESCUE", "resize": "VERIFY_RESIZE",
    "shelve": "SHELVED_OFFLOADED", "migrate": "VERIFY_RESIZE",
}  # fmt: skip


@pytest.mark.parametrize("action", FIVE)
def test_soft_is_the_default_of_each_and_a_hard_request_overrides_it(
    patient: Cloud, action: str
) -> None:
    uuid = deaf(patient)
    wish = {"flavorRef": patient.make_flavor(ram=256)} if action == "resize" else {}
    assert patient.act(uuid, action, wish, version=OURS).status in (200, 202)
    patient.wait(uuid, is_asked)
    again = patient.act(uuid, action, {**wish, "shutdown_type": "SOFT"}, version=OURS)
    assert again.status == 409, "a second soft one changes nothing"
    hard = patient.act(uuid, action, {**wish, "shutdown_type": "HARD"}, version=OURS)
    assert hard.status in (200, 202), hard
    patient.until(uuid, FIVE[action])
    told = str(patient.actions(uuid)[1]["events"][-1]["details"])
    assert re.match(r"powered off after \d+ signals, as was asked for", told), told


def test_the_deadline_of_the_action_leaves_the_guest_its_time(patient: Cloud) -> None:
    """An image may give it longer than the action itself may take."""
    for image, seconds in (
        (patient.image, 660),
        (patient.make_image(os_shutdown_timeout="3000"), 3600),
    ):
        uuid = deaf(patient, imageRef=image)
        patient.act(uuid, "os-stop")
        shown = patient.wait(uuid, is_asked)
        asked = datetime.fromisoformat(patient.actions(uuid)[0]["start_time"]).replace(tzinfo=UTC)
        left = datetime.fromisoformat(shown["deadline"]) - asked
        assert left.total_seconds() == pytest.approx(seconds, abs=30)
        patient.act(uuid, "os-stop", {"shutdown_type": "HARD"}, version=OURS)
        patient.until(uuid, "SHUTOFF")


def test_a_hard_request_for_something_else_does_not_override(patient: Cloud) -> None:
    uuid, flavor = deaf(patient), patient.make_flavor(ram=256)
    assert patient.act(uuid, "resize", {"flavorRef": flavor}, version=OURS).status == 202
    patient.wait(uuid, is_asked)
    other = {"flavorRef": patient.make_flavor(ram=128), "shutdown_type": "HARD"}
    assert patient.act(uuid, "resize", other, version=OURS).status == 409
    assert patient.act(uuid, "migrate", {"shutdown_type": "HARD"}, version=OURS).status == 409
    assert patient.act(uuid, "os-stop", {"shutdown_type": "HARD"}, version=OURS).status == 409
    same = {"flavorRef": flavor, "shutdown_type": "HARD"}
    assert patient.act(uuid, "resize", same, version=OURS).status == 202
    assert patient.until(uuid, "VERIFY_RESIZE")["flavor"]["ram"] == 256


def test_rebuild_shuts_down_cleanly_too_or_hard_if_asked(patient: Cloud, hasty: Cloud) -> None:
    uuid = hasty.boot()
    assert hasty.act(uuid, "rebuild", {"imageRef": hasty.image}).status == 202
    hasty.until(uuid, "ACTIVE")
    assert ended(hasty, uuid).startswith("the guest shut down after 1 signals")
    uuid = deaf(patient)
    wish = {"imageRef": patient.image, "shutdown_type": "hard"}
    assert patient.act(uuid, "rebuild", wish, version=OURS).status == 202
    patient.until(uuid, "ACTIVE")
    assert ended(patient, uuid) == "powered off without a signal"


def test_a_hard_rebuild_overrides_a_soft_one_and_has_the_last_word(patient: Cloud) -> None:
    uuid, other = deaf(patient), patient.make_image()
    assert patient.act(uuid, "rebuild", {"imageRef": patient.image}, version=OURS).status == 202
    patient.wait(uuid, is_asked)
    soft = patient.act(uuid, "rebuild", {"imageRef": other}, version=OURS)
    assert soft.status == 409
    assert patient.act(uuid, "os-stop", {"shutdown_type": "HARD"}, version=OURS).status == 409
    wish = {"imageRef": other, "shutdown_type": "HARD"}
    assert patient.act(uuid, "rebuild", wish, version=OURS).status == 202
    assert patient.until(uuid, "ACTIVE")["image"]["id"] == other


def test_shelve_offload_shuts_down_what_somebody_switched_on(tmp_path: Path) -> None:
    with cloud(tmp_path, shelved_offload_time_s=3600) as made:
        uuid = made.boot()
        made.act(uuid, "shelve")
        made.until(uuid, "SHELVED")
        [host] = made.guests.where(uuid)
        made.guests.set_power(uuid, host, Power.RUNNING)
        assert made.act(uuid, "shelveOffload").status == 202
        made.until(uuid, "SHELVED_OFFLOADED")
        assert ended(made, uuid).startswith("the guest shut down after 1 signals")


@pytest.mark.parametrize(
    ("action", "version"), [("os-stop", 104), ("os-stop", 900), ("shelve", 104), ("migrate", 55)]
)
def test_below_its_version_those_that_take_any_body_ignore_the_parameter(
    patient: Cloud, action: str, version: int
) -> None:
    uuid = deaf(patient)
    assert patient.act(uuid, action, {"shutdown_type": "HARD"}, version=version).status == 202
    patient.wait(uuid, is_asked)
    assert patient.act(uuid, action, {"shutdown_type": "HARD"}, version=OURS).status == 202
    patient.until(uuid, FIVE[action])


def test_how_it_ended_and_how_long_it_took_is_a_metric(hasty: Cloud) -> None:
    uuid = hasty.boot()
    hasty.act(uuid, "os-stop")
    hasty.until(uuid, "SHUTOFF")
    shown = hasty.app.ask("GET", "/metrics", version=None).body.decode()
    lines = [line for line in shown.splitlines() if "shutdown" in line and 'how="clean"' in line]
    assert any("_count" in line and float(line.split()[-1]) >= 1 for line in lines), lines


def test_delete_does_not_wait_for_the_guest(patient: Cloud) -> None:
    uuid = patient.boot()
    patient.script(f"server:{uuid}", guest="ignores")
    assert patient.ask("DELETE", f"/servers/{uuid}").status == 204
    patient.wait(uuid, lambda server: server["status"] == "GONE")


def test_the_wait_shows_its_reason_and_holds_nothing(patient: Cloud) -> None:
    uuid = patient.boot()
    patient.script(f"server:{uuid}", guest="ignores")
    patient.act(uuid, "os-stop")
    shown = patient.wait(uuid, lambda server: "asked to shut down" in str(server["wait_reason"]))
    assert shown["deadline"]
    patient.act(uuid, "os-stop", {"shutdown_type": "HARD"}, version=OURS)
    patient.until(uuid, "SHUTOFF")


@pytest.mark.serial
def test_the_wait_goes_on_with_its_remaining_time_after_a_kill(tmp_path: Path) -> None:
    options = {"shutdown_timeout_s": "4", "shutdown_retry_interval_s": "1"}
    with running_server(tmp_path, options=options) as server:
        storm = server_storm.Storm(server)
        server_storm.prepare(storm)
        headers = {**server.headers(), **server_storm.VERSION}

        def ask(method: str, path: str, body: Any = None) -> Any:
            reply = server.api.request(method, path, json=body, headers=headers)
            assert reply.is_success, reply.text
            return reply.json() if reply.content else None

        def until(is_so: Callable[[dict[str, Any]], bool]) -> None:
            deadline = time.monotonic() + 60
            while not is_so(seen := ask("GET", f"/compute/v2.1/servers/{uuid}")["server"]):
                assert time.monotonic() < deadline, seen
                time.sleep(0.05)

        ask("PUT", "/simulated-hosts/v1/scripts/all", {"guest": "ignores"})
        wish = {"name": "s", "flavorRef": storm.flavors[0], "imageRef": storm.image}
        made = ask("POST", "/compute/v2.1/servers", {"server": {**wish, "networks": "none"}})
        uuid = made["server"]["id"]
        until(lambda seen: seen["status"] == "ACTIVE")
        ask("POST", f"/compute/v2.1/servers/{uuid}/action", {"os-stop": None})
        until(is_asked)
        time.sleep(2)  # of its four seconds
        server.kill()
        server.start()
        until(lambda seen: seen["status"] == "SHUTOFF")
        where = f"/compute/v2.1/servers/{uuid}/os-instance-actions"
        request = ask("GET", where)["instanceActions"][0]["request_id"]
        [event] = ask("GET", f"{where}/{request}")["instanceAction"]["events"]
    told = re.fullmatch(r"powered off after (\d) signals and (.*) s", event["details"])
    assert told is not None
    assert int(told[1]) <= 4, "those before the kill count"
    took = datetime.fromisoformat(event["finish_time"]) - datetime.fromisoformat(
        event["start_time"]
    )
    assert took.total_seconds() - float(told[2]) < 1.5, "its time began before the kill"
