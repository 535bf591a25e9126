"""The search index: what the log last said of each resource, by words and by fields."""

import asyncio
import json
from hashlib import sha256

from siderite.baremetal.domain import fact_fields as baremetal
from siderite.cli import docs_payloads
from siderite.cli.docs_events import announced
from siderite.compute.domain import fact_fields as compute
from siderite.core import eventlog
from siderite.core.fact import Fact
from siderite.core.store import Op
from siderite.events import place
from siderite.events import search
from siderite.events import words
from siderite.events.search import Question
from siderite.events.search import Search
from siderite.events.search import move
from tests.events.log import NODE
from tests.events.log import OTHER
from tests.events.log import fact
from tests.events.log import tell
from tests.support.app import running

ADDRESS = "/events/v1/search"


async def current(app):
    """Wait until the index has all there is."""
    await tell(app)
    newest = (await app.ask("GET", "/events/v1/events?limit=1000")).json["next"]
    async with asyncio.timeout(30):
        while (await app.ask("GET", f"{ADDRESS}?limit=1")).json["current_to"] != newest:
            await asyncio.sleep(0.02)
    return newest


async def found(app, query, **how):
    answer = await app.ask("GET", f"{ADDRESS}?{query}", **how)
    assert answer.status == 200, answer
    return sorted(result["data"].get("name") or result["type"] for result in answer.json["results"])


async def fleet(app):
    chassis = await app.ask("POST", "/v1/chassis", {"description": "Rack r01, row A"})
    assert chassis.status == 201
    one = await app.make_node(
        name="r01-n01", resource_class="gold", properties={"cpu_arch": "x86_64", "cpus": 8},
        extra={"note": "replaced the fan"}, driver_info={"password": "hunter2"},
    )  # fmt: skip
    two = await app.make_node(name="r01-n02", resource_class="silver", properties={"cpus": 16})
    port = await app.ask(
        "POST", "/v1/ports", {"node_uuid": two, "address": "52:54:00:aa:bb:cc", "name": "eth"}
    )
    assert port.status == 201, port
    return one, two


def test_things_are_found_by_words_and_by_fields(run):
    async def story(app):
        one, two = await fleet(app)
        newest = await current(app)
        for query, names in (
            ("", ["chassis", "eth", "r01-n01", "r01-n02"]),
            ("q=r01", ["chassis", "r01-n01", "r01-n02"]),
            ("q=r01-n01", ["r01-n01"]),
            ("q=R01-N0", ["r01-n01", "r01-n02"]),
            ("q=row%20rack", ["chassis"]),
            ("q=replaced%20fan", ["r01-n01"]),
            ("q=replaced%20silver", []),
            (f"q={one[:13]}", ["r01-n01"]),
            (f"q={two}", ["eth", "r01-n02"]),
            ("q=52:54:00:AA:bb", ["eth"]),
            ("q=hunter2", []),
            ("type=node", ["r01-n01", "r01-n02"]),
            ("type=node&resource_class=gold", ["r01-n01"]),
            ("properties.cpus=16", ["r01-n02"]),
            ("properties.cpus=1", []),
            ("properties.cpu_arch=X86_64&q=fan", ["r01-n01"]),
            ("maintenance=false&resource_class=silver", ["r01-n02"]),
            ("instance_uuid=null", ["r01-n01", "r01-n02"]),
            (f"type=port&node_uuid={two}", ["eth"]),
        ):
            assert await found(app, query) == names, query
        answer = (await app.ask("GET", f"{ADDRESS}?q=eth")).json
        (result,) = answer["results"]
        assert (result["type"], answer["current_to"], answer["next"]) == ("port", newest, None)
        assert result["seq"] == newest

    run(story)


def test_it_follows_what_happens(run):
    async def story(app):
        one, two = await fleet(app)
        await current(app)  # what is indexed already is found by its new words only
        patch = [{"op": "replace", "path": "/name", "value": "spare"}]
        assert (await app.ask("PATCH", f"/v1/nodes/{one}", patch)).status == 200
        path = f"/v1/nodes/{one}/maintenance"
        assert (await app.ask("PUT", path, {"reason": "smoke"})).status == 202
        assert (await app.ask("DELETE", f"/v1/nodes/{two}")).status == 204
        refused = await app.ask("POST", "/v1/nodes", {"driver": "fake-hardware", "name": "spare"})
        assert refused.status == 409
        await current(app)
        assert await found(app, "q=r01-n01") == []
        assert await found(app, "type=node") == ["spare"]
        assert await found(app, "maintenance=true&maintenance_reason=smoke") == ["spare"]
        assert await found(app, "resource_class=gold&maintenance=true") == ["spare"]
        assert await found(app, "q=eth") == []

    run(story)


def test_what_is_deleted_is_not_found_whatever_it_was(run):
    async def story(app):
        flavor = {"id": "f-1", "name": "gold", "ram": 1, "vcpus": 1, "disk": 0}
        group = {"name": "apart", "policies": ["anti-affinity"]}
        groups, images = "/compute/v2.1/os-server-groups", "/image/v2/images"
        assert (await app.ask("POST", "/compute/v2.1/flavors", {"flavor": flavor})).status == 200
        made = (await app.ask("POST", groups, {"server_group": group})).json["server_group"]["id"]
        image = (await app.ask("POST", images, {"name": "cirros"})).json["id"]
        await current(app)
        assert await found(app, "") == ["apart", "cirros", "gold"]
        for path in ("/compute/v2.1/flavors/f-1", f"{groups}/{made}", f"{images}/{image}"):
            assert (await app.ask("DELETE", path)).status in (202, 204), path
        await current(app)
        assert await found(app, "") == []

    run(story)


def test_what_has_no_phases_takes_the_place_of_its_like_only(tmp_path, database_url):
    """A lock says nothing of tags, which an update before it did."""

    def told(what, **data):
        payload = json.dumps({"nova_object.data": {"name": "vm", **data}})
        return Fact(f"instance.{what}", "nova-compute", "server", NODE, payload)

    async def story():
        async with running(tmp_path, database_url) as app:
            store = app.program.store
            await tell(app, told("create.end", tags=[]), told("update", tags=["web"]))
            await tell(app, told("lock", locked=True))
            await store.commit(await Search(store).deal(await eventlog.heads(store)))
            ((one,), _, _) = await Search(store).find(Question())
            return json.loads(bytes(one["data"]))

    assert asyncio.run(story()) == {"name": "vm", "tags": ["web"], "locked": True}


def test_an_index_that_is_behind_claims_no_more_than_it_has(tmp_path, database_url):
    async def story():
        async with running(tmp_path, database_url) as app:
            one = Search(app.program.store)
            await tell(app, named("a"), *(fact(n, resource=OTHER) for n in range(2, 5)))
            await tell(app, named("b"), named("c"))
            log = await eventlog.read(app.program.store)
            seen = []
            for at in range(6):
                ops = await one.deal(log[at : at + 1])
                await place.seq(app.program.store, "search", begin_at=0, now=0.0)
                moved = place.moved("search", before=at, after=at + 1, now=0.0)
                await app.program.store.commit([*ops, moved])
                found, _, current_to = await one.find(Question(type="node"))
                names = {doc["id"]: json.loads(bytes(doc["data"])).get("name") for doc in found}
                seen.append((current_to, names.get(NODE)))
            await one.rebuild()
            assert (await one.find(Question()))[2] == 0
            return seen

    seen = asyncio.run(story())
    assert seen == [(1, "a"), (2, "a"), (3, "a"), (4, "a"), (5, "b"), (6, "c")]


def test_of_all_that_is_said_of_one_only_the_last_word_is_read(tmp_path, database_url, monkeypatch):
    async def story():
        async with running(tmp_path, database_url) as app:
            store, read = app.program.store, []
            await tell(app, named("a"), named("b"), named("c"), named("x", "power_set.start"))
            await tell(app, fact(1, resource=OTHER), fact(2, kind="delete.end", resource=OTHER))
            payloads = eventlog.payloads

            async def counted(store, numbers):
                read.extend(numbers)
                return await payloads(store, numbers)

            monkeypatch.setattr(eventlog, "payloads", counted)
            await store.commit(await Search(store).deal(await eventlog.heads(store)))
            found, _, _ = await Search(store).find(Question())
            return read, [json.loads(bytes(doc["data"]))["name"] for doc in found]

    assert asyncio.run(story()) == ([3, 4], ["x"])


def test_of_what_was_pruned_before_it_was_read_there_is_no_empty_document(tmp_path, database_url):
    async def story():
        async with running(tmp_path, database_url) as app:
            store = app.program.store
            await tell(app, named("a"), fact(2, resource=OTHER))
            heads = await eventlog.heads(store)
            await store.commit([Op("DELETE FROM events WHERE seq = 1")])
            await store.commit(await Search(store).deal(heads))
            found, _, _ = await Search(store).find(Question())
            return [one["id"] for one in found]

    assert asyncio.run(story()) == [OTHER]


def named(name, what="update.end", **more):
    payload = json.dumps({"ironic_object.data": {"name": name, **more}})
    return Fact(f"baremetal.node.{what}", "ironic-api", "node", NODE, payload)


def test_of_facts_of_several_kinds_the_last_word_counts(run):
    """Each has fields of its own, and some that all have."""

    async def story(app):
        await tell(app, named("a", "power_set.start", to_power="off"), named("b", extra={}))
        await tell(app, named("c", "power_set.end", to_power="off"))
        await current(app)
        (one,) = (await app.ask("GET", ADDRESS)).json["results"]
        assert one["data"] == {"name": "c", "extra": {}, "to_power": "off"}
        await tell(app, named("d", "delete.end"), named("e", "create.end"))
        await current(app)
        (one,) = (await app.ask("GET", ADDRESS)).json["results"]
        assert one["data"] == {"name": "e"}

    run(story)


def test_it_is_built_anew_from_the_log(run):
    async def story(app):
        await fleet(app)
        newest = await current(app)
        before = (await app.ask("GET", ADDRESS)).json
        gone = [Op("DELETE FROM search_docs")]
        if app.program.store.dialect == "sqlite":
            gone.append(Op("DELETE FROM search_words"))
        await app.program.store.commit(gone)
        assert (await app.ask("POST", f"{ADDRESS}/rebuild")).status == 202
        async with asyncio.timeout(30):
            while True:
                again = (await app.ask("GET", ADDRESS)).json
                if again["current_to"] == newest and again["results"]:
                    break
                await asyncio.sleep(0.02)
        for answer in (before, again):
            answer["results"].sort(key=lambda result: result["id"])
        assert again == before

    run(story)


def test_pages_lead_to_the_end(run):
    async def story(app):
        await fleet(app)
        await current(app)
        seen, after = [], 0
        while after is not None:
            answer = (await app.ask("GET", f"{ADDRESS}?limit=3&after={after}")).json
            seen += [result["id"] for result in answer["results"]]
            after = answer["next"]
        assert len(seen) == len(set(seen)) == 4

    run(story)


def test_words_are_looked_for_in_their_index_however_many_documents_there_are(
    tmp_path, postgres_url
):
    def doc(n):
        text = "".join(sha256(f"{n}-{part}".encode()).hexdigest() for part in range(24))
        return json.dumps({"name": f"n{n:05d}", "rack": f"r{n % 2}", "text": text})

    docs = [(f"{n}", "node", None, n, 1.0, doc(n)) for n in range(1, 3001)]

    async def looked_at(app, text):
        """How many documents the database looks at for an answer, and how many are in it."""
        store = app.program.store
        fetch, asked = store.fetch, []

        async def listening(sql, args=()):
            asked.append((sql, args))
            return await fetch(sql, args)

        store.fetch = listening
        answer = await Search(store).find(Question(text=text))
        store.fetch = fetch
        plans = [
            json.loads((await fetch("EXPLAIN (ANALYZE, FORMAT JSON) " + sql, args))[0][0])
            for sql, args in asked
            if "search_docs" in sql
        ]
        return sum(_rows_of(plan[0]["Plan"]) for plan in plans), len(answer[0])

    async def story():
        async with running(tmp_path, postgres_url) as app:
            for start in range(0, len(docs), 500):
                sql, rows = move(docs[start : start + 500])
                await app.program.store.write(f"{sql.replace('$1', '?')} RETURNING 1", (rows,))
            # Autovacuum does so in its own time; a size without the order of its rows, which it may
            # have come to know by then, makes so small a table look cheapest read from end to end.
            await app.program.store.fetch("ANALYZE search_docs")
            for text, found in (("n02711", 1), ("n0271", 10), ("nowhere", 0), ("r1", 100)):
                looked, count = await looked_at(app, text)
                assert (count, looked <= 1200) == (found, True), (text, looked)

    asyncio.run(story())


def _rows_of(plan):
    """Rows of tables that a plan's scans read, with those that they passed over."""
    own = 0
    if plan.get("Relation Name") == "search_docs":
        own = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
    return own + sum(map(_rows_of, plan.get("Plans", ())))


def test_a_project_finds_its_own_things_only(run):
    async def story(app):
        _, token, project = await app.person("reader")
        await app.make_node(name="ours", owner=project)
        await app.make_node(name="theirs", owner="x")
        await current(app)
        assert await found(app, "", token=token) == ["ours"]
        assert await found(app, "q=theirs", token=token) == []
        assert (await app.ask("GET", f"{ADDRESS}?project=x", token=token)).status == 403
        assert (await app.ask("POST", f"{ADDRESS}/rebuild", token=token)).status == 403

    run(story)


def test_nobody_learns_what_others_name_their_properties(run):
    async def story(app):
        _, token, project = await app.person("reader")
        for name, owner in (("ours", project), ("theirs", "x")):
            image = {"name": name, "owner": owner, f"{name}_rack": "r1"}
            assert (await app.ask("POST", "/image/v2/images", image)).status == 201
        await current(app)
        assert await found(app, "ours_rack=r1", token=token) == ["ours"]
        assert await found(app, "ours_rack=r2", token=token) == []
        assert await found(app, "theirs_rack=r1") == ["theirs"]
        said = [
            await app.ask("GET", f"{ADDRESS}?{name}_rack=r1", token=token)
            for name in ("theirs", "nobodys")
        ]
        assert [answer.status for answer in said] == [400, 400]
        assert said[0].sentence.replace("theirs", "nobodys") == said[1].sentence
        assert "ours_rack" not in said[0].sentence

    run(story)


def test_of_what_users_name_no_more_is_looked_at_than_can_be_at_once(run, monkeypatch):
    """Where there is more, any name may be there."""
    monkeypatch.setattr(search, "_LOOKED_AT", 1)

    async def story(app):
        assert (await app.ask("GET", f"{ADDRESS}?rack=r1")).status == 400
        assert (await app.ask("POST", "/image/v2/images", {"name": "a"})).status == 201
        await current(app)
        assert await found(app, "rack=r1") == []

    run(story)


def test_what_facts_say_is_known_before_anybody_said_it():
    def said(told):
        return {name for fact in told for name in words.data(json.loads(fact.payload))}

    assert said(fact for fact, _ in announced()) <= baremetal.FIELDS
    assert said(docs_payloads._of_servers()) <= compute.FIELDS


def test_a_field_that_only_some_have_can_be_asked_for(run):
    """The newest of its type was never told of its power."""

    async def story(app):
        told = {"nova_object.data": {"name": "old", "to_power": "power on"}}
        kind = "baremetal.node.power_set.end"
        await tell(app, Fact(kind, "ironic-api", "node", NODE, json.dumps(told)))
        new = {"nova_object.data": {"name": "new"}}
        kind = "baremetal.node.create.end"
        await tell(app, Fact(kind, "ironic-api", "node", OTHER, json.dumps(new)))
        await current(app)
        assert await found(app, "to_power=power%20on") == ["old"]
        for slip in ("to%25power", "toXpower"):
            answer = await app.ask("GET", f"{ADDRESS}?{slip}=power%20on")
            assert (answer.status, "Nothing has a field" in answer.sentence) == (400, True)

    run(story)


def test_what_cannot_be_is_said(run):
    async def story(app):
        await app.make_node(name="n1")
        await current(app)
        for query, word in (
            ("provison_state=active", "Nothing has a field 'provison_state'"),
            ("q=" + "x" * 500, "at most 400"),
            ("q=a&q=b", "given twice"),
            ("type=Node", "type must be a word"),
            ("limit=0", "from 1 to 1000"),
            ("after=x", "must be a number"),
            ("name=" + "x" * 500, "over 400 characters"),
            ("&".join(f"extra.{n}=1" for n in range(30)), "At most 20"),
        ):
            answer = await app.ask("GET", f"{ADDRESS}?{query}")
            assert (answer.status, word in answer.sentence) == (400, True), (query, answer)
        for text in ("%22", "*", "a*b", "'", "a%26b%7C!()", "%E2%82%AC", "AND%20OR%20NEAR(x)"):
            assert (await app.ask("GET", f"{ADDRESS}?q={text}")).status == 200, text

    run(story)


def test_objects_inside_a_payload_are_unwrapped():
    payload = {
        "nova_object.name": "InstancePayload",
        "nova_object.data": {
            "uuid": "u",
            "flavor": {"nova_object.name": "F", "nova_object.data": {"vcpus": 2}},
        },
    }
    assert words.data(payload) == {"uuid": "u", "flavor": {"vcpus": 2}}
    assert words.of_field("flavor.vcpus", 2) in words.of(words.data(payload)).split()
