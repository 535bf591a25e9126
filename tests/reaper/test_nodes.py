"""A node that somebody left is waited for as long as it will do by itself, and no longer."""

from typing import Any

import pytest

from siderite.compute.usecases.placement import pending
from siderite.reaper import Reaper
from siderite.reaper import Rules
from siderite.reaper import reaper as reaping
from tests.reaper.test_serving import Direct
from tests.reaper.test_serving import Full
from tests.reaper.test_serving import full as full_cloud
from tests.reaper.test_turns import gold as gold_cloud

full, gold = full_cloud, gold_cloud


class Told(Direct):
    """Why a node is not available is told one reason after another; None is that it is."""

    def __init__(self, made: Full, node: str, *reasons: str | None) -> None:
        super().__init__(made)
        self.node, self.reasons = node, list(reasons)

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = await super().ask(method, path, body)
        if not path.startswith("/os-hypervisors/detail") or not self.reasons:
            return answer
        why = self.reasons.pop(0)
        for host in answer["hypervisors"]:
            if host["hypervisor_hostname"] == self.node:
                host.update(is_available=why is None, why_not=why)
        return answer


def is_had(cloud: Full, *reasons: str | None) -> tuple[bool, Reaper]:
    """Whether the first node can be had, that server 4711 leaves; and the reaper that looked."""
    node, waiting = min(cloud.hosts[1:]), cloud.show(cloud.pends(), version=901)
    until = reaping.time.monotonic() + 30
    reaper = Reaper(Told(cloud, node, *reasons), Rules(name="one"))
    return cloud.run(reaper._is_available(node, waiting, ["4711"], until=until)), reaper


def test_one_that_is_left_and_cleaned_is_waited_for(gold: Full) -> None:
    is_so, reaper = is_had(gold, "carries server 4711", "is cleaning, not available", None)
    assert is_so
    assert len(reaper._stuck) == 0


def test_one_that_somebody_else_took_is_not_waited_for(gold: Full) -> None:
    later = ["is cleaning, not available", "carries server 4712", None]
    is_so, reaper = is_had(gold, *later)
    assert not is_so
    assert min(gold.hosts[1:]) in reaper._stuck


def test_one_that_a_server_of_ours_took_is_looked_at_like_any_other(gold: Full) -> None:
    uuid = gold.ask("GET", "/servers?status=ACTIVE&all_tenants=1").json["servers"][0]["id"]
    is_so, reaper = is_had(gold, f"carries server {uuid}", None)
    assert not is_so
    assert len(reaper._stuck) == 0


def test_one_that_is_no_more_is_not_waited_for(gold: Full) -> None:
    waiting = gold.show(gold.pends(), version=901)
    longer = min(gold.hosts[1:])
    for gone in ("gone", longer[:-1]):  # the latter is a part of others' names
        assert gold.run(gold.reaper()._is_available(gone, waiting, [], until=0.0)) is False


def test_a_node_is_cleaned_for_as_long_as_compute_waits_and_no_longer(
    gold: Full, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the server were given up while the node that was freed for it is still cleaned."""
    assert reaping.MAKING_ROOM_S == pending.MAKING_ROOM_S
    monkeypatch.setattr(reaping, "MAKING_ROOM_S", 0.5)
    node, uuid = min(gold.hosts[1:]), gold.pends()
    reaper = Reaper(Told(gold, node, *["is cleaning, not available"] * 10_000), Rules(name="one"))
    gold.run(reaper.round())
    assert node in reaper._stuck
    assert gold.status(uuid) == "ACTIVE"


def test_one_that_could_not_be_had_is_counted_on_again_after_a_while(
    gold: Full, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_so, reaper = is_had(gold, "is clean failed, not available")
    node, waiting = min(gold.hosts[1:]), gold.show(gold.pends(), version=901)

    def places() -> list[str]:
        return [place.node for place in gold.run(reaper._places(waiting, {node: "in use"}))[1]]

    assert (is_so, places()) == (False, [])
    later = reaping.time.monotonic() + reaping.STUCK_S + 1
    monkeypatch.setattr(reaping.time, "monotonic", lambda: later)
    assert places() == [node]
    reaper._stuck.add("another", 1)
    assert len(reaper._stuck) == 1, "what is over is forgotten"
