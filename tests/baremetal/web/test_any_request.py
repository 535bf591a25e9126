"""Whatever is sent to whichever address: never a 500, and a refusal changes nothing."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck
from hypothesis import given
from hypothesis import strategies as st

from siderite.baremetal.domain.node_machine import NODE
from siderite.baremetal.web.routes import ROUTES
from siderite.core.store import Op
from siderite.health import HealthService
from siderite.identity.web.routes import ROUTES as IDENTITY_ROUTES
from tests.baremetal.web import expect
from tests.baremetal.web import odd
from tests.support.app import Answer
from tests.support.app import Standing
from tests.support.examples import IS_SAME_EACH_TIME
from tests.support.examples import examples
from tests.support.known import empty_mind

repeatable = hypothesis.settings(
    max_examples=examples(20),
    derandomize=IS_SAME_EACH_TIME,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

BAREMETAL = [("/baremetal" + route.path, route.method) for route in ROUTES]
IDENTITY = [("/identity" + route.path, route.method) for route in IDENTITY_ROUTES]
OTHERS = [
    ("/", "GET"),
    ("/healthz", "GET"),
    ("/livez", "GET"),
    ("/openapi.json", "GET"),
    ("/metrics", "GET"),
    ("/simulator/v1/scripts", "GET"),
    ("/simulator/v1/scripts/{scope}", "PUT"),
    ("/simulator/v1/scripts/{scope}", "DELETE"),
    ("/simulator/v1/racks/{rack}/power-cut", "POST"),
]
EMPTIED = ("nodes", *expect.RECORDS, "work", "events")
NODE_UUID = "7d1f6a52-4c3b-4f0e-9a55-0d3c5a1e2b11"
NODES = st.fixed_dictionaries(
    {"state": st.sampled_from([*NODE.states])},
    optional={
        "maintenance": st.booleans(),
        "protected": st.booleans(),
        "retired": st.booleans(),
        "target_power_state": st.sampled_from([None, "power on"]),
        "power_state": st.sampled_from([None, "power off"]),
        "instance_uuid": st.just(odd.UUID),
        "extra": st.just({"list": [1, {"a": 2}], "a": {}}),
        "disable_power_off": st.booleans(),
    },
)


@contextmanager
def one_node(app: Standing, **fields: Any) -> Iterator[str]:
    """A node for one example, and an empty fleet after it."""
    try:
        yield app.plant(uuid=NODE_UUID, **fields)
    finally:
        ops = [Op(f"DELETE FROM {table}") for table in EMPTIED]
        app.run(app.app.program.store.commit(ops))
        empty_mind(app.app.program.store)


def check(app: Standing, method: str, path: str, **how: Any) -> Answer:
    """Ask; the answer must be sane, and a refusal must leave everything as it was."""
    before = expect.footprint(app)
    body = how.pop("body", b"")
    answer = app.ask(method, path, body, **how)
    expect.sane(answer, method)
    if answer.status >= 400:
        assert expect.footprint(app) == before, answer
    return answer


def fill(data: st.DataObject, path: str, known: st.SearchStrategy[str]) -> str:
    """A route's path with something in the place of each parameter."""
    return re.sub(r"\{\w+\}", lambda _: data.draw(known | odd.SEGMENTS), path)


def in_full(path: str, query: str) -> str:
    """A path and its query, if any."""
    return f"{path}?{query}" if query else path


@repeatable
@given(data=st.data())
def test_no_body_at_any_bare_metal_address_is_a_server_error(
    app: Standing, data: st.DataObject
) -> None:
    with one_node(app, name="n1", **data.draw(NODES)) as uuid:
        path, method = data.draw(st.sampled_from(BAREMETAL))
        path = fill(data, path, st.sampled_from([uuid, "n1", uuid.upper(), "n1.json"]))
        version = data.draw(odd.VERSIONS)
        check(app, method, path, body=data.draw(odd.BODIES), version=version)


@repeatable
@given(data=st.data())
def test_no_json_patch_is_a_server_error(app: Standing, data: st.DataObject) -> None:
    with one_node(app, name="n1", **data.draw(NODES)) as uuid:
        query = data.draw(st.just("") | st.just("reset_interfaces=true") | odd.QUERIES)
        body = odd.as_bytes(data.draw(odd.PATCH))
        version = data.draw(st.just("1.115") | odd.VERSIONS)
        check(app, "PATCH", in_full(f"/v1/nodes/{uuid}", query), body=body, version=version)


@repeatable
@given(data=st.data())
def test_no_wish_for_a_state_is_a_server_error(app: Standing, data: st.DataObject) -> None:
    with one_node(app, **data.draw(NODES)) as uuid:
        kind, bodies = data.draw(
            st.sampled_from([("provision", odd.PROVISION), ("power", odd.POWER)])
        )
        body = odd.as_bytes(data.draw(bodies))
        version = data.draw(st.sampled_from(["1.115", "1.900", "1.38"]) | odd.VERSIONS)
        check(app, "PUT", f"/v1/nodes/{uuid}/states/{kind}", body=body, version=version)


@repeatable
@given(data=st.data())
def test_no_creation_is_a_server_error(app: Standing, data: st.DataObject) -> None:
    with one_node(app, state="enroll", name="n1"):
        body = odd.as_bytes(data.draw(odd.CREATION))
        version = data.draw(st.just("1.115") | odd.VERSIONS)
        answer = check(app, "POST", "/v1/nodes", body=body, version=version)
        if answer.status == 201:
            where = answer.headers["location"].removeprefix("http://cloud.test")
            assert check(app, "GET", where).status == 200


@repeatable
@given(data=st.data())
def test_no_query_is_a_server_error(app: Standing, data: st.DataObject) -> None:
    with one_node(app, name="n1", **data.draw(NODES)) as uuid:
        path = data.draw(st.sampled_from(["", "/detail", f"/{uuid}", f"/{uuid}/states"]))
        target = in_full("/v1/nodes" + path, data.draw(odd.QUERIES))
        check(app, "GET", target, version=data.draw(st.just("1.115") | odd.VERSIONS))


@repeatable
@given(data=st.data())
def test_no_method_path_or_header_is_a_server_error(app: Standing, data: st.DataObject) -> None:
    with one_node(app, name="n1", state="enroll") as uuid:
        path, _ = data.draw(st.sampled_from(BAREMETAL + OTHERS))
        path = fill(data, path, st.just(uuid))
        path += data.draw(st.sampled_from(["", "/", "//", "/states", ".json", "/%2e%2e"]))
        names = st.sampled_from(
            ["X-OpenStack-Ironic-API-Version", "OpenStack-API-Version", "Authorization", "Accept",
             "Content-Type", "X-Auth-Token", "X-Subject-Token", "Content-Length", "Expect"]
        )  # fmt: skip
        headers = data.draw(st.lists(st.tuples(names, odd.LATIN | odd.VERSIONS), max_size=3))
        token = data.draw(st.sampled_from([None, "", "bogus"]) | odd.LATIN)
        check(
            app,
            data.draw(odd.METHODS),
            path,
            body=data.draw(odd.BODIES),
            version=data.draw(st.none() | odd.VERSIONS),
            headers=headers,
            token=token,
        )


@repeatable
@given(data=st.data())
def test_nothing_sent_to_the_other_services_is_a_server_error(
    app: Standing, data: st.DataObject
) -> None:
    path, method = data.draw(st.sampled_from(IDENTITY + OTHERS))
    known = st.sampled_from(["all", "rack:r1", f"node:{odd.UUID}", "default", odd.UUID])
    target = in_full(fill(data, path, known), data.draw(odd.QUERIES))
    script = st.fixed_dictionaries(
        {}, optional={"latency_s": odd.JSON, "fail": odd.JSON, "ramdisk": odd.JSON}
    )
    body = data.draw(odd.BODIES | script.map(odd.as_bytes))
    check(app, method, target, body=body, version=None)


def test_the_addresses_asked_are_all_there_are(app: Standing) -> None:
    services = app.app.program.app._services
    asked = {(path, method) for path, method in OTHERS}
    for prefix in ("", "simulator"):
        for route in services[prefix].routes.routes:
            path = f"/{prefix}{route.path}" if prefix else route.path
            assert (path, route.method) in asked
    assert {"", "simulator", "identity", "baremetal"} <= set(services)
    assert isinstance(services[""], HealthService)


@pytest.mark.parametrize("path", ["", "/", "*", "//", "/%", "/baremetal", "/baremetal//v1//nodes"])
def test_odd_roots_are_no_server_error(app: Standing, path: str) -> None:
    expect.sane(app.ask("GET", path), "GET")
