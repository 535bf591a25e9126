"""What starts a guest, or keeps its disk, waits until a move that was given up is undone: else it
would run twice, or on a disk that is about to be deleted.
"""

from collections.abc import Iterator

import pytest

from tests.compute.cloud import Cloud
from tests.compute.cloud import cloud
from tests.compute.workers.moves import LEFT
from tests.compute.workers.moves import during
from tests.compute.workers.moves import home_of
from tests.compute.workers.moves import in_one_place
from tests.compute.workers.moves import reset
from tests.compute.workers.moves import until

NEVER = 3600.0
ASKED = {
    "restore": ("restore", None, "ACTIVE"),
    "start": ("os-start", None, "ACTIVE"),
    "reboot": ("reboot", {"type": "SOFT"}, "ACTIVE"),
    "shelve": ("shelve", None, "SHELVED"),
}


@pytest.fixture(scope="module")
def keeping(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """A cloud whose deleted servers can be restored, and whose shelved ones stay."""
    options = {"reclaim_interval_s": 3600, "shelved_offload_time_s": -1}
    with cloud(tmp_path_factory.mktemp("data"), **options) as made:
        yield made


def _stop(cloud: Cloud, uuid: str) -> None:
    assert cloud.act(uuid, "os-stop").status == 202
    cloud.until(uuid, "SHUTOFF")


@pytest.mark.parametrize("asked", ASKED)
def test_it_waits_for_a_move_that_is_to_be_undone(
    keeping: Cloud, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    monkeypatch.setattr("siderite.compute.workers.leaving._AGAIN_S", 0.05)
    uuid = keeping.boot()
    home = home_of(keeping, uuid)
    keeping.script(f"server:{uuid}", latency_s={"finish": NEVER}, fail={"revert": "not now"})
    assert keeping.act(uuid, "migrate").status == 202
    during(keeping, uuid, "resize_finish")
    if asked == "restore":
        assert keeping.ask("DELETE", f"/servers/{uuid}").status == 204
        keeping.until(uuid, "SOFT_DELETED")
    else:
        assert keeping.act(uuid, "os-resetState", {"state": "active"}).status == 202
    if asked == "start":
        _stop(keeping, uuid)
    action, value, then = ASKED[asked]
    assert keeping.act(uuid, action, value).status == 202
    seen = keeping.wait(
        uuid,
        lambda seen: (
            seen["OS-EXT-STS:task_state"] is None or "not settled" in str(seen["wait_reason"])
        ),
    )
    assert seen["OS-EXT-STS:task_state"] is not None
    keeping.guests.scripts.set(f"server:{uuid}", None)
    keeping.until(uuid, then)
    in_one_place(keeping, uuid, home)


def test_it_waits_for_no_move_that_is_only_to_be_confirmed(keeping: Cloud) -> None:
    uuid = keeping.boot()
    assert keeping.act(uuid, "migrate").status == 202
    keeping.until(uuid, "VERIFY_RESIZE")
    keeping.script(f"server:{uuid}", latency_s={"confirm": NEVER})
    assert keeping.act(uuid, "os-resetState", {"state": "active"}).status == 202
    _stop(keeping, uuid)
    assert keeping.act(uuid, "os-start").status == 202
    keeping.until(uuid, "ACTIVE")
    until(keeping, uuid, LEFT, 1)
    reset(keeping, uuid)
