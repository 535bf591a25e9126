"""Seed 000: the hardware may be right about a server's power.

Each test names the promise that it is about. The bare metal side (who sends the event, and that
none is lost) is in tests/baremetal; here is what becomes of it.
"""

import asyncio
import random
from types import SimpleNamespace
from typing import Any

import pytest

from siderite.compute.domain.driver_card import DriverCard
from siderite.compute.domain.power import Power
from siderite.compute.domain.power_truth import Verdict
from siderite.compute.usecases.server import announced as announcing
from siderite.compute.usecases.server import power_truth
from siderite.compute.usecases.server.power_truth import Reading
from siderite.compute.workers import announced
from siderite.core.store import Op
from tests.compute.cloud import Cloud
from tests.compute.workers.moves import until
from tests.crash.power_race import race

PATH = "/os-server-external-events"
ANNOUNCED = "SELECT 1 FROM work WHERE machine = ? AND kind = 'announced'"


def event(uuid: str, tag: str | None = "POWER_OFF", **more: str) -> dict[str, str]:
    tagged = {} if tag is None else {"tag": tag}
    return {"name": "power-update", "server_uuid": uuid, **tagged, **more}


def send(cloud: Cloud, *events: dict[str, str], version: int = 76, token: str | None = None):
    return cloud.ask("POST", PATH, {"events": list(events)}, version=version, token=token)


def facts_of(cloud: Cloud, uuid: str, after: int) -> list[str]:
    """What was announced of a server, beside its updates."""

    async def read() -> list[str]:
        async with asyncio.timeout(20):
            while True:
                answer = await cloud.app.app.ask(
                    "GET", f"/events/v1/events?resource={uuid}&after={after}", version=None
                )
                names = [one["event_type"] for one in answer.json["events"]]
                if names:
                    return [name for name in names if name != "instance.update"]
                await asyncio.sleep(0.02)  # PostgreSQL gives places a little later

    return cloud.app.run(read())


def switch(cloud: Cloud, uuid: str, to: Power) -> None:
    """Somebody switches the machine, and tells nobody."""
    [host] = cloud.guests.where(uuid)
    cloud.guests.set_power(uuid, host, to)


def power(cloud: Cloud, uuid: str) -> Power:
    """What the machine's power is."""
    [host] = cloud.guests.where(uuid)
    return Power(cloud.guests.of_host(host)[uuid])


def newest(cloud: Cloud) -> int:
    """The place of the last fact, once each has one."""

    async def placed() -> None:
        async with asyncio.timeout(20):
            while await cloud.app.app.program.store.fetch("SELECT 1 FROM events WHERE seq IS NULL"):
                await asyncio.sleep(0.02)

    cloud.app.run(placed())
    return int(cloud.app.ask("GET", "/events/v1/events?limit=1000", version=None).json["next"])


def test_power_off_stops_the_server_and_power_on_brings_it_back(both: Cloud) -> None:
    uuid = both.boot()
    answer = send(both, event(uuid, "POWER_OFF"))
    assert answer.status == 200
    [shown] = answer.json["events"]
    assert shown == {**event(uuid, "POWER_OFF"), "status": "completed", "code": 200}
    server = both.show(uuid)
    assert (server["status"], server["OS-EXT-STS:power_state"]) == ("SHUTOFF", 4)
    assert server["OS-EXT-STS:vm_state"] == "stopped"
    assert server["OS-EXT-STS:task_state"] is None
    assert send(both, event(uuid, "POWER_ON")).status == 200
    server = both.show(uuid)
    assert (server["status"], server["OS-EXT-STS:power_state"]) == ("ACTIVE", 1)


def test_the_instance_actions_are_start_and_stop_with_the_event_compute_power_update(
    both: Cloud,
) -> None:
    uuid = both.boot()
    for tag in ("POWER_OFF", "POWER_ON"):
        send(both, event(uuid, tag))
    listed = both.ask("GET", f"/servers/{uuid}/os-instance-actions").json["instanceActions"]
    assert [one["action"] for one in listed] == ["start", "stop", "create"]
    for one in listed[:2]:
        path = f"/servers/{uuid}/os-instance-actions/{one['request_id']}"
        action = both.ask("GET", path).json["instanceAction"]
        assert [(e["event"], e["result"]) for e in action["events"]] == [
            ("compute_power_update", "Success")
        ]
        assert action["message"] is None


def test_the_notifications_are_power_off_and_power_on_with_start_and_end(both: Cloud) -> None:
    uuid = both.boot()
    after = newest(both)
    send(both, event(uuid, "POWER_OFF"))
    assert facts_of(both, uuid, after) == ["instance.power_off.start", "instance.power_off.end"]
    after = newest(both)
    send(both, event(uuid, "POWER_ON"))
    assert facts_of(both, uuid, after) == ["instance.power_on.start", "instance.power_on.end"]


def test_both_notifications_name_the_request_that_told_of_it(both: Cloud) -> None:
    uuid = both.boot()
    answer = send(both, event(uuid, "POWER_OFF"))
    told = dict(both.facts(uuid, "instance.power_off.end"))
    for end in ("start", "end"):
        said = told[f"instance.power_off.{end}"]
        assert said["request_id"] == answer.headers["x-openstack-request-id"]


def test_an_event_below_2_76_is_refused_as_a_whole(lite: Cloud) -> None:
    uuid = lite.boot()
    assert send(lite, event(uuid), version=75).status == 400
    assert lite.show(uuid)["status"] == "ACTIVE"


def test_each_event_has_its_own_code_in_the_order_of_the_request(lite: Cloud) -> None:
    uuid = lite.boot()
    missing = "11111111-2222-4333-8444-555555555555"
    answer = send(
        lite,
        event(uuid, "POWER_OFF"),
        event(missing),
        event(uuid, None),
        event(uuid, "POWER_MAYBE"),
    )
    assert answer.status == 207
    assert [one["code"] for one in answer.json["events"]] == [200, 404, 400, 400]
    assert [one["status"] for one in answer.json["events"]] == [
        "completed", "failed", "failed", "failed",
    ]  # fmt: skip


def test_uuid_and_tag_are_the_same_value_as_in_the_request(lite: Cloud) -> None:
    uuid = lite.boot()
    sent = [event(uuid.upper(), "POWER_OFF"), event(uuid, "POWER_ON", status="failed")]
    answer = send(lite, *sent)
    assert answer.json["events"] == [{**one, "status": "completed", "code": 200} for one in sent]
    assert [one["action"] for one in lite.actions(uuid)] == ["start", "stop", "create"]


def test_a_server_without_a_host_is_422(lite: Cloud) -> None:
    uuid = lite.create(flavorRef=lite.make_flavor(vcpus=4096))
    lite.until(uuid, "ERROR")
    answer = send(lite, event(uuid))
    assert answer.status == 207
    assert [one["code"] for one in answer.json["events"]] == [422]
    assert len(lite.actions(uuid)) == 1


@pytest.mark.parametrize(
    "wrong",
    [{"name": "power-cut"}, {"server_uuid": "x"}, {"tag": 5}, {"status": "maybe"}, {"more": "x"}],
)
def test_what_is_no_event_is_refused_as_a_whole(lite: Cloud, wrong: dict[str, str]) -> None:
    uuid = lite.boot()
    assert send(lite, event(uuid), {**event(uuid), **wrong}).status == 400
    assert lite.show(uuid)["status"] == "ACTIVE"


def test_a_driver_that_cannot_take_it_logs_an_error_and_nothing_changes(
    lite: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    uuid = lite.boot()
    before, after = lite.show(uuid), newest(lite)
    cards = lite.app.app.program.compute.context.cards
    able = {name for name, card in cards.items() if card.can("power_update")}
    assert able == {"baremetal", "simulated"}, "a hypervisor hears its guests itself"
    monkeypatch.setitem(cards, "simulated", DriverCard("simulated"))
    logged: list[str] = []
    log = SimpleNamespace(error=lambda sentence, **_: logged.append(sentence))
    monkeypatch.setattr(power_truth, "log", log)
    answer = send(lite, event(uuid))
    assert [one["code"] for one in answer.json["events"]] == [200]
    assert logged == ["driver takes no power updates"]
    assert lite.show(uuid) == before
    last = lite.actions(uuid)[0]
    assert (last["action"], last["message"]) == ("stop", "Error")
    [one] = last["events"]
    assert (one["event"], one["result"]) == ("compute_power_update", "Error")
    assert facts_of(lite, uuid, after) == [
        "instance.power_off.start",
        "instance.power_off.error",
    ]


def test_what_such_a_driver_is_told_stands_in_the_middle_of_no_other_announcement(
    lite: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    uuid = lite.boot()
    after = newest(lite)
    cards = lite.app.app.program.compute.context.cards
    monkeypatch.setitem(cards, "simulated", DriverCard("simulated"))
    lite.script(f"server:{uuid}", guest="ignores")
    lite.act(uuid, "os-stop")
    lite.wait(uuid, lambda server: "asked to shut down" in str(server["wait_reason"]))
    send(lite, event(uuid))
    assert lite.actions(uuid)[0]["message"] == "Error"
    lite.act(uuid, "os-stop", {"shutdown_type": "HARD"}, version=901)
    lite.until(uuid, "SHUTOFF")
    told = [kind for kind in facts_of(lite, uuid, after) if "power_off" in kind]
    assert told == ["instance.power_off.start", "instance.power_off.end"]


def test_owners_of_the_server_see_its_actions(lite: Cloud) -> None:
    _, member, _ = lite.app.person("member")
    uuid = lite.create(token=member)
    lite.until(uuid, "ACTIVE")
    send(lite, event(uuid))
    path = f"/servers/{uuid}/os-instance-actions"
    listed = lite.ask("GET", path, token=member).json["instanceActions"]
    assert [one["action"] for one in listed] == ["stop", "create"]
    one = lite.ask("GET", f"{path}/{listed[0]['request_id']}", token=member)
    assert one.json["instanceAction"]["action"] == "stop"


def test_many_events_in_one_request_are_answered_in_order(lite: Cloud) -> None:
    uuids = [lite.create() for _ in range(40)]
    for uuid in uuids:
        lite.until(uuid, "ACTIVE")
    events = [event(uuid, tag) for tag in ("POWER_OFF", "POWER_ON", "POWER_OFF") for uuid in uuids]
    answer = send(lite, *events)
    assert answer.status == 200
    shown = [{key: one[key] for key in event("")} for one in answer.json["events"]]
    assert shown == events
    assert {lite.show(uuid)["status"] for uuid in uuids} == {"SHUTOFF"}
    thousand = [event("11111111-2222-4333-8444-555555555555", status="completed")] * 1000
    answer = send(lite, *thousand)
    assert (answer.status, len(answer.json["events"])) == (207, 1000), "also with all their keys"


def test_an_event_changes_nothing_while_something_is_done_to_the_server(lite: Cloud) -> None:
    uuid = lite.boot()
    lite.script(f"server:{uuid}", guest="ignores")
    lite.act(uuid, "os-stop")
    lite.wait(uuid, lambda server: "asked to shut down" in str(server["wait_reason"]))
    assert send(lite, event(uuid)).status == 200
    assert lite.show(uuid)["OS-EXT-STS:task_state"] == "powering-off"
    assert "nothing to do" in lite.actions(uuid)[0]["events"][0]["details"]
    lite.act(uuid, "os-stop", {"shutdown_type": "HARD"}, version=901)
    lite.until(uuid, "SHUTOFF")


def announced_meanwhile(cloud: Cloud, then: Power, monkeypatch: pytest.MonkeyPatch) -> str:
    """A server that was just stopped; while that was done, it was said that its machine runs, which
    is to be looked at (`look`).
    """
    monkeypatch.setattr(announcing, "SOON_S", 3000.0)
    uuid = cloud.boot(metadata={"power_policy": "observe"})
    cloud.script(f"server:{uuid}", guest="ignores")
    cloud.act(uuid, "os-stop")
    cloud.wait(uuid, lambda server: "asked to shut down" in str(server["wait_reason"]))
    assert send(cloud, event(uuid, "POWER_ON")).status == 200
    assert "looked at when that is done" in cloud.actions(uuid)[0]["events"][0]["details"]
    cloud.act(uuid, "os-stop", {"shutdown_type": "HARD"}, version=901)
    cloud.until(uuid, "SHUTOFF")
    switch(cloud, uuid, then)
    monkeypatch.setattr(announcing, "SOON_S", 0.1)
    return uuid


def look(cloud: Cloud, uuid: str) -> None:
    """Have the machine looked at now."""
    program = cloud.app.app.program
    now = Op("UPDATE work SET due = ? WHERE machine = ? AND kind = 'announced'", (0.0, uuid), 1)
    cloud.app.run(program.store.commit([now]))
    program.worker.kick()


@pytest.mark.parametrize(
    ("then", "status"), [(Power.RUNNING, "ACTIVE"), (Power.SHUTDOWN, "SHUTOFF")]
)
def test_a_change_that_was_announced_meanwhile_is_looked_at_when_that_is_done(
    lite: Cloud, monkeypatch: pytest.MonkeyPatch, then: Power, status: str
) -> None:
    uuid = announced_meanwhile(lite, then, monkeypatch)
    look(lite, uuid)
    until(lite, uuid, ANNOUNCED, 0)
    assert lite.show(uuid)["status"] == status
    assert len(lite.actions(uuid)) == (5 if then is Power.RUNNING else 4)


def test_such_a_change_is_not_forgotten_while_its_machine_cannot_be_read(
    lite: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(announced, "_UNREAD_S", 0.1)
    uuid = announced_meanwhile(lite, Power.RUNNING, monkeypatch)
    lite.script(f"server:{uuid}", unreachable=True)
    look(lite, uuid)
    until(lite, uuid, f"{ANNOUNCED} AND reason LIKE '%cannot be read%'", 1)
    lite.guests.scripts.set(f"server:{uuid}", None)
    until(lite, uuid, ANNOUNCED, 0)
    assert lite.show(uuid)["status"] == "ACTIVE"


def test_such_a_change_is_not_forgotten_as_the_server_is_renamed_while_its_machine_is_looked_at(
    lite: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    uuid = announced_meanwhile(lite, Power.RUNNING, monkeypatch)
    confirmed = power_truth.confirmed

    async def after_a_new_name(*seen: Any) -> None:
        monkeypatch.setattr(power_truth, "confirmed", confirmed)
        body = {"server": {"name": "other"}}
        await lite.app.app.ask("PUT", f"/compute/v2.1/servers/{uuid}", body, version=None)
        await confirmed(*seen)

    monkeypatch.setattr(power_truth, "confirmed", after_a_new_name)
    look(lite, uuid)
    until(lite, uuid, ANNOUNCED, 0)
    assert (lite.show(uuid)["name"], lite.show(uuid)["status"]) == ("other", "ACTIVE")


def test_the_echo_of_what_is_being_done_asks_for_no_look(lite: Cloud) -> None:
    uuid = lite.boot()
    lite.script(f"server:{uuid}", guest="ignores")
    lite.act(uuid, "os-stop")
    lite.wait(uuid, lambda server: "asked to shut down" in str(server["wait_reason"]))
    assert send(lite, event(uuid, "POWER_OFF")).status == 200
    assert "looked at" not in lite.actions(uuid)[0]["events"][0]["details"]


def test_only_a_service_may_send_it(lite: Cloud) -> None:
    uuid = lite.boot()
    _, member, _ = lite.app.person("member")
    assert send(lite, event(uuid), token=member).status == 403
    assert lite.show(uuid)["status"] == "ACTIVE"


def test_a_no_op_says_so_with_its_reason_in_the_action(lite: Cloud) -> None:
    uuid = lite.boot()
    assert send(lite, event(uuid, "POWER_ON")).status == 200
    assert lite.show(uuid)["status"] == "ACTIVE"
    last = lite.actions(uuid)[0]
    assert last["action"] == "start"
    [one] = last["events"]
    assert one["result"] == "Success"
    assert "nothing to do" in one["details"]


def test_events_of_one_server_are_taken_in_order(lite: Cloud) -> None:
    uuid = lite.boot()
    tags = ["POWER_OFF", "POWER_ON"] * 10 + ["POWER_OFF"]
    answer = send(lite, *(event(uuid, tag) for tag in tags))
    assert {one["code"] for one in answer.json["events"]} == {200}
    assert lite.show(uuid)["status"] == "SHUTOFF"
    assert len(lite.actions(uuid)) == len(tags) + 1


def test_a_machine_that_was_switched_on_by_hand_is_not_switched_off_again(lite: Cloud) -> None:
    """The story of the seed: repaired, switched on, and the periodic sync finds it running."""
    uuid = lite.boot()
    sync = lite.app.app.program.compute.sync
    lite.act(uuid, "os-stop")
    lite.until(uuid, "SHUTOFF")
    switch(lite, uuid, Power.RUNNING)
    for _ in range(3):
        lite.app.run(sync.round())
        server = lite.until(uuid, "ACTIVE")
        assert server["OS-EXT-STS:power_state"] == 1
        assert power(lite, uuid) is Power.RUNNING, "nobody switched it off"
    switch(lite, uuid, Power.SHUTDOWN)
    lite.app.run(sync.round())
    lite.until(uuid, "SHUTOFF")


def test_the_record_is_right_where_that_is_the_policy(lite: Cloud) -> None:
    sync = lite.app.app.program.compute.sync
    uuid = lite.boot(metadata={"power_policy": "record"})
    switch(lite, uuid, Power.SHUTDOWN)
    lite.app.run(sync.round())
    lite.wait(uuid, lambda server: power(lite, uuid) is Power.RUNNING)
    lite.until(uuid, "ACTIVE")
    watched = lite.boot(metadata={"power_policy": "observe"})
    switch(lite, watched, Power.SHUTDOWN)
    lite.app.run(sync.round())
    assert lite.show(watched)["status"] == "ACTIVE"
    assert lite.show(watched)["OS-EXT-STS:power_state"] == 4
    before = lite.app.run(_version(lite, watched))
    lite.app.run(sync.round())
    assert lite.app.run(_version(lite, watched)) == before, "what is known is not told again"
    send(lite, event(watched, "POWER_OFF"))
    assert lite.show(watched)["status"] == "SHUTOFF", "the sender has looked"


def test_a_power_that_cannot_be_read_changes_nothing(lite: Cloud) -> None:
    uuid = lite.boot()
    before = lite.app.run(_version(lite, uuid))
    context = lite.app.app.program.compute.context
    verdict = lite.app.run(power_truth.found(context, uuid, before, Reading(Power.NOSTATE)))
    assert verdict is Verdict.NOTHING
    assert lite.app.run(_version(lite, uuid)) == before


async def _version(cloud: Cloud, uuid: str) -> int:
    store = cloud.app.app.program.store
    rows = await store.fetch("SELECT version FROM servers WHERE uuid = ?", (uuid,))
    return int(rows[0][0])


def test_sync_event_and_requests_in_any_order_leave_the_last_truth(both: Cloud) -> None:
    """Random interleavings: a reading that is older than a change never undoes it."""
    rng = random.Random(5)
    uuid = both.boot()
    context = both.app.app.program.compute.context

    async def trial() -> None:
        version = await _version(both, uuid)  # the sync reads now …
        seen = power(both, uuid)
        tag = "POWER_OFF" if seen is Power.RUNNING else "POWER_ON"
        after = Power.SHUTDOWN if seen is Power.RUNNING else Power.RUNNING
        switch(both, uuid, after)  # … then somebody switches the machine …
        told = both.app.app.ask(
            "POST", f"/compute/v2.1{PATH}", {"events": [event(uuid, tag)]}, version=None,
            headers={"openstack-api-version": "compute 2.76"},
        )  # fmt: skip

        async def late() -> None:
            await asyncio.sleep(rng.random() * 0.015)  # before, during or after the event
            await power_truth.found(context, uuid, version, Reading(seen))

        await asyncio.gather(told, late())  # … and the reading arrives
        state = await context.door.store.fetch(
            "SELECT vm_state, power_state FROM servers WHERE uuid = ?", (uuid,)
        )
        wanted = ("stopped", 4) if after is Power.SHUTDOWN else ("active", 1)
        assert tuple(state[0]) == wanted

    async def trials() -> None:
        for _ in range(60):
            await trial()

    both.app.run(trials())


def test_whatever_happens_at_once_record_and_machine_agree_and_nobody_puts_it_back(
    both: Cloud,
) -> None:
    """A sample of what scripts/soak does 5000 times."""
    assert race(both, trials=60, seed=7) == []
