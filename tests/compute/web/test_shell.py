"""Version documents, negotiation and the form of errors."""

import pytest

from tests.compute.cloud import Cloud


def test_the_root_lists_the_versions_and_each_is_where_its_link_says(lite: Cloud) -> None:
    answer = lite.ask("GET", "/compute/", version=None, token="")
    assert answer.status == 200
    assert [
        (one["id"], one["status"], one["min_version"], one["version"])
        for one in answer.json["versions"]
    ] == [("v2.0", "SUPPORTED", "", ""), ("v2.1", "CURRENT", "2.1", "2.901")]
    for version in answer.json["versions"]:
        (link,) = version["links"]
        path = "/compute/" + link["href"].partition("/compute/")[2]
        told = lite.ask("GET", path, version=None, token="").json["version"]
        assert {key: told[key] for key in version} == version
        again = lite.ask("GET", f"/versions/{version['id']}", version=None, token="")
        assert again.json == {"version": told}
    assert lite.ask("GET", "/versions/v3", version=None, token="").status == 404


def test_what_is_below_v2_is_as_in_2_1_whatever_headers_ask_for(lite: Cloud) -> None:
    _, token, project = lite.app.person("member")
    uuid = lite.boot(token=token)
    for middle in ("", f"/{project}"):
        where = f"/compute/v2{middle}/servers/{uuid}"
        shown = lite.ask("GET", where, version=104, token=token)
        assert shown.headers["openstack-api-version"] == "compute 2.1"
        server = shown.json["server"]
        assert "tags" not in server
        own, bookmark = (link["href"].partition("/compute/")[2] for link in server["links"])
        assert f"/compute/{own}" == where
        assert bookmark == f"{middle}/servers/{uuid}".lstrip("/")
        page = lite.ask("GET", f"/compute/v2{middle}/servers/detail", version=104, token=token)
        assert page.json["servers"] == [server]
        paged = lite.ask("GET", f"/compute/v2{middle}/servers?limit=1", token=token).json
        assert f"/compute/v2{middle}/servers?limit=1" in paged["servers_links"][0]["href"]
    assert lite.ask("GET", f"/compute/v2/servers/{uuid}/tags", token=token).status == 404
    assert lite.ask("GET", "/compute/v2/servers", version="nonsense", token=token).status == 200
    assert lite.ask("GET", "/compute/v2/servers", token="").status == 401


@pytest.mark.parametrize("path", ["/compute/v2.1", "/compute/v2.1/"])
def test_the_version_document_needs_no_token_and_no_slash(lite: Cloud, path: str) -> None:
    answer = lite.ask("GET", path, version=None, token="")
    assert answer.status == 200
    assert answer.json["version"]["status"] == "CURRENT"


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        *((text, 200) for text in ("2.1", "2.104", "2.900", "2.901", "latest")),
        *((text, 406) for text in ("2.105", "2.899", "2.902", "3.1", "1.1")),
        *((text, 400) for text in ("two", "2")),
    ],
)
def test_a_version_is_spoken_or_refused(lite: Cloud, asked: str, status: int) -> None:
    answer = lite.ask("GET", "/extensions", version=asked)
    assert answer.status == status, answer
    if status == 200:
        assert answer.headers["openstack-api-version"] == (
            f"compute {'2.901' if asked == 'latest' else asked}"
        )
    else:
        assert next(iter(answer.json)) == ("computeFault" if status == 406 else "badRequest")


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("OS-EXT-IMG-SIZE", "ImageSize"), ("os-server-start-stop", "ServerStartStop"),
        ("os-extended-status", "ExtendedStatus"), ("os-personality", "Personality"),
        ("os-access-ips", "AccessIPs"), ("os-extended-services-delete", "ExtendedServicesDelete"),
    ],
)  # fmt: skip
def test_what_is_there_is_among_the_extensions(lite: Cloud, alias: str, name: str) -> None:
    """Clients such as jclouds do not ask for what they do not find there."""
    every = lite.ask("GET", "/extensions").json["extensions"]
    assert [one["name"] for one in every if one["alias"] == alias] == [name]
    assert lite.ask("GET", f"/extensions/{alias}").json["extension"]["name"] == name


def test_nothing_is_told_to_nobody(lite: Cloud) -> None:
    answer = lite.ask("GET", "/extensions", token="")
    assert answer.status == 401
    assert answer.json["error"]["code"] == 401
    assert answer.headers["www-authenticate"].startswith("Keystone uri=")


def test_a_project_in_the_url_must_be_the_callers(lite: Cloud) -> None:
    _, token, project = lite.app.person("member")
    assert lite.ask("GET", f"/{project}/extensions", token=token).status == 200
    assert lite.ask("GET", f"/{'0' * 32}/extensions", token=token).status == 400
    assert lite.ask("GET", "/nonsense/extensions", token=token).status == 404


@pytest.mark.parametrize(("method", "path"), [("GET", "/nothing"), ("PATCH", "/extensions")])
def test_what_is_not_there_is_not_found(lite: Cloud, method: str, path: str) -> None:
    answer = lite.ask(method, path)
    assert answer.status == 404
    assert answer.json["itemNotFound"]["code"] == 404


def test_old_clients_find_what_once_were_extensions(lite: Cloud) -> None:
    found = lite.ask("GET", "/extensions").json["extensions"]
    assert {"os-keypairs", "OS-SCH-HNT"} <= {one["alias"] for one in found}
    assert "Hosts" in {one["name"] for one in found}
    one = lite.ask("GET", "/extensions/os-keypairs")
    assert (one.status, one.json["extension"]["name"]) == (200, "Keypairs")
    assert lite.ask("GET", "/extensions/os-nothing").status == 404
