"""A node's timeline: who, what, from where to where, why; from the log, so it outlives us."""

import asyncio
import json

import msgspec
import pytest

from siderite.cli.main import main
from siderite.core import sequencer
from tests.baremetal.workers.lives import lead
from tests.baremetal.workers.lives import script
from tests.baremetal.workers.lives import until
from tests.baremetal.workers.lives import until_power
from tests.baremetal.workers.lives import verb
from tests.support.app import running
from tests.support.server import running_server


@pytest.fixture(params=["sqlite", "postgresql"])
def db(request):
    """No URL is SQLite in the data folder."""
    return "" if request.param == "sqlite" else request.getfixturevalue("postgres_url")


async def timeline(app, uuid, query="", status=200):
    if app.program.store.dialect == "postgresql":
        await sequencer.place(app.program.store)
    answer = await app.ask("GET", f"/v1/nodes/{uuid}/timeline{query}", version=900)
    assert answer.status == status, answer
    return answer.json


def moves(lines):
    return [
        (line["from"], line["to"], line["cause"])
        for line in lines
        if line["what"] == "provision_set"
    ]


def test_it_tells_who_asked_for_what_came_of_it_and_survives_a_restart(tmp_path, db):
    async def story():
        async with running(tmp_path, db, work=True) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage")
            script(app, f"node:{uuid}", fail={"deploy.erase_devices_metadata": "disk is gone"})
            asked = await verb(app, uuid, "provide")
            await until(app, uuid, "clean failed")
            body = {"target": "power on"}
            assert (await app.ask("PUT", f"/v1/nodes/{uuid}/states/power", body)).status == 202
            await until_power(app, uuid)
            live = (await timeline(app, uuid))["timeline"]
        async with running(tmp_path, db) as app:
            lines = (await timeline(app, uuid))["timeline"]
        assert lines == live
        assert moves(lines) == [
            ("enroll", "verifying", "manage"),
            ("verifying", "manageable", "done"),
            ("manageable", "cleaning", "provide"),
            ("cleaning", "clean failed", "fail"),
        ]
        assert {line["user"] for line in lines} == {"admin"}, "what follows is the asker's, too"
        failed = next(line for line in lines if line["status"] == "error")
        assert "disk is gone" in failed["reason"]
        assert failed["request_id"] == asked.headers["x-openstack-request-id"]
        power = [line for line in lines if line["what"] == "power_set"]
        assert [(line["status"], line["from"], line["to"]) for line in power] == [
            ("start", "power off", "power on"), ("end", "power off", "power on"),
        ]  # fmt: skip
        assert [line["number"] for line in lines] == sorted(line["number"] for line in lines)

    asyncio.run(story())


def test_what_the_power_watch_saw_is_on_it_though_nobody_asked(tmp_path):
    async def story():
        async with running(tmp_path, work=True, power_watch_interval_s=0.2) as app:
            uuid = await app.plant("active", power_state="power on", driver_info={"rack": "r1"})
            async with asyncio.timeout(30):
                while (await app.node(uuid)).power_state != "power off":
                    await asyncio.sleep(0.01)
            [line] = (await timeline(app, uuid))["timeline"]
            assert (line["what"], line["from"], line["to"]) == (
                "power_state_corrected", "power on", "power off",
            )  # fmt: skip
            assert (line["cause"], line["user"], line["request_id"]) == ("power watch", None, None)

    asyncio.run(story())


def test_maintenance_that_comes_with_other_fields_is_told_where_it_changed(tmp_path, db):
    async def story():
        async with running(tmp_path, db) as app:
            uuid = await app.make_node(maintenance=True)
            for field, value in (
                ("maintenance", False), ("extra", {}), ("maintenance", True), ("extra", {"a": 1}),
            ):  # fmt: skip
                patch = [{"op": "add", "path": f"/{field}", "value": value}]
                assert (await app.ask("PATCH", f"/v1/nodes/{uuid}", patch)).status == 200
            lines = (await timeline(app, uuid))["timeline"]
            assert {line["what"] for line in lines} == {"create", "update"}
            told = [
                (line["what"], line["status"], line["from"], line["to"], line["reason"])
                for line in lines
                if (line["from"], line["to"], line["reason"]) != (None, None, None)
            ]
            assert told == [
                ("create", "start", None, True, "maintenance was set"),
                ("update", "end", True, False, "maintenance was cleared"),
                ("update", "end", False, True, "maintenance was set"),
            ]

    asyncio.run(story())


def test_an_update_tells_which_fields_it_changed_as_far_as_its_events_do(tmp_path):
    async def story():
        async with running(tmp_path) as app:
            _, token, project = await app.person("reader")
            uuid = await app.make_node(name="n1", driver_info={"bmc_password": "old"})
            for path, value in (
                ("name", "n2"), ("extra/rack", 7), ("extra/long", "x" * 99), ("extra", {}),
                ("driver_info", {"bmc_password": "new", "port": "1"}), ("shard", "one"),
                ("owner", project), ("description", "ours"),
            ):  # fmt: skip
                patch = [{"op": "add", "path": f"/{path}", "value": value}]
                answer = await app.ask("PATCH", f"/v1/nodes/{uuid}", patch, version=900)
                assert answer.status == 200, answer
            lines = (await timeline(app, uuid))["timeline"]
            # One page or several, it is the same.
            answer = await timeline(app, uuid, "?sort_dir=desc&limit=1")
            assert answer["timeline"] == lines[-1:]
            told = [
                [(one["field"], one["from"], one["to"]) for one in line["changed"]]
                for line in lines if line["what"] == "update"
            ]  # fmt: skip
            assert told[::2] == [[]] * 8
            assert told[1::2] == [
                [("name", "n1", "n2")], [("extra.rack", None, 7)], [("extra.long", None, "…")],
                [("extra.long", "…", None), ("extra.rack", 7, None)],
                [("driver_info.port", None, "1")], [], [("owner", None, project)],
                [("description", None, "ours")],
            ]  # fmt: skip
            assert "no field" in lines[-5]["reason"]
            path = f"/v1/nodes/{uuid}/timeline"
            mine = (await app.ask("GET", path, version=900, token=token)).json["timeline"]
            assert [line["changed"] for line in mine if line["changed"]] == [lines[-1]["changed"]]

    asyncio.run(story())


def test_what_is_large_of_a_node_is_parsed_only_where_it_changed(tmp_path, monkeypatch):
    async def story():
        async with running(tmp_path) as app:
            rack = {f"slot-{n}": "free" for n in range(10_000)}
            uuid = await app.make_node(extra=rack)
            for path, value in (("description", "x"), ("extra/slot-7", "taken")):
                patch = [{"op": "add", "path": f"/{path}", "value": value}]
                assert (await app.ask("PATCH", f"/v1/nodes/{uuid}", patch)).status == 200
            assert (await app.ask("PUT", f"/v1/nodes/{uuid}/maintenance", {})).status == 202
            decode, sizes = msgspec.json.decode, []

            def weighed(text, **how):
                sizes.append(memoryview(text).nbytes if not isinstance(text, str) else len(text))
                return decode(text, **how)

            with monkeypatch.context() as patched:
                patched.setattr(msgspec.json, "decode", weighed)
                lines = (await timeline(app, uuid))["timeline"]
        told = [one for line in lines for one in line["changed"]]
        assert [(one["field"], one["from"], one["to"]) for one in told] == [
            ("description", None, "x"), ("extra.slot-7", "free", "taken"),
        ]  # fmt: skip
        assert len([size for size in sizes if size > 100_000]) == 2

    asyncio.run(story())


def test_it_tells_who_said_who_is_right_about_the_power(tmp_path, db):
    async def story():
        async with running(tmp_path, db) as app:
            uuid = await app.make_node()
            for value in ("observe", "observe", None):
                patch = [{"op": "add", "path": "/power_policy", "value": value}]
                path = f"/v1/nodes/{uuid}"
                assert (await app.ask("PATCH", path, patch, version=900)).status == 200
            lines = (await timeline(app, uuid))["timeline"]
        said = [line for line in lines if line["what"] == "power_policy_set"]
        assert [(line["from"], line["to"]) for line in said] == [
            (None, "observe"), ("observe", None),
        ]  # fmt: skip
        assert {(line["status"], line["cause"], line["user"]) for line in said} == {
            ("success", "request", "admin")
        }

    asyncio.run(story())


@pytest.mark.parametrize("way", ["asc", "desc"])
def test_pages_hold_each_line_once(tmp_path, way):
    async def story():
        async with running(tmp_path) as app:
            uuid = await app.make_node()
            for number in range(10):
                patch = [{"op": "add", "path": "/extra/n", "value": number}]
                assert (await app.ask("PATCH", f"/v1/nodes/{uuid}", patch)).status == 200
            whole = (await timeline(app, uuid, f"?sort_dir={way}"))["timeline"]
            assert len(whole) == 22
            found, query = [], f"?sort_dir={way}&limit=5"
            while query:
                page = await timeline(app, uuid, query)
                found += page["timeline"]
                query = page["next"].partition("timeline")[2] if "next" in page else ""
            assert found == whole
            other = (await timeline(app, uuid))["timeline"]
            assert whole == (other if way == "asc" else other[::-1])

    asyncio.run(story())


@pytest.mark.parametrize(
    "query", ["?limit=-1", "?marker=x", "?sort_dir=up", "?bogus=1", "?limit=" + "9" * 30]
)
def test_a_query_that_cannot_be_understood_is_refused(tmp_path, query):
    async def story():
        async with running(tmp_path) as app:
            uuid = await app.make_node()
            await timeline(app, uuid, query, 400)
            upstream = await app.ask("GET", f"/v1/nodes/{uuid}/timeline", version="1.115")
            assert upstream.status == 404
            _, token, _ = await app.person("reader")
            hidden = await app.ask("GET", f"/v1/nodes/{uuid}/timeline", version=900, token=token)
            assert hidden.status == 404

    asyncio.run(story())


def test_the_command_prints_it_line_by_line(tmp_path, capsys):
    with running_server(tmp_path) as server:
        body = {"driver": "fake-hardware", "name": "mine"}
        headers = server.headers("1.115")
        assert server.api.post("/baremetal/v1/nodes", json=body, headers=headers).status_code == 201
        path = "/baremetal/v1/nodes/mine/maintenance"
        assert server.api.put(path, json={"reason": "fan"}, headers=headers).status_code == 202
        words = ["node", "timeline", "mine", "--data", str(server.data)]
        assert main(words) == 0
        printed = capsys.readouterr().out.splitlines()
        assert len(printed) == 4
        assert "create.end" in printed[1]
        assert "false → true" in printed[2]
        assert "maintenance_set.end" in printed[3]
        assert "→" not in printed[3], "one change is told once"
        assert "(fan)" in printed[3]
        assert " admin " in printed[3]
        assert main([*words, "-o", "json", "--limit", "1"]) == 0
        [last] = capsys.readouterr().out.splitlines()
        assert json.loads(last)["status"] == "end"
        assert main(["node", "timeline", "nobody", "--data", str(server.data)]) == 3
        assert "could not be found" in capsys.readouterr().err
