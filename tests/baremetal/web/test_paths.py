"""Addresses and methods: what is there, what is not, and how odd spellings are read."""

import pytest

from siderite.baremetal.web.routes import ROUTES
from tests.baremetal.web.expect import refused
from tests.baremetal.web.expect import sane
from tests.support.app import Standing


@pytest.fixture(scope="module")
def app(lite: Standing) -> Standing:
    """The database makes no difference here."""
    return lite


PATHS = sorted({route.path for route in ROUTES})
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW")


@pytest.mark.parametrize("path", PATHS)
def test_a_method_that_an_address_does_not_take_is_refused_with_those_it_takes(
    lite: Standing, path: str
) -> None:
    takes = {route.method for route in ROUTES if route.path == path}
    if "GET" in takes:
        takes |= {"HEAD"}
    target = "/baremetal" + path.replace("{node}", lite.make_node())
    for method in METHODS:
        if method in takes:
            continue
        answer = lite.ask(method, target, version=900)
        if method == "HEAD":
            assert (answer.status, answer.body) == (405, b"")
        else:
            refused(answer, 405, method, *takes)
        assert answer.headers["allow"] == ", ".join(sorted(takes))


@pytest.mark.parametrize(
    "path",
    ["/v1/bogus", "/v1/nodes/{}/bogus", "/v1/nodes/{}/states/bogus", "/v1/nodes/{}/states/power/x",
     "/v2", "/v2/nodes", "/v1/nodes/detail/states", "/baremetal/v1/nodes/{}/validate/x",
     "/bogus", "/baremetal/bogus", "/identity/bogus", "/simulator", "/simulator/v1/bogus",
     "/v1/" + "a/" * 5000, "/v1/nodes/" + "a" * 60_000, "/v1/nodes/a%00b", "/v1/nodes/%00",
     "/v1/nodes/{}%00", "/identity/v3/users/%00", "/identity/v3/projects/a%00b", "/%00"],
    ids=lambda path: path[:30],
)  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "HEAD", "PROPFIND"])
def test_an_address_that_is_not_there_is_not_found(app: Standing, path: str, method: str) -> None:
    answer = app.ask(method, path.format(app.make_node()))
    sane(answer, method)
    assert answer.status == 404 or (method == "PROPFIND" and answer.status == 405), answer
    assert len(answer.body) < 1000


@pytest.mark.parametrize(
    "path", ["/v1/nodes", "/v1/nodes/{}", "/v1/nodes/{}/states", "/v1", "/healthz"]
)
def test_head_is_get_without_the_body(lite: Standing, path: str) -> None:
    path = path.format(lite.make_node())
    got, head = lite.ask("GET", path), lite.ask("HEAD", path)
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == str(len(got.body))
    assert head.headers["content-type"] == got.headers["content-type"]


@pytest.mark.parametrize(
    "path", ["/v1/nodes/{}", "/v1/nodes/{}/", "/v1//nodes/{}//", "/baremetal/nodes/{}",
             "/baremetal/nodes/{}/", "/v1/%6eodes/{}", "/%62aremetal/v1/nodes/{}"]
)  # fmt: skip
def test_slashes_prefixes_and_escapes_do_not_matter(lite: Standing, path: str) -> None:
    uuid = lite.make_node()
    assert lite.ask("GET", path.format(uuid)).json["uuid"] == uuid
    assert lite.ask("GET", path.format(uuid.upper())).json["uuid"] == uuid


def test_a_node_is_found_by_its_name(app: Standing) -> None:
    uuid = app.make_node(name="a.b_c~d-1")
    for spelt in ("a.b_c~d-1", "a%2Eb_c%7Ed-1", "%61.b_c~d-1"):
        assert app.ask("GET", f"/v1/nodes/{spelt}").json["uuid"] == uuid
        answer = app.ask("PUT", f"/v1/nodes/{spelt}/maintenance")
        assert answer.status == 202
    refused(app.ask("GET", "/v1/nodes/A.b_c~d-1"), 404)
    refused(app.ask("GET", "/v1/nodes/a%252Eb_c~d-1"), 404)
    refused(app.ask("GET", "/v1/nodes/a%25"), 404)


def test_the_suffix_json_is_not_read_before_1_91(app: Standing) -> None:
    uuid = app.make_node(name="plain")
    app.make_node(name="with.json")
    for version in (1, 50, 90):
        assert app.ask("GET", "/v1/nodes/plain.json", version=version).json["uuid"] == uuid
        assert app.ask("GET", f"/v1/nodes/{uuid}.json", version=version).json["uuid"] == uuid
    refused(app.ask("GET", "/v1/nodes/plain.json", version=91), 404)
    refused(app.ask("GET", f"/v1/nodes/{uuid}.json", version=91), 404)
    assert app.ask("GET", "/v1/nodes/with.json", version=91).json["name"] == "with.json"


def test_paths_are_decoded_once(lite: Standing) -> None:
    scope = "/simulator/v1/scripts/rack:100%25%3A1"
    assert lite.ask("PUT", scope, {"silent": True}).json["scope"] == "rack:100%:1"
    assert "rack:100%:1" in lite.ask("GET", "/simulator/v1/scripts").json["scripts"]
    assert lite.ask("DELETE", scope).status == 204
    assert lite.ask("GET", "/simulator/v1/scripts").json["scripts"] == {}


@pytest.mark.parametrize("ident", ["%ff", "%ed%a0%80", "%c3%28", "%", "%zz", "%0d%0aX-Evil:%201"])
def test_what_is_no_text_names_no_node(app: Standing, ident: str) -> None:
    for method, path in (("GET", ""), ("DELETE", ""), ("PUT", "/maintenance")):
        answer = app.ask(method, f"/v1/nodes/{ident}{path}")
        refused(answer, 404)
        sane(answer, method)


def test_links_lead_back(lite: Standing) -> None:
    shown = lite.show(lite.make_node())
    for link in (*shown["links"], *shown["states"]):
        path = link["href"].removeprefix("http://cloud.test")
        assert lite.ask("GET", path).status == 200


@pytest.mark.parametrize("path", ["/healthz", "/metrics", "/"])
def test_health_and_metrics_need_no_token(lite: Standing, path: str) -> None:
    assert lite.ask("GET", path, token="", version=None).status == 200


@pytest.mark.parametrize(
    "script",
    [[], 1, None, {"bogus": 1}, {"latency_s": 5}, {"latency_s": {"*": -1}}, {"silent": "yes"},
     {"latency_s": {"*": 10**30}}, {"latency_s": {"*": [2, 1]}}, {"latency_s": {"*": [1]}},
     {"fail": {"*": 1}}],
)  # fmt: skip
def test_a_script_has_its_form(lite: Standing, script: object) -> None:
    refused(lite.ask("PUT", "/simulator/v1/scripts/all", script), 400)
    assert lite.ask("GET", "/simulator/v1/scripts").json["scripts"] == {}


@pytest.mark.parametrize("scope", ["bogus", "rack:", "node:", "rack", "ALL"])
def test_a_script_has_a_scope(lite: Standing, scope: str) -> None:
    refused(lite.ask("PUT", f"/simulator/v1/scripts/{scope}", {}), 400, "rack:NAME")


def test_an_address_newer_than_the_version_is_not_there_for_any_method(lite: Standing) -> None:
    """A 405 would say that it is there."""
    path = f"/v1/nodes/{lite.make_node()}/vmedia"
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        refused(lite.ask(method, path, {}, version=88), 404, "1.89" if method != "GET" else "1.93")
    for method in ("PUT", "PATCH"):
        refused(lite.ask(method, path, {}, version=89), 405)
    refused(lite.ask("PUT", "/v1/allocations", {}, version=51), 405)


def test_a_version_that_is_not_spoken_goes_before_what_is_not_there(lite: Standing) -> None:
    for method, path in (("GET", "/v1/nodes/states/console/n1"), ("PUT", "/v1/nodes")):
        for asked in ("1.0", "1.116", "newest"):
            answer = lite.ask(method, path, version=asked)
            refused(answer, 406)
            assert answer.headers["x-openstack-ironic-api-maximum-version"] == "1.900"
        assert lite.ask(method, path, version=1).status in (404, 405)
