"""Images by way of the compute API, for clients of before 2.36."""

from typing import Any

import pytest

from tests.compute.cloud import Cloud

BRIEF = {"id", "name", "links"}
FULL = BRIEF | {
    "status", "progress", "minDisk", "minRam", "created", "updated", "metadata",
    "OS-EXT-IMG-SIZE:size",
}  # fmt: skip


def _get(cloud: Cloud, path: str, version: int = 35, **how: Any) -> Any:
    answer = cloud.ask("GET", path, version=version, **how)
    assert answer.status == 200, answer
    return answer.json


def test_an_image_is_shown_as_the_compute_api_once_did(lite: Cloud) -> None:
    ident = lite.make_image(name="old", min_disk=1, min_ram=64, hw_disk_bus="virtio")
    shown = _get(lite, f"/images/{ident}", version=1)["image"]
    assert set(shown) == FULL
    assert (shown["status"], shown["progress"], shown["metadata"]) == (
        "ACTIVE", 100, {"hw_disk_bus": "virtio"},
    )  # fmt: skip
    assert (shown["minDisk"], shown["minRam"], shown["OS-EXT-IMG-SIZE:size"]) == (1, 64, 512)
    places = [link["href"].partition("//")[2].partition("/")[2] for link in shown["links"]]
    assert places == [
        f"compute/v2.1/images/{ident}", f"compute/images/{ident}", f"image/v2/images/{ident}",
    ]  # fmt: skip
    found = _get(lite, "/images/detail?name=old")["images"]
    assert found == [shown]
    assert [set(one) for one in _get(lite, "/images?name=old")["images"]] == [BRIEF]


def test_a_snapshot_is_found_by_its_server_and_says_when_it_is_there(lite: Cloud) -> None:
    uuid = lite.boot()
    made = lite.act(uuid, "createImage", {"name": "snap"}, version=1)
    ident = made.headers["location"].rpartition("/")[2]
    lite.until(uuid, "ACTIVE")
    shown = _get(lite, f"/images/{ident}")["image"]
    assert (shown["status"], shown["server"]["id"]) == ("ACTIVE", uuid)
    assert shown["server"]["links"][0]["href"].endswith(f"/compute/v2.1/servers/{uuid}")
    for query, is_there in (
        (f"server={uuid}", True), (f"server=http://x/servers/{uuid}", True), ("server=x", False),
        ("type=snapshot&name=snap", True), ("type=backup", False), ("status=active", True),
        ("status=SAVING", False),
    ):  # fmt: skip
        found = [one["id"] for one in _get(lite, f"/images?{query}")["images"]]
        assert (ident in found) == is_there, query
    assert lite.ask("GET", "/images?status=nonsense", version=35).status == 400


def test_images_come_in_pages(lite: Cloud) -> None:
    made = [lite.make_image(name="paged") for _ in range(3)]
    found, where = [], "/images?name=paged&limit=2"
    while where:
        page = _get(lite, where)
        found += [one["id"] for one in page["images"]]
        (link,) = page.get("images_links", [{"href": ""}])
        where = link["href"].partition("/compute/v2.1")[2]
    assert sorted(found) == sorted(made)
    assert _get(lite, "/images?limit=0") == {"images": []}
    assert lite.ask("GET", "/images?marker=none", version=35).status == 400


def test_images_are_those_that_the_caller_may_use(lite: Cloud) -> None:
    _, owner, project = lite.app.person("member")
    _, other, _ = lite.app.person("member")
    _, reader, _ = lite.app.person("reader", project)
    body = {"name": "mine", "visibility": "private"}
    made = lite.app.ask("POST", "/image/v2/images", body, version=None, token=owner)
    ident = made.json["id"]
    assert _get(lite, f"/images/{ident}", token=owner)["image"]["status"] == "SAVING"
    assert ident in [one["id"] for one in _get(lite, "/images", token=reader)["images"]]
    assert ident not in [one["id"] for one in _get(lite, "/images", token=other)["images"]]
    where = f"/images/{ident}"
    for method, token, status in (
        ("GET", other, 404), ("DELETE", other, 404), ("DELETE", reader, 403), ("GET", "", 401),
        ("DELETE", owner, 204), ("DELETE", owner, 404),
    ):  # fmt: skip
        assert lite.ask(method, where, version=1, token=token).status == status, (method, status)
    public = lite.make_image()
    assert lite.ask("DELETE", f"/images/{public}", version=1, token=owner).status == 403


@pytest.mark.parametrize(
    ("path", "until"),
    [
        ("/images", 35), ("/images/detail", 35), ("/images/{}", 35), ("/images/{}/metadata", 38),
        ("/images/{}/metadata/hw_disk_bus", 38),
    ],
)  # fmt: skip
def test_they_are_gone_from_a_version_on(lite: Cloud, path: str, until: int) -> None:
    where = path.format(lite.make_image(hw_disk_bus="virtio"))
    for version, status in ((1, 200), (until, 200), (until + 1, 404), (104, 404)):
        assert lite.ask("GET", where, version=version).status == status, version


def test_metadata_of_an_image_are_its_properties(lite: Cloud) -> None:
    ident = lite.make_image(hw_disk_bus="virtio")
    assert _get(lite, f"/images/{ident}/metadata") == {"metadata": {"hw_disk_bus": "virtio"}}
    assert _get(lite, f"/images/{ident}/metadata/hw_disk_bus") == {
        "meta": {"hw_disk_bus": "virtio"}
    }
    assert lite.ask("GET", f"/images/{ident}/metadata/none", version=35).status == 404


def test_metadata_of_an_image_are_written(lite: Cloud) -> None:
    ident = lite.make_image(a="1", b="2")
    where = f"/images/{ident}/metadata"

    def ask(method: str, path: str, *body: Any, status: int = 200, version: int = 38) -> Any:
        answer = lite.ask(method, where + path, *body, version=version)
        assert answer.status == status, (method, path, answer)
        return answer.json if answer.body else None

    added = ask("POST", "", {"metadata": {"b": "3", "c": "é"}})
    assert added == {"metadata": {"a": "1", "b": "3", "c": "é"}}
    assert ask("PUT", "/c", {"meta": {"c": "4"}}) == {"meta": {"c": "4"}}
    ask("DELETE", "/b", status=204)
    ask("DELETE", "/b", status=404)
    assert ask("GET", "") == {"metadata": {"a": "1", "c": "4"}}
    assert ask("PUT", "", {"metadata": {"d": "5"}}) == {"metadata": {"d": "5"}}
    shown = lite.app.ask("GET", f"/image/v2/images/{ident}", version=None).json
    assert (shown["d"], "a" in shown, shown["status"]) == ("5", False, "active")
    for odd in ({}, {"metadata": {"a": 1}}, {"metadata": {"status": "x"}}, {"meta": {}}):
        ask("POST", "", odd, status=400)
    ask("PUT", "/c", {"meta": {"d": "4"}}, status=400)
    ask("POST", "", {"metadata": {str(n): "x" for n in range(129)}}, status=403)
    for method, path, body in (
        ("POST", "", {"metadata": {}}), ("PUT", "", {"metadata": {}}), ("PUT", "/d", {"meta": {}}),
    ):  # fmt: skip
        ask(method, path, body, status=404, version=39)
    ask("DELETE", "/d", status=404, version=39)
    assert ask("GET", "") == {"metadata": {"d": "5"}}
    _, stranger, _ = lite.app.person("member")
    body = {"metadata": {"z": "1"}}
    assert lite.ask("POST", where, body, version=1, token=stranger).status == 403, "it is public"


def test_metadata_that_image_services_keep_for_themselves_are_refused(lite: Cloud) -> None:
    ident, uuid = lite.make_image(a="1"), lite.boot()
    where, name = f"/images/{ident}/metadata", "os_glance_importing_to_stores"
    for method, path, body in (
        ("POST", "", {"metadata": {"b": "2", name: "x"}}), ("PUT", "", {"metadata": {name: "x"}}),
        ("PUT", f"/{name}", {"meta": {name: "x"}}),
    ):  # fmt: skip
        refused = lite.ask(method, where + path, body, version=38)
        assert refused.status == 403 and "os_glance_" in str(refused.json), refused
    assert _get(lite, where) == {"metadata": {"a": "1"}}
    before = _get(lite, f"/images?server={uuid}")
    backup = {"name": "b", "backup_type": "daily", "rotation": 1}
    for action, asked in (("createImage", {"name": "s"}), ("createBackup", backup)):
        refused = lite.act(uuid, action, {**asked, "metadata": {name: "x"}})
        assert refused.status == 403 and "os_glance_" in str(refused.json), refused
    assert _get(lite, f"/images?server={uuid}") == before == {"images": []}
