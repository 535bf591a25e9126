"""The traits of nodes and runbooks: set, added, removed, cleared."""

import asyncio
from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.baremetal.web import odd
from tests.baremetal.web.expect import footprint
from tests.baremetal.web.expect import refused
from tests.baremetal.web.kinds import KINDS
from tests.baremetal.web.test_any_request import check
from tests.baremetal.web.test_any_request import one_node
from tests.baremetal.web.test_any_request import repeatable
from tests.baremetal.web.told import told
from tests.baremetal.web.told import types
from tests.support.app import Answer
from tests.support.app import Standing
from tests.support.examples import examples

FAST, WIDE, SSD = "CUSTOM_FAST", "CUSTOM_WIDE", "STORAGE_DISK_SSD"


def place(app: Standing, kind: str) -> str:
    """Where the traits of a new node or runbook are."""
    if kind == "nodes":
        return f"/v1/nodes/{app.make_node()}/traits"
    return f"/v1/runbooks/{KINDS['runbook'].make(app)['uuid']}/traits"


@pytest.mark.parametrize("kind", ["nodes", "runbooks"])
def test_traits_are_set_added_removed_and_cleared(app: Standing, kind: str) -> None:
    path = place(app, kind)

    def there() -> Any:
        return app.ask("GET", path).json

    assert there() == {"traits": []}
    assert app.ask("PUT", path, {"traits": [WIDE, FAST, WIDE]}).status == 204
    assert there() == {"traits": [FAST, WIDE]}
    added = app.ask("PUT", f"{path}/{SSD}")
    assert added.status == 204
    assert added.headers["location"] == f"http://cloud.test/baremetal{path}/{SSD}"
    assert app.ask("PUT", f"{path}/{SSD}", {}).status == 204
    assert there() == {"traits": [FAST, WIDE, SSD]}
    assert app.ask("GET", path.removesuffix("/traits")).json["traits"] == [FAST, WIDE, SSD]
    assert app.ask("DELETE", f"{path}/{FAST}").status == 204
    gone = app.ask("DELETE", f"{path}/{FAST}")
    if kind == "nodes":
        refused(gone, 404, FAST, WIDE)
    else:
        assert gone.status == 204
    assert there() == {"traits": [WIDE, SSD]}
    assert app.ask("DELETE", path).status == 204
    assert there() == {"traits": []}


@pytest.mark.parametrize(
    "body",
    [{}, [], {"traits": None}, {"traits": "x"}, {"traits": ["fast"]}, {"traits": [7]},
     {"traits": ["CUSTOM_fast"]}, {"traits": ["CUSTOM_" + "A" * 249]}, {"traits": [], "x": 1}],
)  # fmt: skip
def test_what_is_no_trait_is_refused_in_words(lite: Standing, body: Any) -> None:
    for kind in ("nodes", "runbooks"):
        path = place(lite, kind)
        before = footprint(lite)
        refused(lite.ask("PUT", path, body), 400)
        refused(lite.ask("PUT", f"{path}/fast"), 400, "CUSTOM_")
        refused(lite.ask("PUT", f"{path}/{FAST}", {"traits": []}), 400, "body")
        assert footprint(lite) == before


def test_a_node_has_at_most_fifty(lite: Standing) -> None:
    path = place(lite, "nodes")
    many = [f"CUSTOM_{n}" for n in range(50)]
    assert lite.ask("PUT", path, {"traits": many}).status == 204
    refused(lite.ask("PUT", f"{path}/{FAST}"), 400, "50")
    assert lite.ask("PUT", f"{path}/{many[0]}").status == 204


def test_each_refusal_of_an_old_version_is_that_of_ironic(lite: Standing) -> None:
    path = place(lite, "nodes")
    for method, status in (("GET", 406), ("PUT", 405), ("DELETE", 404)):
        refused(lite.ask(method, path, {"traits": []}, version=36), status, "1.37")
    path = place(lite, "runbooks")
    for method in ("GET", "PUT", "DELETE"):
        refused(lite.ask(method, path, {"traits": []}, version=111), 404, "1.112")


def test_a_change_is_announced_as_one_of_the_node(app: Standing) -> None:
    node = app.make_node()
    path = f"/v1/nodes/{node}/traits/{FAST}"
    for _ in range(2):
        assert app.ask("PUT", path).status == 204
    facts = told(app, node)[2:]
    assert [fact.event_type for fact in facts] == [
        f"baremetal.node.update.{status}" for status in ("start", "end")
    ]
    assert [fact.data["traits"] for fact in facts] == [[], [FAST]]
    uuid = KINDS["runbook"].make(app)["uuid"]
    assert app.ask("PUT", f"/v1/runbooks/{uuid}/traits/{FAST}").status == 204
    assert types(app, uuid)[2:] == ["runbook.update.start", "runbook.update.end"]


def test_traits_are_the_owners_to_set(app: Standing) -> None:
    _, token, project = app.person("member")
    mine, loan = app.plant("enroll", owner=project), app.plant("enroll", lessee=project)
    assert app.ask("PUT", f"/v1/nodes/{mine}/traits/{FAST}", token=token).status == 204
    refused(app.ask("PUT", f"/v1/nodes/{loan}/traits/{FAST}", token=token), 403, "trait:update")
    assert app.ask("GET", f"/v1/nodes/{loan}/traits", token=token).json == {"traits": []}
    refused(app.ask("GET", f"/v1/nodes/{app.make_node()}/traits", token=token), 404)


def test_no_trait_is_lost_however_they_race(app: Standing) -> None:
    node = app.make_node()
    wanted = [f"CUSTOM_R{n}" for n in range(12)]

    async def story() -> list[Answer]:
        paths = [f"/v1/nodes/{node}/traits/{trait}" for trait in wanted]
        return await asyncio.gather(*(app.app.ask("PUT", path) for path in paths))

    assert {answer.status for answer in app.run(story())} == {204}
    assert set(app.node(node).traits) == set(wanted)


BELOW_NODES = (
    "traits", "traits/{}", "vifs", "vifs/{}", "allocation", "children", "volume", "ports",
    "portgroups/detail", "volume/targets", "volume/connectors",
)  # fmt: skip


@hypothesis.settings(repeatable, max_examples=examples(20))
@given(data=st.data())
def test_nothing_sent_to_what_is_below_a_node_is_a_server_error(
    lite: Standing, data: st.DataObject
) -> None:
    with one_node(lite, state="active", name="n1", network_interface="flat") as node:
        end = data.draw(st.sampled_from(BELOW_NODES))
        end = end.format(data.draw(odd.SEGMENTS | st.just(FAST)))
        body = data.draw(
            odd.JSON
            | st.fixed_dictionaries({"traits": st.lists(odd.TEXTS | st.just(FAST)) | odd.JSON})
            | st.fixed_dictionaries(
                {"id": odd.TEXTS}, optional={"port_uuid": odd.JSON, "portgroup_uuid": odd.JSON}
            )
        )
        query = data.draw(st.just("") | odd.QUERIES)
        method = data.draw(st.sampled_from(["GET", "PUT", "POST", "DELETE"]))
        version = data.draw(st.just("1.115") | odd.VERSIONS)
        path = f"/v1/nodes/{node}/{end}?{query}"
        check(lite, method, path, body=odd.as_bytes(body), version=version)
