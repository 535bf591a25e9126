"""Allocations: a node is found for each, never one node for two; on both databases."""

import asyncio
from collections import Counter

import msgspec
import pytest

from siderite.baremetal.domain.allocation import State
from siderite.baremetal.store import ALLOCATIONS
from siderite.baremetal.usecases.beside import allocate
from siderite.core import eventlog
from siderite.core import sequencer
from siderite.core import work
from tests.baremetal.workers.lives import PATIENCE_S
from tests.baremetal.workers.lives import lead
from tests.support.app import running


def url(database_url):
    return "" if database_url.startswith("sqlite") else database_url


async def free(app, **fields):
    """A node that may be allocated."""
    made = {"power_state": "power off", "resource_class": "gold", **fields}
    return await app.plant("available", **made)


async def ask(app, status=201, **fields):
    """The answer to a wish."""
    body = {"resource_class": "gold", **fields}
    answer = await app.ask("POST", "/v1/allocations", body)
    assert answer.status == status, answer
    return answer.json


async def settled(app, uuid):
    """The allocation once the search is over."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = (await app.ask("GET", f"/v1/allocations/{uuid}")).json
            if found["state"] != "allocating":
                return found
            await asyncio.sleep(0.01)


async def wish(app, **fields):
    """What became of a wish."""
    return await settled(app, (await ask(app, **fields))["uuid"])


def test_a_node_is_found_by_all_that_was_asked(database_url, tmp_path):
    async def story():
        async with running(tmp_path, url(database_url), work=True) as app:
            fast = await free(app, traits=["CUSTOM_A", "CUSTOM_FAST"])
            named, owned, lent = (
                await free(app, name="mine"),
                await free(app, owner="them"),
                await free(app, lessee="us"),
            )
            made = await ask(app, traits=["CUSTOM_FAST"], extra={"a": 1})
            assert (made["state"], made["node_uuid"]) == ("allocating", None)
            found = await settled(app, made["uuid"])
            assert (found["state"], found["node_uuid"]) == ("active", fast)
            node = await app.node(fast)
            assert node.instance_uuid == node.allocation_uuid == made["uuid"]
            assert node.instance_info["traits"] == ["CUSTOM_FAST"]
            assert (await wish(app, name="mine"))["node_uuid"] == named
            assert (await wish(app, owner="them"))["node_uuid"] == owned
            assert (await wish(app, candidate_nodes=[lent.upper(), "mine"]))["node_uuid"] == lent
            none = await wish(app)
            assert none["state"] == "error"
            assert "no available nodes match the resource class gold" in none["last_error"]
            assert "CUSTOM_FAST" in (await wish(app, traits=["CUSTOM_FAST"]))["last_error"]
            none = await wish(app, candidate_nodes=[lent])
            assert "none of the requested nodes" in none["last_error"]
            assert await work.depth(app.program.store) == (0, 0)

    asyncio.run(story())


@pytest.mark.parametrize(
    "fields",
    [{"maintenance": True}, {"instance_uuid": "1be26c0b-03f2-4d2e-ae87-c02d7f33c123"},
     {"power_state": None}, {"resource_class": "silver"}],
)  # fmt: skip
def test_a_node_that_is_not_free_is_not_taken(fields, tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            await free(app, **fields)
            assert (await wish(app))["state"] == "error"

    asyncio.run(story())


def test_two_allocations_never_have_one_node(database_url, tmp_path):
    async def story():
        async with running(tmp_path, url(database_url), work=True) as app:
            nodes = {await free(app, traits=["CUSTOM_X"] * (n % 2)) for n in range(12)}
            asked = [{"traits": ["CUSTOM_X"]} if n % 3 == 0 else {} for n in range(20)]
            found = await asyncio.gather(*(wish(app, **fields) for fields in asked))
            given = [one["node_uuid"] for one in found if one["state"] == "active"]
            assert Counter(given) == Counter(nodes), "each node once, and every one of them"
            assert Counter(one["state"] for one in found) == {"active": 12, "error": 8}
            for one in found:
                if one["node_uuid"] is not None:
                    assert (await app.node(one["node_uuid"])).instance_uuid == one["uuid"]

    asyncio.run(story())


def test_nor_do_those_of_two_processes(postgres_url, tmp_path):
    async def story():
        # Two programs on one database, each with a worker of its own.
        async with (
            running(tmp_path / "a", postgres_url, work=True) as one,
            running(tmp_path / "b", postgres_url, work=True) as other,
        ):
            nodes = {await free(one) for _ in range(10)}
            wishes = [wish(app) for app in (one, other) for _ in range(8)]
            found = await asyncio.gather(*wishes)
            given = [found_["node_uuid"] for found_ in found if found_["state"] == "active"]
            assert Counter(given) == Counter(nodes)

    asyncio.run(story())


def test_facts_tell_of_wish_and_end(database_url, tmp_path):
    async def story():
        async with running(tmp_path, url(database_url), work=True) as app:
            node = await free(app)
            uuid = (await wish(app, owner=None))["uuid"]
            failed = (await wish(app))["uuid"]
            assert (await app.ask("DELETE", f"/v1/allocations/{uuid}")).status == 204
            freed = await app.node(node)
            assert (freed.instance_uuid, freed.allocation_uuid) == (None, None)
            if app.program.store.dialect == "postgresql":
                await sequencer.place(app.program.store)
            log = await eventlog.read(app.program.store, limit=1000)
            told = [
                (entry.event_type, msgspec.json.decode(bytes(entry.payload)))
                for entry in log
                if entry.resource == uuid
            ]
            assert [event.removeprefix("baremetal.allocation.") for event, _ in told] == [
                f"{action}.{status}"
                for action in ("create", "update", "delete")
                for status in ("start", "end")
            ]
            states = [payload["ironic_object.data"]["state"] for _, payload in told]
            assert states == ["allocating"] * 3 + ["active"] * 3
            assert [entry.event_type for entry in log if entry.resource == node] == [
                f"baremetal.node.update.{status}" for status in ("start", "end")
            ] * 2
            last = [entry for entry in log if entry.resource == failed][-4:]
            assert [entry.event_type.removeprefix("baremetal.allocation.") for entry in last] == [
                "update.start", "update.error", "update.start", "update.end",
            ]  # fmt: skip
            said = msgspec.json.decode(last[-1].payload)["ironic_object.data"]
            assert said["state"] == "error", "a follower that leaves errors aside knows of it"

    asyncio.run(story())


def test_the_nodes_teardown_ends_its_allocation(database_url, tmp_path):
    async def story():
        async with running(tmp_path, url(database_url), work=True) as app:
            uuid = await app.make_node(resource_class="gold", network_interface="flat")
            await lead(app, uuid, "manage", "provide")
            body = {"address": "52:54:00:00:00:01", "node_uuid": uuid}
            port = (await app.ask("POST", "/v1/ports", body)).json["uuid"]
            found = await wish(app)
            attached = await app.ask("POST", f"/v1/nodes/{uuid}/vifs", {"id": "vif"})
            assert attached.status == 204
            await lead(app, uuid, "active")
            path = f"/v1/allocations/{found['uuid']}"
            busy = await app.ask("DELETE", path)
            assert (busy.status, "active" in busy.sentence) == (409, True)
            assert (await app.ask("GET", f"/v1/nodes/{uuid}/allocation")).json["uuid"] == found[
                "uuid"
            ]
            patch = [{"op": "remove", "path": "/instance_uuid"}]
            assert (await app.ask("PATCH", f"/v1/nodes/{uuid}", patch)).status == 409
            node = await lead(app, uuid, "deleted")
            assert (node.instance_uuid, node.allocation_uuid) == (None, None)
            assert (await app.ask("GET", path)).status == 404
            assert (await app.ask("GET", f"/v1/nodes/{uuid}/allocation")).status == 404
            assert (await app.ask("GET", f"/v1/ports/{port}")).json["internal_info"] == {}

    asyncio.run(story())


def test_a_search_goes_on_after_a_crash(database_url, tmp_path):
    async def story():
        db = url(database_url)
        async with running(tmp_path, db) as app:  # nothing is carried out: as if killed
            node = await free(app)
            uuid = (await ask(app))["uuid"]
            gone = (await ask(app))["uuid"]
            assert (await app.ask("DELETE", f"/v1/allocations/{gone}")).status == 204
        async with running(tmp_path, db, work=True) as app:
            assert (await settled(app, uuid))["node_uuid"] == node
            assert await work.depth(app.program.store) == (0, 0)

    asyncio.run(story())


def test_an_overdue_search_ends_in_error(tmp_path):
    async def story():
        async with running(tmp_path) as app:
            await free(app)
            uuid = (await ask(app))["uuid"]
            held = (await work.of_machine(app.program.store, uuid))[0]
            app.program.door.clock = lambda: held.deadline + 1
            await allocate.search(app.program.baremetal, held)
            found = await ALLOCATIONS.get(app.program.store, uuid)
            assert (found.state, "too long" in found.last_error) == (State.ERROR, True)

    asyncio.run(story())


def test_an_allocation_without_a_node_may_be_raced_by_its_removal(database_url, tmp_path):
    async def story():
        async with running(tmp_path, url(database_url), work=True) as app:
            nodes = [await free(app) for _ in range(4)]
            for _ in range(5):
                made = [(await ask(app))["uuid"] for _ in range(4)]
                gone = await asyncio.gather(
                    *(app.ask("DELETE", f"/v1/allocations/{uuid}") for uuid in made)
                )
                assert {answer.status for answer in gone} == {204}
                assert [(await app.node(node)).instance_uuid for node in nodes] == [None] * 4

    asyncio.run(story())
