"""Runbooks: whose they are, and how nodes approve of them."""

from tests.baremetal.web.expect import refused
from tests.baremetal.web.kinds import KINDS
from tests.support.app import Standing


def test_runbooks_are_seen_by_their_project_and_public_ones_by_all(app: Standing) -> None:
    kind = KINDS["runbook"]
    _, token, project = app.person("member")
    mine = app.ask("POST", kind.path, kind.body(app), token=token).json
    assert (mine["owner"], mine["public"]) == (project, False)
    theirs, public = kind.make(app, owner="them"), kind.make(app, public=True)
    refused(app.ask("POST", kind.path, kind.body(app, public=True), token=token), 400, "public")
    refused(app.ask("POST", kind.path, kind.body(app, owner="x"), token=token), 400, "owner")
    refused(kind.post(app, public=True, owner="x"), 400, "owner")
    seen = [one["uuid"] for one in app.ask("GET", kind.path, token=token).json["runbooks"]]
    assert mine["uuid"] in seen and public["uuid"] in seen and theirs["uuid"] not in seen
    refused(app.ask("GET", f"{kind.path}/{theirs['uuid']}", token=token), 404)
    change = [{"op": "add", "path": "/extra/a", "value": 1}]
    assert app.ask("PATCH", f"{kind.path}/{mine['uuid']}", change, token=token).status == 200
    refused(app.ask("PATCH", f"{kind.path}/{public['uuid']}", change, token=token), 403)
    refused(app.ask("DELETE", f"{kind.path}/{public['uuid']}", token=token), 403)
    for field, value in (("public", True), ("owner", "x")):
        change = [{"op": "replace", "path": f"/{field}", "value": value}]
        answer = app.ask("PATCH", f"{kind.path}/{mine['uuid']}", change, token=token)
        refused(answer, 403, "administrators")
    made = kind.patch(app, mine["uuid"], ("replace", "/public", True)).json
    assert (made["public"], made["owner"]) == (True, None)
    refused(kind.patch(app, mine["uuid"], ("replace", "/owner", "x")), 400, "public")
    both = (("replace", "/public", False), ("replace", "/owner", "x"))
    assert kind.patch(app, mine["uuid"], *both).json["owner"] == "x"
    listed = app.ask("GET", f"{kind.path}?project=x").json["runbooks"]
    assert [one["uuid"] for one in listed] == [mine["uuid"]]


def test_a_runbook_that_an_administrator_makes_in_a_project_is_the_projects(app: Standing) -> None:
    kind = KINDS["runbook"]
    _, admin, project = app.person("admin")
    _, reader, _ = app.person("reader", project=project)
    made = app.ask("POST", kind.path, kind.body(app), token=admin).json
    assert (made["owner"], made["public"]) == (project, False)
    assert app.ask("GET", f"{kind.path}/{made['uuid']}", token=reader).status == 200
    given = app.ask("POST", kind.path, kind.body(app, owner="them"), token=admin).json
    assert given["owner"] == "them"
    public = app.ask("POST", kind.path, kind.body(app, public=True), token=admin).json
    assert (public["owner"], public["public"]) == (None, True)


def test_an_old_clients_runbook_is_approved_by_its_name(lite: Standing) -> None:
    kind = KINDS["runbook"]

    def traits(uuid: str) -> list[str]:
        found: list[str] = lite.ask("GET", f"{kind.path}/{uuid}").json["traits"]
        return found

    refused(kind.post(lite, version=111, name="tidy-up"), 400, "trait")
    old = kind.post(lite, version=111).json
    assert traits(old["uuid"]) == [old["name"]]
    assert lite.ask("PUT", f"{kind.path}/{old['uuid']}/traits/CUSTOM_MORE").status == 204
    name = f"{old['name']}_NEW"
    assert kind.patch(lite, old["uuid"], ("replace", "/name", name), version=111).status == 200
    no_trait = kind.patch(lite, old["uuid"], ("replace", "/name", "tidy-up"), version=111)
    refused(no_trait, 400, "trait")
    assert traits(old["uuid"]) == sorted(["CUSTOM_MORE", name])
    assert kind.patch(lite, old["uuid"], ("replace", "/name", "tidy-up")).status == 200
    assert traits(old["uuid"]) == sorted(["CUSTOM_MORE", name])
    assert kind.make(lite)["traits"] == []
