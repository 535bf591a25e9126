"""Seed 003: a guest gets a chance to shut down before it is powered off.

Each test names the promise that it is about. Time is simulated where it is the point; real guests
are in tests/compute/drivers/libvirt.
"""

from collections.abc import Iterator

import pytest

from siderite.compute.domain.power import Power
from siderite.compute.domain.shutdown import Down
from siderite.compute.domain.shutdown import Look
from siderite.compute.domain.shutdown import PullPlug
from siderite.compute.domain.shutdown import Shutdown
from siderite.compute.domain.shutdown import Signal
from siderite.compute.domain.shutdown import decide
from siderite.core.config import Config
from tests.compute.cloud import Cloud
from tests.compute.cloud import cloud

OURS = 901


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory, cheap_scrypt: None) -> Iterator[Cloud]:
    """A cloud whose shutdowns take as long as the default: nobody here waits for their end."""
    with cloud(tmp_path_factory.mktemp("data")) as made:
        yield made


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory, cheap_scrypt: None) -> Iterator[Cloud]:
    """A cloud that gives up after two seconds, and signals every second."""
    data = tmp_path_factory.mktemp("data")
    with cloud(data, shutdown_timeout_s=2, shutdown_retry_interval_s=1) as made:
        yield made


def ended(cloud: Cloud, uuid: str) -> str:
    return str(cloud.actions(uuid)[0]["events"][-1]["details"])


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
    assert ended(hasty, uuid).startswith("powered off after 2 signals")
    [told] = [data for name, data in hasty.facts(uuid) if name == "instance.shutdown.end"]
    assert (told["how"], told["signals"]) == ("forced", 2)
    assert told["seconds"] >= 2


def test_a_guest_that_is_not_ready_yet_stops_when_the_signal_comes_again(hasty: Cloud) -> None:
    uuid = hasty.create()
    hasty.script(f"server:{uuid}", ready_s=0.9)
    hasty.until(uuid, "ACTIVE")
    hasty.act(uuid, "os-stop")
    hasty.until(uuid, "SHUTOFF")
    assert ended(hasty, uuid).startswith("the guest shut down after 2 signals")


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
    answer = patient.act(uuid, "resize", asked, version=OURS)
    assert answer.status == 202, answer
    patient.until(uuid, "VERIFY_RESIZE")


@pytest.mark.parametrize("action", ["os-stop", "rescue", "shelve", "migrate"])
def test_another_word_is_refused(patient: Cloud, action: str) -> None:
    uuid = patient.boot()
    answer = patient.act(uuid, action, {"shutdown_type": "GENTLY"}, version=OURS)
    assert answer.status == 400
    assert patient.show(uuid)["status"] == "ACTIVE"


def test_below_its_version_resize_and_rescue_refuse_the_parameter(patient: Cloud) -> None:
    uuid = patient.boot()
    assert patient.act(uuid, "rescue", {"shutdown_type": "HARD"}, version=104).status == 400
    asked = {"flavorRef": patient.flavor, "shutdown_type": "HARD"}
    assert patient.act(uuid, "resize", asked, version=104).status == 400


def test_the_image_overrides_the_timeout(patient: Cloud) -> None:
    image = patient.make_image(os_shutdown_timeout="0")
    uuid = patient.boot(imageRef=image)
    patient.script(f"server:{uuid}", guest="ignores")
    patient.act(uuid, "os-stop")
    patient.until(uuid, "SHUTOFF")
    assert ended(patient, uuid) == "powered off without a signal"


def test_a_hard_request_overrides_a_soft_shutdown_under_way(patient: Cloud) -> None:
    uuid = patient.boot()
    patient.script(f"server:{uuid}", guest="ignores")
    assert patient.act(uuid, "os-stop", version=OURS).status == 202
    patient.wait(uuid, lambda server: server["OS-EXT-STS:task_state"] == "powering-off")
    assert patient.act(uuid, "os-stop", version=OURS).status == 409
    answer = patient.act(uuid, "os-stop", {"shutdown_type": "HARD"}, version=OURS)
    assert answer.status == 202, answer
    patient.until(uuid, "SHUTOFF")


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
