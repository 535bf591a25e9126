"""Lists of nodes: pages, order, filters and fields."""

import itertools
from typing import Any
from urllib.parse import parse_qs
from urllib.parse import quote
from urllib.parse import urlsplit

import pytest

from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.node_machine import NODE
from siderite.baremetal.domain.wire import NODE_FIELDS
from siderite.core.ids import new_uuid
from tests.baremetal.web.expect import refused
from tests.support.app import Standing

OBJECTS = [
    "driver_info", "driver_internal_info", "extra", "instance_info", "properties", "clean_step",
    "deploy_step", "service_step", "raid_config", "target_raid_config", "network_data", "traits",
    "links", "ports", "states", "portgroups", "volume",
]  # fmt: skip
OWN = ("wait_reason", "deadline", "power_policy", "power_state_reason")
SCALARS = [name for name, _ in NODE_FIELDS if name not in (*OBJECTS, *OWN)]
COUNT = 25
UNKNOWN = "1be26c0b-03f2-4d2e-ae87-c02d7f33c123"


def some_node(n: int) -> dict[str, Any]:
    """The fields of the nth node of a fleet: few values, so that they are often equal."""
    flag = n % 3 == 0
    return {
        "name": f"node-{n % COUNT:02}" if n % 4 else None,
        "resource_class": ["", "small", "Large", "große", None][n % 5],
        "owner": ["a", "b", None][n % 3],
        "shard": [None, "s1", "s2"][n % 3],
        "description": [None, "50% of_it", "a Ä b", "back\\slash", "plain"][n % 5],
        "conductor_group": ["", "g"][n % 2],
        "instance_uuid": new_uuid() if flag else None,
        "power_state": [None, "power on", "power off"][n % 3],
        "maintenance": flag,
        "retired": n % 2 == 0,
        "protected": flag,
        "automated_clean": [None, True, False][n % 3],
        "secure_boot": [True, None][n % 2],
        "boot_mode": [None, "uefi", "bios"][n % 3],
        "disable_power_off": n % 2 == 1,
        "last_error": [None, "broken"][n % 2],
        "lessee": [None, "b", "c"][n % 3],
    }


@pytest.fixture(scope="module")
def fleet(app: Standing) -> list[Node]:
    """25 nodes, and no others: tests leave them as they are."""
    states = itertools.cycle(["enroll", "available", "active", "inspect wait"])
    return [app.node(app.plant(next(states), **some_node(n))) for n in range(COUNT)]


def pages(app: Standing, path: str, **how: Any) -> list[list[dict[str, Any]]]:
    """Every page, by following `next`."""
    found = []
    while True:
        answer = app.ask("GET", path, **how)
        assert answer.status == 200, answer
        found.append(answer.json["nodes"])
        if "next" not in answer.json:
            return found
        assert len(found) < 30
        assert answer.json["next"].startswith("http://cloud.test/baremetal/v1/nodes")
        path = answer.json["next"].removeprefix("http://cloud.test")


def uuids(app: Standing, path: str, **how: Any) -> list[str]:
    """The nodes of all pages."""
    return [str(node["uuid"]) for page in pages(app, path, **how) for node in page]


@pytest.mark.parametrize("key", [*SCALARS, "id"])
def test_pages_hold_each_node_once_in_any_order(app: Standing, fleet: list[Node], key: str) -> None:
    whole = uuids(app, f"/v1/nodes?sort_key={key}")
    assert sorted(whole) == sorted(node.uuid for node in fleet)
    assert uuids(app, f"/v1/nodes?limit=7&sort_key={key}") == whole
    assert uuids(app, f"/v1/nodes?limit=7&sort_key={key}&sort_dir=desc") == whole[::-1]


FLAGS = ["maintenance", "retired"]
TEXTS = ["uuid", "driver", "power_state", "provision_state", "boot_mode", "owner", "created_at"]


@pytest.mark.parametrize("key", [*FLAGS, *TEXTS])
def test_the_order_is_that_of_the_values(app: Standing, fleet: list[Node], key: str) -> None:
    expected = sorted(fleet, key=lambda node: getattr(node, key) or (False if key in FLAGS else ""))
    assert uuids(app, f"/v1/nodes?sort_key={key}") == [node.uuid for node in expected]


def test_flags_in_the_document_sort_false_before_true(lite: Standing) -> None:
    made = [lite.plant("active", protected=flag) for flag in (True, False)]
    assert uuids(lite, "/v1/nodes?sort_key=protected") == made[::-1]


def test_without_a_sort_key_nodes_come_as_they_were_made(app: Standing, fleet: list[Node]) -> None:
    assert uuids(app, "/v1/nodes?limit=4") == [node.uuid for node in fleet]
    assert uuids(app, "/v1/nodes/detail?limit=4") == [node.uuid for node in fleet]


def test_a_last_page_that_is_full_is_followed_by_an_empty_one(
    app: Standing, fleet: list[Node]
) -> None:
    sizes = [len(page) for page in pages(app, "/v1/nodes?limit=5")]
    assert sizes == [5, 5, 5, 5, 5, 0]


FILTERS: dict[str, Any] = {
    "provision_state=enroll": lambda n: n.provision_state == "enroll",
    "provision_state=inspect+wait": lambda n: n.provision_state == "inspect wait",
    "driver=fake-hardware": lambda n: True,
    "driver=bogus": lambda n: False,
    "resource_class=small": lambda n: n.resource_class == "small",
    "resource_class=": lambda n: n.resource_class == "",
    f"resource_class={quote('große')}": lambda n: n.resource_class == "große",
    "resource_class=s%25": lambda n: False,
    "owner=a": lambda n: n.owner == "a",
    "lessee=b": lambda n: n.lessee == "b",
    "project=b": lambda n: "b" in (n.owner, n.lessee),
    "shard=s1": lambda n: n.shard == "s1",
    "shard=s1,s2": lambda n: n.shard is not None,
    "shard=s1%2Cs2": lambda n: n.shard is not None,
    "sharded=false": lambda n: n.shard is None,
    "conductor_group=g": lambda n: n.conductor_group == "g",
    "conductor_group=G": lambda n: n.conductor_group == "g",
    "conductor_group=": lambda n: n.conductor_group == "",
    "associated=true": lambda n: n.instance_uuid is not None,
    "associated=False": lambda n: n.instance_uuid is None,
    "maintenance=1": lambda n: n.maintenance,
    "maintenance=no": lambda n: not n.maintenance,
    "retired=true": lambda n: n.retired,
    "retired=false&maintenance=true": lambda n: not n.retired and n.maintenance,
    "description_contains=%25": lambda n: "%" in (n.description or ""),
    "description_contains=_": lambda n: "_" in (n.description or ""),
    "description_contains=%5C": lambda n: "\\" in (n.description or ""),
    "description_contains=PLAIN": lambda n: n.description == "plain",
    f"description_contains={quote('Ä')}": lambda n: "Ä" in (n.description or ""),
    "description_contains=' OR 1=1 --": lambda n: False,
    f"instance_uuid={UNKNOWN}": lambda n: False,
    f"parent_node={UNKNOWN}": lambda n: False,
    "fault=power+failure": lambda n: False,
    "provision_state=enroll&driver=fake-hardware&owner=a": (
        lambda n: n.provision_state == "enroll" and n.owner == "a"
    ),
    "associated=false&conductor_group=g": (
        lambda n: n.instance_uuid is None and n.conductor_group == "g"
    ),
}


@pytest.mark.parametrize("query", FILTERS)
def test_filters_hold_on_every_page(app: Standing, fleet: list[Node], query: str) -> None:
    query = query.replace(" ", "%20")
    expected = [node.uuid for node in fleet if FILTERS[query.replace("%20", " ")](node)]
    assert uuids(app, f"/v1/nodes?{query}") == expected
    assert uuids(app, f"/v1/nodes?limit=2&{query}") == expected
    assert uuids(app, f"/v1/nodes/detail?{query}&limit=3") == expected
    otherwise = uuids(app, f"/v1/nodes?{query}&sort_key=updated_at&sort_dir=desc")
    assert sorted(otherwise) == sorted(expected)
    assert uuids(app, f"/v1/nodes?{query}&sort_key=updated_at&sort_dir=desc&limit=3") == otherwise


def test_the_next_page_is_asked_for_as_this_one_was(app: Standing, fleet: list[Node]) -> None:
    query = (
        "owner=a&sort_key=name&sort_dir=desc&limit=2&fields=uuid,owner&provision_state=enroll"
        f"&description_contains={quote('&=%?#+ Ä', safe='')}&shard=s1,s2&maintenance=true"
    )
    empty = app.ask("GET", f"/v1/nodes?{query}")
    assert empty.json == {"nodes": []}
    kept = "owner=a&sort_key=name&sort_dir=desc&limit=2&fields=uuid,owner&maintenance=true"
    answer = app.ask("GET", f"/v1/nodes?{kept}").json
    following = parse_qs(urlsplit(answer["next"]).query)
    assert following.pop("marker") == [answer["nodes"][-1]["uuid"]]
    assert following == parse_qs(kept)
    assert all(set(n) == {"uuid", "owner", "links"} for n in answer["nodes"])


def test_the_limit_has_a_cap(app: Standing, fleet: list[Node]) -> None:
    for limit in (25, 26, 1000, 1001, 10**8, 10**30, "9" * 6000):
        assert len(uuids(app, f"/v1/nodes?limit={limit}")) == COUNT
    assert len(app.ask("GET", "/v1/nodes?limit=0007").json["nodes"]) == 7


@pytest.mark.parametrize(
    "limit",
    ["0", "000", "-1", "+1", "1.5", "x", "", " ", "1_0", "%D9%A3", "%C2%B2", "1e3", "0x10", "7%20"],
)
def test_a_limit_is_a_positive_whole_number(app: Standing, limit: str) -> None:
    refused(app.ask("GET", f"/v1/nodes?limit={limit}".replace(" ", "%20")), 400, "limit")


@pytest.mark.parametrize("marker", ["", "x", "node-01", "%27", UNKNOWN[:-1], UNKNOWN + "0"])
def test_a_marker_is_a_uuid(app: Standing, fleet: list[Node], marker: str) -> None:
    refused(app.ask("GET", f"/v1/nodes?marker={marker}"), 400, "marker")


def test_a_marker_must_be_there(app: Standing, fleet: list[Node]) -> None:
    refused(app.ask("GET", f"/v1/nodes?marker={UNKNOWN}"), 404, UNKNOWN)
    first = fleet[0].uuid.upper()
    assert uuids(app, f"/v1/nodes?marker={first}") == [node.uuid for node in fleet[1:]]


@pytest.mark.parametrize("key", [*OBJECTS, "bogus", "", "ID", "version", "doc", "id;", "name desc"])
def test_what_is_no_plain_field_is_no_sort_key(app: Standing, key: str) -> None:
    answer = app.ask("GET", f"/v1/nodes?sort_key={quote(key)}")
    refused(answer, 400, "sort_key", "uuid")


@pytest.mark.parametrize("way", ["", "up", "ASC", "asc;"])
def test_the_direction_is_asc_or_desc(app: Standing, way: str) -> None:
    refused(app.ask("GET", f"/v1/nodes?sort_dir={way}"), 400, "asc", "desc")


@pytest.mark.parametrize("path", ["/v1/nodes", "/v1/nodes/{}"])
@pytest.mark.parametrize(
    "wanted", ["bogus", "uuid,bogus", "", ",", "uuid,", "Uuid", " uuid", "version"]
)
def test_unknown_fields_are_refused(
    app: Standing, fleet: list[Node], path: str, wanted: str
) -> None:
    answer = app.ask("GET", path.format(fleet[0].uuid) + f"?fields={quote(wanted)}")
    if wanted == "uuid,":
        assert answer.status == 200, answer
    else:
        refused(answer, 400, "ield")


def test_a_field_named_twice_is_shown_once(app: Standing, fleet: list[Node]) -> None:
    shown = app.ask("GET", f"/v1/nodes/{fleet[0].uuid}?fields=uuid,uuid,links").json
    assert list(shown) == ["uuid", "links"]


def test_fields_may_be_named_one_by_one(app: Standing, fleet: list[Node]) -> None:
    for path in (f"/v1/nodes/{fleet[0].uuid}", "/v1/nodes"):
        found = app.ask("GET", f"{path}?fields=uuid&fields=name,driver").json
        one = found["nodes"][0] if "nodes" in found else found
        assert set(one) == {"uuid", "name", "driver", "links"}


def test_a_fault_that_there_is_not_is_refused(app: Standing) -> None:
    assert app.ask("GET", "/v1/nodes?fault=clean%20failure").status == 200
    refused(app.ask("GET", "/v1/nodes?fault=flat%20tyre"), 400, "power failure, clean failure")


def test_fields_and_detail_exclude_each_other(app: Standing) -> None:
    refused(app.ask("GET", "/v1/nodes?fields=uuid&detail=true"), 400, "detail")
    refused(app.ask("GET", "/v1/nodes/detail?fields=uuid"), 400, "detail")
    assert app.ask("GET", "/v1/nodes?fields=uuid&detail=false").status == 200


@pytest.mark.parametrize("name", ["maintenance", "associated", "retired", "sharded", "detail"])
@pytest.mark.parametrize("value", ["", "maybe", "2", "%00", "nul%00l"])
def test_a_flag_is_true_or_false(app: Standing, name: str, value: str) -> None:
    refused(app.ask("GET", f"/v1/nodes?{name}={value}"), 400)


@pytest.mark.parametrize("value", ["bogus", "", "ENROLL", "deleted"])
def test_a_state_that_is_none_is_refused_with_those_there_are(app: Standing, value: str) -> None:
    answer = app.ask("GET", f"/v1/nodes?provision_state={value}")
    refused(answer, 400, *NODE.states)


@pytest.mark.parametrize(
    "path",
    ["/v1/nodes?bogus=1", "/v1/nodes?Limit=1", "/v1/nodes/{}?limit=1", "/v1/nodes/{}?detail=true"],
)
def test_unknown_arguments_are_refused(app: Standing, fleet: list[Node], path: str) -> None:
    answer = app.ask("GET", path.format(fleet[0].uuid))
    refused(answer, 400, "Unexpected arguments:")


@pytest.mark.parametrize(
    "query",
    ["owner=%00", "owner=%ED%A0%80", "owner=%FF", "%00=1", "owner=a%00b", "fields=uuid%00",
     "&".join(["owner=a"] * 101), "shard=" + "," * 100_000, "description_contains=" + "a" * 60_000,
     "description_contains=" + "%25" * 60_000],
)  # fmt: skip
def test_a_query_that_no_database_could_take_is_refused(app: Standing, query: str) -> None:
    refused(app.ask("GET", f"/v1/nodes?{query}"), 400)


def test_a_list_can_be_narrowed_a_hundred_times(app: Standing, fleet: list[Node]) -> None:
    shards = "shard=" + ",".join(f"s{n}" for n in range(1000))
    assert len(uuids(app, f"/v1/nodes?{shards}&" + "&".join(["retired=true"] * 90))) > 0


def test_children_are_listed_only_when_asked_for(app: Standing, fleet: list[Node]) -> None:
    parent = fleet[0].uuid
    child = app.make_node(parent_node=parent.upper())
    assert child not in uuids(app, "/v1/nodes?limit=9")
    assert child in uuids(app, "/v1/nodes?include_children=true&limit=9")
    assert uuids(app, f"/v1/nodes?parent_node={parent}") == [child]
    assert app.ask("DELETE", f"/v1/nodes/{child}").status == 204


def test_next_is_absent_from_a_page_that_is_not_full(app: Standing, fleet: list[Node]) -> None:
    assert "next" not in app.ask("GET", "/v1/nodes?limit=26").json
    assert "next" in app.ask("GET", "/v1/nodes?limit=25").json
    detail = app.ask("GET", "/v1/nodes/detail?limit=25").json
    assert urlsplit(detail["next"]).path == "/baremetal/v1/nodes/detail"
