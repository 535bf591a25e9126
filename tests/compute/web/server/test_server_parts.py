"""Metadata and tags of servers: when they may be changed, and by whom."""

from pathlib import Path

from tests.compute.cloud import Cloud
from tests.compute.cloud import cloud


def test_tags_are_changed_in_the_states_in_which_metadata_are(lite: Cloud) -> None:
    uuid = lite.boot(tags=["there"])
    requests = (
        ("PUT", "/tags/new", "update tag"), ("PUT", "/tags/there", "update tag"),
        ("PUT", "/tags", "update tags"), ("DELETE", "/tags/there", "delete tag"),
        ("DELETE", "/tags", "delete tags"),
    )  # fmt: skip
    lite.act(uuid, "os-resetState", {"state": "error"})
    for method, path, words in requests:
        body = {"body": {"tags": ["x"]}} if path == "/tags" and method == "PUT" else {}
        answer = lite.ask(method, f"/servers/{uuid}{path}", **body)
        assert answer.status == 409, (method, path)
        sentence = f"Cannot '{words}' instance {uuid} while it is in vm_state error"
        message = answer.json["conflictingRequest"]["message"]
        assert message.startswith(sentence)
        assert message.endswith("It can in active, paused, pending, stopped, suspended."), message
    assert lite.ask("GET", f"/servers/{uuid}/tags").json == {"tags": ["there"]}
    lite.act(uuid, "os-stop")
    lite.until(uuid, "SHUTOFF")
    assert lite.ask("PUT", f"/servers/{uuid}/tags/new").status == 201


def test_a_server_that_waits_for_a_host_has_its_tags_changed(tmp_path: Path) -> None:
    with cloud(tmp_path, hosts=0, use_pending_state=True) as full:
        uuid = full.create()
        full.until(uuid, "PENDING")
        assert full.ask("PUT", f"/servers/{uuid}/tags/new").status == 201


def test_a_lock_holds_metadata_but_not_tags(lite: Cloud) -> None:
    _, owner, _ = lite.app.person("member")
    uuid = lite.boot(token=owner)
    assert lite.act(uuid, "lock", token=owner).status == 202
    assert lite.ask("PUT", f"/servers/{uuid}/tags/new", token=owner).status == 201
    body = {"metadata": {"a": "b"}}
    assert lite.ask("POST", f"/servers/{uuid}/metadata", body, token=owner).status == 409


def test_the_address_of_a_new_tag_is_one(lite: Cloud) -> None:
    uuid = lite.boot()
    answer = lite.ask("PUT", f"/servers/{uuid}/tags/sch%C3%B6n%20%23")
    assert answer.headers["location"].endswith(f"/servers/{uuid}/tags/sch%C3%B6n%20%23")
    assert lite.ask("GET", f"/servers/{uuid}/tags").json == {"tags": ["schön #"]}


def test_what_cannot_be_taken_from_metadata_is_called_so(lite: Cloud) -> None:
    uuid = lite.boot(metadata={"a": "b"})
    lite.act(uuid, "os-resetState", {"state": "error"})
    answer = lite.ask("DELETE", f"/servers/{uuid}/metadata/a")
    assert "Cannot 'delete metadata'" in answer.json["conflictingRequest"]["message"]
