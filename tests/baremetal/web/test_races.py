"""Two clients at one node: each verb is taken, or refused with what is under way and when to come
back. Readings of power in the background are in nobody's way.
"""

import asyncio
from collections import Counter
from typing import Any

import pytest

from tests.baremetal.workers.lives import script
from tests.support.app import running

TIMES = 500
ROUNDS = 4
SAME: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "portgroups": ({"name": "group"}, [{"op": "add", "path": "/name", "value": "taken"}]),
    "ports": ({"address": "52:54:00:00:00:77"}, [{"op": "add", "path": "/extra/a", "value": 1}]),
    "volume/connectors": (
        {"type": "iqn", "connector_id": "iqn.x"},
        [{"op": "add", "path": "/connector_id", "value": "taken"}],
    ),
    "volume/targets": (
        {"volume_type": "iscsi", "volume_id": "v", "boot_index": 0},
        [{"op": "add", "path": "/boot_index", "value": 7}],
    ),
    "allocations": (
        {"name": "mine", "resource_class": "x"},
        [{"op": "add", "path": "/name", "value": "taken"}],
    ),
}
"""Kinds of record with a value that only one may have, and a patch for two of them."""


@pytest.fixture(params=["sqlite", "postgresql"])
def db(request):
    """No URL is SQLite in the data folder."""
    return "" if request.param == "sqlite" else request.getfixturevalue("postgres_url")


def test_two_clients_fire_a_thousand_verbs_at_one_node(tmp_path, db):
    async def client(app, uuid, wishes, seen):
        for number in range(TIMES):
            kind, target = wishes[number % len(wishes)]
            answer = await app.ask("PUT", f"/v1/nodes/{uuid}/states/{kind}", {"target": target})
            seen[answer.status] += 1
            if answer.status == 409:
                assert answer.headers["retry-after"] == "2", answer
                assert "please retry after the current operation is completed" in answer.sentence
                assert "on its way to" in answer.sentence or "is busy" in answer.sentence, answer
            else:
                assert answer.status == 202, answer
            await asyncio.sleep(0)

    async def story():
        options = {"power_watch_interval_s": 0.05}
        async with running(tmp_path, db, work=True, **options) as app:
            uuid = await app.plant("active", power_state="power on")
            script(app, "all", latency_s={"*": 0.002})
            seen = Counter()
            await asyncio.gather(
                client(app, uuid, [("provision", "rebuild"), ("power", "rebooting")], seen),
                client(app, uuid, [("power", "power off"), ("provision", "rebuild")], seen),
            )
            assert sum(seen.values()) == 2 * TIMES
            assert set(seen) == {202, 409}
            async with asyncio.timeout(30):
                while True:
                    rows = await app.program.store.fetch("SELECT count(*) FROM work")
                    node = await app.node(uuid)  # as the last of the work has left it
                    if rows[0][0] == 0 and node.target_power_state is None:
                        break
                    await asyncio.sleep(0.01)
            assert (node.provision_state, node.last_error) == ("active", None)

    asyncio.run(story())


def test_one_client_alone_is_never_refused_while_power_is_read_all_the_time(tmp_path, db):
    async def story():
        options = {"power_watch_interval_s": 0.01}
        async with running(tmp_path, db, work=True, **options) as app:
            uuid = await app.plant("active", power_state="power on", driver_info={"rack": "r"})
            for number in range(60):
                patch = [{"op": "add", "path": "/extra/n", "value": number}]
                answer = await app.ask("PATCH", f"/v1/nodes/{uuid}", patch)
                assert answer.status == 200, answer
                if number % 10 == 0:
                    app.program.machines.cut_power("r")  # so that readings have news, too
                    body = {"target": "power on"}
                    answer = await app.ask("PUT", f"/v1/nodes/{uuid}/states/power", body)
                    assert answer.status == 202, answer
                    async with asyncio.timeout(30):
                        while (await app.node(uuid)).target_power_state is not None:
                            await asyncio.sleep(0.002)
                await asyncio.sleep(0.002)

    asyncio.run(story())


async def both(app, method, paths, body):
    """The answers to two requests at once; a refusal says why."""
    answers = await asyncio.gather(*(app.ask(method, path, body) for path in paths))
    for answer in answers:
        assert answer.status < 500, answer
        if answer.status == 409:
            assert len(answer.sentence.split()) > 5, answer
    return answers


async def race(app, kind, home):
    """Two clients make, change and remove the same record."""
    fields, patch = SAME[kind]
    for _ in range(ROUNDS):
        made = await both(app, "POST", [f"/v1/{kind}"] * 2, {**home, **fields})
        assert sorted(answer.status for answer in made) == [201, 409]
        uuid = next(answer.json["uuid"] for answer in made if answer.status == 201)
        same = [f"/v1/{kind}/{uuid}"] * 2
        changed = {answer.status for answer in await both(app, "PATCH", same, patch)}
        assert 200 in changed
        assert changed <= {200, 409}
        gone = await both(app, "DELETE", same, b"")
        assert sorted(answer.status for answer in gone) == [204, 404]


async def race_for_a_value(app, node):
    """Two records are changed to the same value, which only one may have."""
    body = {"node_uuid": node, "volume_type": "iscsi", "volume_id": "v"}
    for number in range(0, 10 * ROUNDS, 10):
        pair = []
        for index in (number, number + 1):
            made = await app.ask("POST", "/v1/volume/targets", {**body, "boot_index": index})
            pair.append(f"/v1/volume/targets/{made.json['uuid']}")
        patch = [{"op": "replace", "path": "/boot_index", "value": number + 5}]
        answers = await both(app, "PATCH", pair, patch)
        assert sorted(answer.status for answer in answers) == [200, 409], answers


def test_two_clients_at_one_record_or_after_one_value(tmp_path, db):
    async def story():
        async with running(tmp_path, db) as app:
            node = await app.plant("manageable", power_state="power off")
            for kind in SAME:
                await race(app, kind, {} if kind == "allocations" else {"node_uuid": node})
            await race_for_a_value(app, node)

    asyncio.run(story())


def test_allocations_that_race_for_nodes_get_one_each(tmp_path, db):
    async def story():
        async with running(tmp_path, db, work=True) as app:
            for _ in range(3):
                await app.plant("available", power_state="power off", resource_class="x")
            body = {"resource_class": "x"}
            made = await asyncio.gather(
                *(app.ask("POST", "/v1/allocations", body) for _ in "12345")
            )
            assert {answer.status for answer in made} == {201}
            async with asyncio.timeout(30):
                while True:
                    found = (await app.ask("GET", "/v1/allocations")).json["allocations"]
                    if all(one["state"] != "allocating" for one in found):
                        break
                    await asyncio.sleep(0.01)
            nodes = [one["node_uuid"] for one in found if one["state"] == "active"]
            assert len(nodes) == len(set(nodes)) == 3
            errors = [one["last_error"] for one in found if one["state"] == "error"]
            assert len(errors) == 2
            assert all(errors)

    asyncio.run(story())
