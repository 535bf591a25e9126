"""What all records have in common: versions, fields, lists, facts, refusals, races."""

import asyncio
import json
from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from siderite.core.ids import new_uuid
from tests.baremetal.web import odd
from tests.baremetal.web.expect import footprint
from tests.baremetal.web.expect import refused
from tests.baremetal.web.kinds import KINDS
from tests.baremetal.web.kinds import RULE
from tests.baremetal.web.kinds import Kind
from tests.baremetal.web.test_any_request import check
from tests.baremetal.web.test_any_request import one_node
from tests.baremetal.web.test_any_request import repeatable
from tests.baremetal.web.told import told
from tests.baremetal.web.told import types
from tests.support.app import Answer
from tests.support.app import Standing
from tests.support.examples import examples


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    """Each kind of record."""
    return KINDS[request.param]


def edges(kind: Kind) -> list[int]:
    """The versions that change what is seen, those just before them, and the last ones."""
    around = {edge for since in kind.shown for edge in (since - 1, since)}
    return sorted(edge for edge in around | {115, 900} if edge >= kind.oldest)


def test_the_table_of_fields_is_that_of_ironic(kind: Kind) -> None:
    assert dict(kind.resource.view.fields) == kind.since


def test_each_version_shows_exactly_its_fields(lite: Standing, kind: Kind) -> None:
    for version in edges(kind):
        expected = {name for name, since in kind.since.items() if since <= version}
        made = kind.post(lite, version=version)
        assert (made.status, set(made.json)) == (201, expected)
        path = f"{kind.path}/{made.json['uuid']}"
        assert made.headers["location"] == "http://cloud.test/baremetal" + path
        assert made.json["links"][0]["href"] == made.headers["location"]
        assert lite.ask("GET", path, version=version).json == made.json
        field = "description" if kind.path.endswith("rules") else "extra"
        value = "e" if field == "description" else {"at": version}
        patched = kind.patch(lite, made.json["uuid"], ("add", f"/{field}", value), version=version)
        assert (patched.status, set(patched.json)) == (200, expected)
        full = "/detail" if kind.resource.details else "?detail=true"
        if version >= 43 or kind.resource.details:
            listed = lite.ask("GET", kind.path + full, version=version).json[kind.items]
            assert all(set(item) == expected for item in listed)
        brief = lite.ask("GET", kind.path, version=version).json[kind.items]
        assert all(set(item) == {*kind.brief.split(), "links"} for item in brief)
        last = {key: patched.json[key] for key in (*kind.brief.split(), "links")}
        assert brief[-1] == last


def test_a_version_that_does_not_know_it_has_no_such_address(lite: Standing, kind: Kind) -> None:
    uuid = kind.make(lite)["uuid"]
    before = footprint(lite)
    node_like = kind.resource.noun in ("portgroup", "volume")
    for method, path in (
        ("GET", ""), ("POST", ""), ("GET", f"/{uuid}"), ("PATCH", f"/{uuid}"),
        ("DELETE", f"/{uuid}"),
    ):  # fmt: skip
        answer = lite.ask(method, kind.path + path, {}, version=kind.oldest - 1)
        status = 404 if node_like or method == "GET" else 405
        refused(answer, status, f"1.{kind.oldest}")
    assert footprint(lite) == before


def test_a_field_newer_than_the_version_is_not_acceptable(lite: Standing, kind: Kind) -> None:
    node = kind.node(lite)
    uuid = kind.make(lite, node=node)["uuid"]
    for name, value in kind.valid.items():
        since = kind.since[name]
        made = kind.post(lite, node=node, version=since, **{name: value})
        assert (made.status, made.json.get(name)) == (201, value), name
        if since == kind.oldest:
            continue
        word = (name, f"1.{since}")
        answer = kind.post(lite, node=node, version=since - 1, **{name: value})
        refused(answer, 406, *word)
        answer = kind.patch(lite, uuid, ("add", f"/{name}", value), version=since - 1)
        refused(answer, 406, *word)
        for query in (f"/{uuid}?fields={name}", f"?fields={name}"):
            refused(lite.ask("GET", kind.path + query, version=since - 1), 406, *word)
            assert lite.ask("GET", kind.path + query, version=since).status == 200


def test_everything_that_can_be_said_is_kept_and_patched(app: Standing, kind: Kind) -> None:
    said = dict(kind.valid)
    made = kind.make(app, **said)
    assert {name: made[name] for name in said} == said
    other = kind.make(app)
    for name, value in said.items():
        patched = kind.patch(app, other["uuid"], ("add", f"/{name}", value))
        assert (patched.status, patched.json[name]) == (200, value), name
    needed = {*kind.resource.form.required}
    fresh = kind.make(app, **({"owner": None} if "owner" in said else {}))
    for name in {*said} - needed:
        patched = kind.patch(app, other["uuid"], ("remove", f"/{name}"))
        assert (patched.status, patched.json[name]) == (200, fresh[name]), name
    for name in needed:
        refused(kind.patch(app, other["uuid"], ("remove", f"/{name}")), 400, name)


def test_what_cannot_be_is_refused_in_words(app: Standing, kind: Kind) -> None:
    node = kind.node(app)
    uuid = kind.make(app, node=node)["uuid"]
    before = footprint(app)
    everywhere: list[tuple[str, Any]] = [("bogus", 1), ("created_at", "x")]
    if kind.of_node:
        everywhere += [("node_uuid", "x"), ("node_uuid", None), ("node_uuid", odd.UUID)]
    for name, value in [*kind.wrong, *everywhere]:
        refused(kind.post(app, node=node, **{name: value}), 400)
        refused(kind.patch(app, uuid, ("replace", f"/{name}", value)), 400)
    refused(kind.post(app, node=node, uuid="x"), 400, "uuid")
    refused(kind.patch(app, uuid, ("replace", "/uuid", new_uuid())), 400, "Cannot patch /uuid")
    for name in kind.resource.form.needed:
        body = kind.body(app, node)
        del body[name]
        refused(app.ask("POST", kind.path, body), 400, name, "required")
    refused(app.ask("POST", kind.path, []), 400, "object")
    refused(app.ask("GET", f"{kind.path}/{new_uuid()}"), 404, "could not be found")
    assert footprint(app) == before
    assert [told.rpartition(".")[2] for told in types(app, uuid)] == ["start", "end"]


def test_what_is_taken_is_a_conflict_and_announced(app: Standing, kind: Kind) -> None:
    node = kind.node(app)
    first = kind.make(app, node=node)
    word = kind.resource.records.facts.word
    for name in (*kind.unique, "uuid"):
        own = first["uuid"] if name == "uuid" else new_uuid()
        before = footprint(app)
        answer = kind.post(app, node=node, **{"uuid": own, name: first[name]})
        refused(answer, 409, str(first[name]), "already")
        assert footprint(app) == before
        assert types(app, own)[-2:] == [f"{word}.create.start", f"{word}.create.error"]
        if name == "uuid":
            continue
        second = kind.make(app, node=node)["uuid"]
        before = footprint(app)
        refused(kind.patch(app, second, ("add", f"/{name}", first[name])), 409, str(first[name]))
        assert footprint(app) == before
        assert types(app, second)[-2:] == [f"{word}.update.start", f"{word}.update.error"]


def test_facts_tell_of_each_change_once_and_in_order(app: Standing, kind: Kind) -> None:
    node = kind.node(app, owner="them")
    uuid = kind.make(app, node=node, **kind.valid)["uuid"]
    name, value = next((n, v) for n, v in kind.valid.items() if n in ("extra", "description"))
    other = "e" if name == "description" else {"b": 2}
    for _ in range(2):  # the second changes nothing
        assert kind.patch(app, uuid, ("replace", f"/{name}", other)).status == 200
    assert app.ask("DELETE", f"{kind.path}/{uuid}").status == 204
    refused(app.ask("GET", f"{kind.path}/{uuid}"), 404, uuid)
    found = told(app, uuid)
    word = kind.resource.records.facts.word
    assert [fact.event_type for fact in found] == [
        f"baremetal.{word}.{action}.{status}"
        for action in ("create", "update", "delete")
        for status in ("start", "end")
    ]
    for fact in found:
        assert (fact.kind, set(fact.data)) == (kind.payload, {*kind.fields.split()})
        assert (fact.priority, fact.publisher) == ("INFO", "ironic-api.here")
        assert fact.project == ("them" if kind.of_node else fact.data.get("owner"))
    assert [fact.data[name] for fact in found] == [value] * 3 + [other] * 3


@pytest.mark.parametrize("name", ["template", "runbook", "target"])
def test_secrets_are_kept_and_never_shown(app: Standing, name: str) -> None:
    kind = KINDS[name]
    field = "properties" if name == "target" else "steps"
    secret: Any = {"auth_password": "hunter2", "port": 1}
    if field == "steps":
        secret = [{**kind.must["steps"][0], "args": secret}]
    made = kind.make(app, **{field: secret})
    path = f"{kind.path}/{made['uuid']}"
    assert kind.patch(app, made["uuid"], ("add", "/extra/a", 1)).status == 200
    texts = [app.ask("GET", where).body for where in (path, f"{kind.path}?detail=true")]
    texts += [json.dumps(fact.data).encode() for fact in told(app, made["uuid"])]
    for text in texts:
        assert b"hunter2" not in text and b"******" in text
    table = kind.resource.records.table
    stored = app.run(table.get(app.app.program.store, made["uuid"]))
    assert getattr(stored, field) == secret


def test_what_a_sensitive_rule_does_is_never_shown(app: Standing) -> None:
    kind = KINDS["rule"]
    made = kind.make(app, sensitive=True)
    assert (made["actions"], made["conditions"]) == (None, None)
    shown = app.ask("GET", f"{kind.path}/{made['uuid']}").json
    assert (shown["actions"], shown["sensitive"]) == (None, True)
    refused(kind.patch(app, made["uuid"], ("replace", "/sensitive", False)), 400, "stays so")
    assert kind.patch(app, made["uuid"], ("add", "/description", "d")).status == 200
    for fact in told(app, made["uuid"]):
        assert fact.data["actions"] is None
    table = kind.resource.records.table
    assert app.run(table.get(app.app.program.store, made["uuid"])).actions == [RULE]


def test_pages_join_to_the_whole_list(app: Standing, kind: Kind) -> None:
    node = kind.node(app)
    mine = [kind.make(app, node=node)["uuid"] for _ in range(3)]
    for sort in ("id", *kind.brief.split(), "updated_at"):
        for way in ("asc", "desc"):
            path, seen = f"{kind.path}?limit=2&sort_key={sort}&sort_dir={way}", []
            while path:
                page = app.ask("GET", path).json
                seen += [item["uuid"] for item in page[kind.items]]
                path = page.get("next", "").removeprefix("http://cloud.test/baremetal")
            assert len(seen) == len(set(seen))
            assert set(mine) <= set(seen)
    for name in kind.resource.unsortable:
        refused(app.ask("GET", f"{kind.path}?sort_key={name}"), 400, "sort_key")
    refused(app.ask("GET", f"{kind.path}?marker={odd.UUID}"), 404, odd.UUID)
    refused(app.ask("GET", f"{kind.path}?bogus=x"), 400, "takes")
    refused(app.ask("GET", f"{kind.path}?fields=uuid&detail=true"), 400, "detail")


def test_those_of_a_node_are_listed_and_go_with_it(app: Standing, kind: Kind) -> None:
    if not kind.of_node:
        return
    _, token, project = app.person("reader")
    node, other = kind.node(app, owner=project), kind.node(app, name=f"named-{new_uuid()[:8]}")
    mine = [kind.make(app, node=node)["uuid"] for _ in range(2)]
    theirs = kind.make(app, node=other)["uuid"]

    def listed(path: str, **how: Any) -> list[str]:
        answer = app.ask("GET", path, **how)
        assert answer.status == 200, answer
        return [item["uuid"] for item in answer.json[kind.items]]

    name = app.show(other)["name"]
    assert listed(f"{kind.path}?node={name}") == [theirs]
    for path in (f"{kind.path}?node={node}", f"/v1/nodes/{node}/{kind.resource.path}"):
        assert listed(path) == listed(path, token=token) == mine
    assert listed(kind.path, token=token) == mine
    refused(app.ask("GET", f"{kind.path}/{theirs}", token=token), 404, theirs)
    refused(app.ask("GET", f"{kind.path}?node={other}", token=token), 404, other)
    refused(app.ask("POST", kind.path, kind.body(app, node), token=token), 403)
    refused(app.ask("DELETE", f"{kind.path}/{mine[0]}", token=token), 403)
    moved = kind.patch(app, theirs, ("replace", "/node_uuid", node))
    assert moved.json["node_uuid"] == node
    assert app.ask("DELETE", f"/v1/nodes/{node}").status == 204
    for uuid in (*mine, theirs):
        refused(app.ask("GET", f"{kind.path}/{uuid}"), 404)
        assert [event.rpartition(".")[2] for event in types(app, uuid)[-2:]] == ["start", "end"]


def test_of_two_who_want_one_name_one_gets_it(app: Standing, kind: Kind) -> None:
    if not kind.unique:
        return
    node = kind.node(app)
    bodies = [kind.body(app, node) for _ in range(6)]
    for body in bodies:
        body |= {name: bodies[0][name] for name in kind.unique}

    async def story() -> list[Answer]:
        return await asyncio.gather(*(app.app.ask("POST", kind.path, body) for body in bodies))

    assert sorted(answer.status for answer in app.run(story())) == [201] + [409] * 5


def test_none_is_changed_that_is_gone_however_they_race(app: Standing, kind: Kind) -> None:
    field = "description" if kind.path.endswith("rules") else "extra"
    for _ in range(3):
        uuid = kind.make(app)["uuid"]
        path = f"{kind.path}/{uuid}"

        async def story(path: str = path) -> list[Answer]:
            values = ["a", "b", "c", "d"] if field == "description" else [{"a": n} for n in "abcd"]
            asks = [
                app.app.ask("PATCH", path, [{"op": "add", "path": f"/{field}", "value": value}])
                for value in values
            ]
            # In upper case: what asks by the same word waits its turn, and would not race.
            asks.insert(2, app.app.ask("DELETE", f"{kind.path}/{path[-36:].upper()}"))
            return await asyncio.gather(*asks)

        answers = app.run(story())
        assert answers[2].status == 204
        assert {answer.status for answer in answers} <= {200, 204, 404}
        refused(app.ask("GET", path), 404)
        assert types(app, uuid)[-1].endswith("delete.end")


@pytest.mark.parametrize("name", KINDS)
@hypothesis.settings(repeatable, max_examples=examples(10))
@given(data=st.data())
def test_no_creation_patch_or_query_is_a_server_error(
    lite: Standing, name: str, data: st.DataObject
) -> None:
    kind = KINDS[name]
    with one_node(lite, state="manageable", power_state="power off", name="n1") as node:
        uuid = kind.make(lite, node=node)["uuid"]
        version = data.draw(st.just("1.115") | odd.VERSIONS)
        form = kind.resource.form
        names = st.sampled_from([*form.fields, *form.at_creation])
        values = odd.JSON | odd.STEPS | odd.PARTS
        body = kind.body(lite, node) | data.draw(
            st.dictionaries(names | odd.TEXTS, values, max_size=3)
        )
        check(lite, "POST", kind.path, body=odd.as_bytes(body), version=version)
        body = odd.as_bytes(data.draw(odd.patch_of(form.fields)))
        check(lite, "PATCH", f"{kind.path}/{uuid}", body=body, version=version)
        query = data.draw(odd.QUERIES)
        for path in (kind.path, f"{kind.path}/{uuid}"):
            check(lite, "GET", f"{path}?{query}", version=version)
        assert check(lite, "DELETE", f"{kind.path}/{uuid}").status == 204
