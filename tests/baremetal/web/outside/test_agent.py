"""What the agent in a ramdisk may ask, and what everybody else does not learn by it."""

import itertools
from pathlib import Path
from typing import Any

import hypothesis
import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from siderite.baremetal.domain import agent
from siderite.baremetal.domain.node_machine import NODE
from siderite.baremetal.domain.steps import Job
from siderite.baremetal.domain.steps import Step
from siderite.baremetal.domain.steps import job_text
from siderite.baremetal.web.outside.agent import found_form
from siderite.core import work
from siderite.core.transition import Cause
from tests.baremetal.web import odd
from tests.baremetal.web.expect import refused
from tests.baremetal.web.test_any_request import check
from tests.baremetal.web.test_any_request import repeatable
from tests.support.app import VERSION_HEADER
from tests.support.app import Answer
from tests.support.app import Standing
from tests.support.app import scope
from tests.support.app import standing
from tests.support.examples import examples

URL = "https://10.0.0.9:9999"
EXPECTING = {
    "deploying", "wait call-back", "cleaning", "clean wait", "inspecting", "inspect wait",
    "rescuing", "rescue wait", "servicing", "service wait",
}  # fmt: skip
_numbers = itertools.count(1)


def lookup(app: Standing, query: str, **how: Any) -> Answer:
    """The answer to a ramdisk, which has no user's token."""
    return app.ask("GET", f"/v1/lookup?{query}", token="", **how)


def beat(app: Standing, node: str, **body: Any) -> Answer:
    """The answer to a heartbeat."""
    how = {"version": body.pop("version", 115)}
    return app.ask("POST", f"/v1/heartbeat/{node}", {"callback_url": URL, **body}, token="", **how)


def mac() -> str:
    """An address that no other port has."""
    return f"52:54:a0:00:00:{next(_numbers):02x}"


def inspecting(app: Standing, *, in_band: bool = True, waiting: bool = True, **fields: Any) -> str:
    """A node in `inspect wait` whose inspection stands at such a step."""
    node = app.plant("inspect wait", **fields)
    step = Step("inspect", "inspect", 100, in_band=in_band)
    job = job_text(Job(op="inspection", steps=[step], waiting=waiting))
    door = app.app.program.door
    change = door.change(Cause())
    change.work(work.add(node, "provision", "inspect", job=job, now=change.now, deadline=work.FAR))
    app.run(door.commit(change))
    return node


def token_of(app: Standing, node: str) -> str:
    """The token that a ramdisk is given."""
    answer = lookup(app, f"node_uuid={node}")
    assert answer.status == 200, answer
    jsonschema_rs.validate(found_form(), answer.json)
    return str(answer.json["config"]["agent_token"])


def test_the_token_is_given_once(app: Standing) -> None:
    node = app.plant("wait call-back", driver_internal_info={"secret_thing": "x"})
    first = lookup(app, f"node_uuid={node}").json
    assert set(first) == {"node", "config"}
    shown = {"uuid", "properties", "instance_info", "driver_internal_info", "links"}
    assert set(first["node"]) == shown
    token = first["config"]["agent_token"]
    assert len(token) > 30
    assert token not in str(first["node"])
    assert lookup(app, f"node_uuid={node}").json["config"]["agent_token"] == "******"
    assert app.node(node).driver_internal_info[agent.TOKEN] == token
    assert token not in app.ask("GET", f"/v1/nodes/{node}").body.decode()


def test_a_node_is_found_by_any_of_its_addresses(app: Standing) -> None:
    node, other = app.plant("clean wait"), app.plant("clean wait")
    own, its = mac(), mac()
    for home, address in ((node, own), (other, its)):
        made = app.ask("POST", "/v1/ports", {"address": address, "node_uuid": home})
        assert made.status == 201, made
    found = lookup(app, f"addresses={own.upper()},52:54:a0:ff:ff:ff,nonsense")
    assert found.json["node"]["uuid"] == node
    refused(lookup(app, f"addresses={own},{its}"), 404)
    refused(lookup(app, "addresses=52:54:a0:ff:ff:ff"), 404)
    refused(lookup(app, "addresses=nonsense"), 404)


@pytest.mark.parametrize("state", [*NODE.states])
def test_only_a_node_that_expects_a_ramdisk_is_there(lite: Standing, state: str) -> None:
    answer = lookup(lite, f"node_uuid={lite.plant(state)}")
    if state in EXPECTING:
        assert answer.status == 200, answer
        return
    missing = lookup(lite, f"node_uuid={odd.UUID}")
    assert refused(answer, 404) == refused(missing, 404)


def test_each_is_there_from_its_version_on(lite: Standing) -> None:
    node = lite.plant("wait call-back")
    refused(lookup(lite, f"node_uuid={node}", version=21), 404)
    refused(beat(lite, node, version=21), 404)
    assert lookup(lite, f"node_uuid={node}", version=61).json["config"]["agent_token"] is None
    token = token_of(lite, node)
    for name, since in (
        ("agent_version", 36), ("agent_token", 62), ("agent_verify_ca", 68), ("agent_status", 72),
    ):  # fmt: skip
        answer = beat(lite, node, version=since - 1, **{name: "start"})
        refused(answer, 400, "not recognised")
    assert beat(lite, node, version=62, agent_token=token).status == 202


@pytest.mark.parametrize(
    ("query", "words"),
    [("", "needs node_uuid"), ("node_uuid=x", "must be a UUID"), ("mac=1", "Unexpected arguments"),
     ("addresses=" + ",".join(["52:54:00:00:00:01"] * 65), "at most")],
)  # fmt: skip
def test_a_wrong_lookup_is_refused(lite: Standing, query: str, words: str) -> None:
    refused(lookup(lite, query), 400, words)


def test_a_heartbeat_says_where_the_agent_is(app: Standing) -> None:
    node = app.plant("wait call-back")
    token = token_of(app, node)
    answer = beat(app, node, agent_token=token, agent_version="9.1", agent_verify_ca="PEM")
    assert (answer.status, answer.body) == (202, b"")
    info = app.node(node).driver_internal_info
    assert (info["agent_url"], info["agent_version"]) == (URL, "9.1")
    assert info["agent_last_heartbeat"]
    version = app.node(node).version
    assert beat(app, node, agent_token=token).status == 202
    assert app.node(node).version == version, "a heartbeat without news soon after is not recorded"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"agent_token": None}, "token is required"),
        ({"agent_token": "wrong"}, "not the one"),
        ({"callback_url": "http://10.0.0.9:9999"}, "must be https"),
        ({"callback_url": "HTTP://10.0.0.9:9999"}, "must be https"),
        ({"callback_url": " http://10.0.0.9:9999"}, "must be https"),
        ({"callback_url": "ftp://10.0.0.9"}, "http or https"),
        ({"callback_url": "https://[::1"}, "http or https"),
        ({"callback_url": None}, "http or https"),
        ({"agent_version": 7}, "must be text"),
        ({"agent_status": "fine"}, "Valid states"),
        ({"colour": "red"}, "Unexpected arguments"),
    ],
)
def test_a_wrong_heartbeat_is_refused(lite: Standing, body: Any, words: str) -> None:
    node = lite.plant("wait call-back")
    token = token_of(lite, node)
    refused(beat(lite, node, **{"agent_token": token, **body}), 400, words)


def test_an_agent_does_not_move(lite: Standing) -> None:
    node = lite.plant("wait call-back")
    token = token_of(lite, node)
    assert beat(lite, node, agent_token=token).status == 202
    moved = beat(lite, node, agent_token=token, callback_url="https://10.0.0.10:9999")
    refused(moved, 400, "another than before")


def test_a_heartbeat_does_not_tell_which_nodes_there_are(lite: Standing) -> None:
    wild = {refused(beat(lite, odd.UUID, agent_token="a guess"), 404)}
    named = lite.plant("active", name="in-use")
    for ident in ("no-such-node", "in-use", named, lite.plant("clean wait")):
        wild.add(refused(beat(lite, ident, agent_token="a guess"), 404))
    assert len(wild) == 1, "one sentence for all of them"
    expected = lite.plant("clean wait")
    token_of(lite, expected)
    refused(beat(lite, expected, agent_token="a guess"), 400, "not the one")


def test_a_node_at_rest_forgets_its_ramdisk(lite: Standing) -> None:
    node = lite.plant("clean wait")
    token = token_of(lite, node)
    assert beat(lite, node, agent_token=token).status == 202
    path = f"/v1/nodes/{node}/states/provision"
    assert lite.ask("PUT", path, {"target": "abort"}).status == 202
    assert lite.node(node).driver_internal_info == {}
    refused(beat(lite, node, agent_token=token), 404)


def test_inspection_is_continued_only_for_a_node_that_waits_for_it(app: Standing) -> None:
    node = inspecting(app, properties={"cpus": "2"})
    address = mac()
    inventory = {
        "interfaces": [{"mac_address": address.upper()}], "cpu": {"count": 8},
        "memory": {"total": 2**34}, "disks": [{"size": 2**38}, {"size": None}],
    }  # fmt: skip
    path = f"/v1/continue_inspection?node_uuid={node}"
    body = {"inventory": inventory, "logs": "x"}
    refused(app.ask("POST", path, body, token="", version=83), 404)
    refused(app.ask("POST", path.replace("node_", ""), body, token=""), 400, "Unexpected arguments")
    refused(app.ask("POST", path, {"inventory": {}}, token=""), 400)
    refused(app.ask("POST", path, {"inventory": {"interfaces": [{}]}}, token=""), 400)
    answer = app.ask("POST", path, body, token="")
    assert (answer.status, answer.json["node"]["uuid"]) == (202, node), answer
    shown = app.ask("GET", f"/v1/nodes/{node}/inventory").json
    assert shown == {"inventory": inventory, "plugin_data": {"logs": "x"}}
    wanted = {"cpus": "2", "memory_mb": "16384", "local_gb": "256"}
    assert app.node(node).properties == wanted
    # The port that was found tells the node from now on.
    older = app.ask("POST", "/v1/continue_inspection", body, token="", version=1)
    assert (older.status, older.json) == (202, {"uuid": node})
    ready = app.plant("manageable")
    refused(app.ask("POST", f"/v1/continue_inspection?node_uuid={ready}", body, token=""), 404)


@pytest.mark.parametrize("stands", [{"in_band": False}, {"waiting": False}])
def test_an_inspection_that_has_booted_no_ramdisk_is_continued_by_none(
    app: Standing, stands: Any
) -> None:
    node = inspecting(app, **stands)
    body = {"inventory": {"interfaces": [{"mac_address": mac()}]}}
    answer = app.ask("POST", f"/v1/continue_inspection?node_uuid={node}", body, token="")
    missing = app.ask("POST", f"/v1/continue_inspection?node_uuid={odd.UUID}", body, token="")
    assert refused(answer, 404) == refused(missing, 404)
    assert app.node(node).driver_internal_info == {}
    assert app.ask("GET", f"/v1/nodes/{node}/inventory").status == 404
    assert app.ask("GET", f"/v1/nodes/{node}/ports").json["ports"] == []


def test_nothing_is_read_of_a_report_that_nobody_waits_for(
    tmp_path: Path, database_url: str
) -> None:
    path = "/baremetal/v1/continue_inspection"
    with standing(tmp_path, database_url) as app:
        refused(app.run(unread(app, path)), 404)
        node = inspecting(app)
        refused(app.run(unread(app, f"{path}?node_uuid={odd.UUID}")), 404)
        refused(app.ask("POST", path, b"{", token=""), 400)
        refused(app.ask("POST", f"{path}?node_uuid={node}", b"{", token=""), 400)


async def unread(app: Standing, path: str) -> Answer:
    """The answer to a request whose body must not be asked for."""
    told: list[Any] = []

    async def receive() -> Any:
        raise AssertionError("the body was read")

    async def send(message: Any) -> None:
        told.append(message)

    headers = [(b"host", b"cloud.test"), (VERSION_HEADER.encode(), b"1.115")]
    await app.app.program.app(scope("POST", path, headers), receive, send)
    fields = [(name.decode(), text.decode()) for name, text in told[0]["headers"]]
    return Answer(told[0]["status"], fields, told[1]["body"])


@pytest.mark.parametrize("odd_one", [5, True, "x", {"a": 1}, [5], [{"size": True}], None, []])
def test_an_inventory_that_makes_no_sense_says_nothing_of_the_machine(
    lite: Standing, odd_one: Any
) -> None:
    node = inspecting(lite)
    count = odd_one if isinstance(odd_one, bool) else -1
    inventory = {
        "interfaces": [{"mac_address": mac()}], "disks": odd_one, "cpu": {"count": count},
        "memory": {"physical_mb": count, "total": odd_one},
    }  # fmt: skip
    path = f"/v1/continue_inspection?node_uuid={node}"
    answer = lite.ask("POST", path, {"inventory": inventory}, token="")
    assert answer.status == 202, answer
    assert lite.node(node).properties == {}


@hypothesis.settings(repeatable, max_examples=examples(20))
@given(data=st.data())
def test_nothing_that_a_ramdisk_sends_is_a_server_error(
    lite: Standing, data: st.DataObject
) -> None:
    node = lite.plant("wait call-back")
    values = st.just(URL) | odd.SCALARS
    body = data.draw(st.dictionaries(st.sampled_from(["callback_url", "agent_token"]), values))
    check(lite, "POST", f"/v1/heartbeat/{node}", body=odd.as_bytes(body), token="")
    found = data.draw(
        st.fixed_dictionaries({"inventory": st.dictionaries(
            st.sampled_from(["interfaces", "cpu", "memory", "disks"]),
            odd.JSON | st.just([{"mac_address": "52:54:a1:00:00:01"}]),
        )})
    )  # fmt: skip
    check(lite, "POST", "/v1/continue_inspection", body=odd.as_bytes(found), token="")
    found["inventory"]["interfaces"] = [{"mac_address": "52:54:a1:00:00:01"}]
    awaited = f"/v1/continue_inspection?node_uuid={inspecting(lite)}"
    check(lite, "POST", awaited, body=odd.as_bytes(found), token="")
    query = data.draw(odd.QUERIES)
    check(lite, "GET", f"/v1/lookup?{query}", token="")
