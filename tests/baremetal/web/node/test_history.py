"""A node's history: its facts, told in words."""

import asyncio
import time
from typing import Any
from uuid import uuid4

import pytest

from siderite.core import eventlog
from siderite.core import sequencer
from siderite.events.retention import Retention
from tests.baremetal.web.expect import refused
from tests.baremetal.workers.lives import script
from tests.baremetal.workers.lives import until
from tests.baremetal.workers.lives import verb
from tests.support.app import Application
from tests.support.app import Standing
from tests.support.app import running

BRIEF = {"uuid", "created_at", "severity", "event", "links"}
DETAIL = BRIEF | {"event_type", "conductor", "user"}


def test_it_is_there_from_its_version_on(lite: Standing) -> None:
    node = lite.make_node()
    path = f"/v1/nodes/{node}/history"
    refused(lite.ask("GET", path, version=77), 404)
    told = lite.ask("GET", path, version=78).json["history"]
    assert [entry["event"] for entry in told] == ["Enrolled"]
    assert set(told[0]) == BRIEF
    link = f"http://cloud.test/baremetal/v1/nodes/{node}/history/{told[0]['uuid']}"
    assert told[0]["links"] == [{"href": link, "rel": "self"}]


@pytest.mark.parametrize(
    ("version", "more"),
    [
        (112, set()),
        (113, {"project"}),
        (115, {"project", "state", "target_provision_state", "duration_seconds"}),
    ],
)
def test_each_version_shows_its_details(lite: Standing, version: int, more: set[str]) -> None:
    path = f"/v1/nodes/{lite.make_node()}/history"
    listed = lite.ask("GET", f"{path}?detail=true", version=version).json["history"]
    assert set(listed[0]) == DETAIL | more
    one = lite.ask("GET", f"{path}/{listed[0]['uuid']}", version=version).json
    assert one == listed[0]
    refused(lite.ask("GET", f"{path}/x"), 404, "no history entry")
    refused(lite.ask("GET", f"{path}?x=1"), 400, "Unexpected arguments")
    refused(lite.ask("GET", f"{path}?limit=0"), 400, "whole number")
    refused(lite.ask("GET", f"{path}?marker={uuid4()}"), 404)
    first = lite.ask("GET", path).json["history"][0]["uuid"]
    shouted = lite.ask("GET", f"{path}?marker={first.upper()}").json
    assert shouted == lite.ask("GET", f"{path}?marker={first}").json
    refused(lite.ask("GET", f"{path}?detail=perhaps"), 400)


async def told(app: Application, uuid: str) -> list[dict[str, Any]]:
    """The history of a node in detail."""
    if app.program.store.dialect == "postgresql":
        await sequencer.place(app.program.store)
    answer = await app.ask("GET", f"/v1/nodes/{uuid}/history?detail=true")
    found: list[dict[str, Any]] = answer.json["history"]
    return found


def test_a_failure_is_told_with_its_reason_and_how_long_it_took(tmp_path, database_url):
    async def story():
        async with running(tmp_path, database_url, work=True) as app:
            uuid = await app.plant("available")
            script(app, f"node:{uuid}", fail={"deploy.write_image": "disk is gone" + "!" * 300})
            await verb(app, uuid, "active")
            await until(app, uuid, "deploy failed")
            moved, failed = (await told(app, uuid))[-2:]
            assert moved["event"] == "Moved from available to deploying by deploy"
            assert (failed["severity"], failed["state"]) == ("ERROR", "deploy failed")
            assert "disk is gone" in failed["event"]
            assert failed["duration_seconds"] >= 0
            assert isinstance(failed["duration_seconds"], int)
            assert (failed["event_type"], failed["conductor"]) == ("provisioning", "here")
            assert (failed["user"], failed["project"] is None) == ("admin", False)
            brief = (await app.ask("GET", f"/v1/nodes/{uuid}/history")).json["history"]
            assert len(brief[-1]["event"]) == 255

    asyncio.run(story())


def test_power_that_was_not_known_is_told_in_words(tmp_path, database_url):
    async def story():
        async with running(tmp_path, database_url, work=True) as app:
            uuid = await app.plant("enroll")
            await verb(app, uuid, "manage")
            await until(app, uuid, "manageable")
            said = [entry["event"] for entry in await told(app, uuid)]
            assert "Power found to be power off, which was not known" in said, said

    asyncio.run(story())


def test_maintenance_is_told(lite: Standing) -> None:
    node = lite.make_node()
    body = {"reason": "new fans"}
    lite.ask("PUT", f"/v1/nodes/{node}/maintenance", body)
    lite.ask("DELETE", f"/v1/nodes/{node}/maintenance")
    said = [e["event"] for e in lite.ask("GET", f"/v1/nodes/{node}/history").json["history"]]
    assert said == ["Enrolled", "Maintenance set: new fans", "Maintenance cleared"]


def test_maintenance_that_comes_with_other_fields_is_told(tmp_path, database_url):
    async def story():
        async with running(tmp_path, database_url) as app:
            uuid = await app.make_node()
            for field, value in (
                ("extra", {}), ("maintenance", True), ("extra", {"a": 1}), ("maintenance", False),
            ):  # fmt: skip
                patch = [{"op": "add", "path": f"/{field}", "value": value}]
                assert (await app.ask("PATCH", f"/v1/nodes/{uuid}", patch)).status == 200
            found = await told(app, uuid)
            assert [entry["event"] for entry in found] == [
                "Enrolled", "Maintenance set: no reason given", "Maintenance cleared",
            ]  # fmt: skip
            assert [entry["event_type"] for entry in found[1:]] == ["maintenance"] * 2
            assert {entry["user"] for entry in found} == {"admin"}
            one = await app.ask("GET", f"/v1/nodes/{uuid}/history/{found[1]['uuid']}")
            assert one.json == found[1]

    asyncio.run(story())


def test_it_comes_page_by_page(lite: Standing) -> None:
    node = lite.make_node()
    for _ in range(2):
        lite.ask("PUT", f"/v1/nodes/{node}/maintenance")
        lite.ask("DELETE", f"/v1/nodes/{node}/maintenance")
    path = f"/v1/nodes/{node}/history"
    whole = [entry["uuid"] for entry in lite.ask("GET", path).json["history"]]
    page = lite.ask("GET", f"{path}?limit=2&detail=true").json
    seen = [entry["uuid"] for entry in page["history"]]
    while "next" in page:
        page = lite.ask("GET", page["next"].removeprefix("http://cloud.test")).json
        assert "event_type" in page["history"][0]
        seen += [entry["uuid"] for entry in page["history"]]
    assert (seen, len(seen)) == (whole, 5)


def test_it_is_sorted_as_asked(lite: Standing) -> None:
    node = lite.make_node()
    lite.ask("PUT", f"/v1/nodes/{node}/maintenance")
    lite.ask("DELETE", f"/v1/nodes/{node}/maintenance")
    path = f"/v1/nodes/{node}/history"
    whole = lite.ask("GET", path).json["history"]
    page = lite.ask("GET", f"{path}?sort_dir=desc&limit=1").json
    seen = list(page["history"])
    while "next" in page:
        page = lite.ask("GET", page["next"].removeprefix("http://cloud.test")).json
        seen += page["history"]
    assert seen == whole[::-1]
    told = [e["event"] for e in lite.ask("GET", f"{path}?sort_key=event").json["history"]]
    assert told == sorted(told)
    for query, words in (("sort_dir=up", "asc, desc"), ("sort_key=x", "created_at")):
        refused(lite.ask("GET", f"{path}?{query}"), 400, words)
    refused(lite.ask("GET", f"{path}?marker=x"), 400, "UUID")


def test_it_outlives_the_event_log(app: Standing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eventlog, "REMEMBERED", 6)
    store = app.app.program.store
    node, other = app.make_node(), app.make_node()
    path = f"/v1/nodes/{node}"
    for reason in "ab":
        app.ask("PUT", f"{path}/maintenance", {"reason": reason})
    assert app.ask("DELETE", f"/v1/nodes/{other}").status == 204
    app.make_node()  # the newest fact stays in the log

    async def prune() -> None:
        if store.dialect == "postgresql":
            await sequencer.place(store)
        retention = Retention(
            store, keep_s=1.0, keep_unread_s=1.0, history_s=1.0, remembered=["node"],
            clock=lambda: time.time() + 1000,
        )  # fmt: skip
        assert (await retention.prune()).removed

    before = app.ask("GET", f"{path}/history?detail=true").json
    if store.dialect == "postgresql":
        app.run(sequencer.place(store))
        before = app.ask("GET", f"{path}/history?detail=true").json
    app.run(prune())
    assert app.ask("GET", f"{path}/history?detail=true").json == before
    assert len(before["history"]) == 3
    sql = "SELECT count(*) FROM past_events WHERE resource = ?"
    assert app.run(store.fetch(sql, (other,)))[0][0] == 0
    app.ask("DELETE", f"{path}/maintenance")
    app.make_node()
    app.run(prune())
    assert app.run(store.fetch(sql, (node,)))[0][0] == 6, "only the newest are remembered"
    assert app.ask("DELETE", path).status == 204
    assert app.run(store.fetch(sql, (node,)))[0][0] == 0
