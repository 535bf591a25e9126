"""Who may do what to whose image: every address, as everybody."""

import asyncio
import json
from typing import Any

import pytest

from siderite.core.errors import Forbidden
from siderite.core.transition import Cause
from siderite.core.who import Who
from siderite.image import store as rows
from siderite.image.store import IMAGES
from siderite.image.usecases import change
from siderite.image.usecases import find
from siderite.image.usecases import members
from siderite.image.web.routes import ROUTES
from tests.image.world import DATA
from tests.image.world import PATCH
from tests.image.world import World
from tests.support.stories import Tell

BODIES: dict[str, Any] = {
    "POST /v2/images": {"name": "x"},
    "PATCH /v2/images/{image_id}": b'[{"op": "replace", "path": "/name", "value": "taken"}]',
    "PUT /v2/images/{image_id}/file": b"data",
    "PUT /v2/images/{image_id}/stage": b"data",
    "POST /v2/images/{image_id}/import": {"method": {"name": "glance-direct"}},
    "POST /v2/images/{image_id}/members": {"member": "p"},
    "PUT /v2/images/{image_id}/members/{member_id}": {"status": "accepted"},
}


async def _everywhere(here: World, image: str, token: str) -> dict[str, int]:
    """The status of each address of this image, asked with a token."""
    found = {}
    for route in ROUTES:
        path = route.path.replace("{image_id}", image).replace("{member_id}", "p")
        path = path.replace("{tag}", "t").replace("{name}", "image")
        name = f"{route.method} {route.path}"
        body = [BODIES[name]] if name in BODIES else []
        kind = PATCH if route.method == "PATCH" else DATA
        headers = {"content-type": kind} if body and isinstance(body[0], bytes) else {}
        answer = await here.ask(route.method, path, *body, token=token, headers=headers)
        assert answer.status < 500, (name, answer)
        found[name] = answer.status
    return found


def test_nobody_is_told_versions_only(tell_once: Tell) -> None:
    async def story(here: World) -> None:
        image = (await here.make(visibility="public"))["id"]
        for token in ("", "wrong"):
            for name, status in (await _everywhere(here, image, token)).items():
                is_open = name in ("GET /", "GET /versions", "GET /v2")
                assert status == 401 or is_open, name

    tell_once(story)


def test_another_projects_member_finds_nothing(tell_once: Tell) -> None:
    async def story(here: World) -> None:
        _, owner, _ = await here.app.person("member")
        _, other, _ = await here.app.person("member")
        image = (await here.make(visibility="private", token=owner, name="mine"))["id"]
        before = await here.show(image)
        for name, status in (await _everywhere(here, image, other)).items():
            assert status == 404 or "{image_id}" not in name, name
        assert await here.show(image) == before

    tell_once(story)


def test_a_public_image_is_read_by_all_and_changed_by_its_owner(tell_once: Tell) -> None:
    async def story(here: World) -> None:
        _, other, _ = await here.app.person("member")
        image = (await here.make(visibility="public"))["id"]
        before = await here.show(image)
        for name, status in (await _everywhere(here, image, other)).items():
            if "{image_id}" in name and not name.startswith("GET"):
                assert status == 403, name
        assert await here.show(image) == before
        assert (await here.ask("GET", f"/v2/images/{image}", token=other)).status == 200

    tell_once(story)


def test_a_reader_changes_nothing(tell_once: Tell) -> None:
    async def story(here: World) -> None:
        _, owner, project = await here.app.person("member")
        _, reader, _ = await here.app.person("reader", project)
        image = (await here.make(token=owner))["id"]
        before = await here.show(image)
        for name, status in (await _everywhere(here, image, reader)).items():
            assert name.startswith("GET") or status == 403, name
        assert await here.show(image, reader) == before

    tell_once(story)


def test_only_administrators_publish_and_give_away(tell_once: Tell) -> None:
    async def story(here: World) -> None:
        _, token, project = await here.app.person("member")
        for fields in ({"visibility": "public"}, {"owner": "other"}):
            assert (await here.ask("POST", "/v2/images", fields, token=token)).status == 403
            image = (await here.make(token=token))["id"]
            (name, value), *_ = fields.items()
            ops = {"op": "replace", "path": f"/{name}", "value": value}
            assert (await here.patch(image, ops, token=token)).status == 403
            assert (await here.patch(image, ops)).status == 200
        given = await here.make(owner=project)
        assert (await here.show(given["id"], token))["owner"] == project

    tell_once(story)


def test_members_that_are_added_at_the_same_moment_are_no_more_than_there_may_be(
    tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(members, "MAX_MEMBERS", 3)

    async def story(here: World) -> None:
        image = (await here.make())["id"]
        path = f"/v2/images/{image}/members"
        asked = (here.ask("POST", path, {"member": f"project-{n}"}) for n in range(8))
        answers = sorted(one.status for one in await asyncio.gather(*asked))
        assert answers == [200] * 3 + [409] * 5
        assert len((await here.ask("GET", path)).json["members"]) == 3

    tell(story)


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_what_becomes_of_a_member_is_told_of_the_image_as_it_is_then(
    tell: Tell, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """Another process may change the image at the same moment."""
    found = rows.member

    async def story(here: World) -> None:
        _, _, project = await here.app.person("member")
        image = (await here.make(visibility="shared"))["id"]
        await here.ask("POST", f"/v2/images/{image}/members", {"member": project})
        store = here.app.program.store

        async def then_renamed(*which: Any) -> Any:
            monkeypatch.setattr(rows, "member", found)
            member, before = await found(*which), await IMAGES.get(store, image)
            assert before is not None
            await store.commit([IMAGES.swap(before, before.changed(0.0, {"name": "new"}))])
            return member

        monkeypatch.setattr(rows, "member", then_renamed)
        body = [{"status": "accepted"}] if method == "PUT" else []
        done = await here.ask(method, f"/v2/images/{image}/members/{project}", *body)
        assert done.status in (200, 204)
        sql = "SELECT payload FROM events WHERE resource = ? ORDER BY at"
        told = [json.loads(str(row[0]))["name"] for row in await store.fetch(sql, (image,))]
        assert told[-1] == "new"

    tell(story)


def test_a_shared_image_is_offered_accepted_and_taken_back(tell: Tell) -> None:
    async def story(here: World) -> None:
        _, owner, home = await here.app.person("member")
        _, other, project = await here.app.person("member")
        image = (await here.make(token=owner))["id"]
        members = f"/v2/images/{image}/members"
        one = f"{members}/{project}"
        offered = await here.ask("POST", members, {"member": project}, token=owner)
        assert (offered.status, offered.json["status"]) == (200, "pending")
        assert (await here.ask("POST", members, {"member": project}, token=owner)).status == 409
        assert (await here.ask("GET", f"/v2/images/{image}", token=other)).status == 200
        by_owner = await here.ask("PUT", one, {"status": "accepted"}, token=owner)
        assert by_owner.status == 403, "the owner cannot accept in the other's name"
        accepted = await here.ask("PUT", one, {"status": "accepted"}, token=other)
        assert (accepted.status, accepted.json["status"]) == (200, "accepted")
        assert (await here.ask("DELETE", one, token=other)).status == 403
        listed = (await here.ask("GET", members, token=other)).json["members"]
        assert [m["member_id"] for m in listed] == [project]
        assert (await here.ask("GET", one, token=owner)).json["status"] == "accepted"
        assert (await here.ask("DELETE", one, token=owner)).status == 204
        assert (await here.ask("DELETE", one, token=owner)).status == 404
        told = await here.app.program.store.fetch(
            "SELECT count(*) FROM events WHERE resource = ? AND event_type = 'image.update'",
            (image,),
        )
        assert [tuple(row) for row in told] == [(3,)]  # offered, accepted and taken back
        assert (await here.ask("GET", f"/v2/images/{image}", token=other)).status == 404
        await here.patch(image, {"op": "replace", "path": "/visibility", "value": "private"})
        refused = await here.ask("POST", members, {"member": project}, token=owner)
        assert refused.status == 403 and "shared" in refused.sentence
        assert home != project

    tell(story)


def test_a_service_reads_others_images_but_does_not_share_them(tell_once: Tell) -> None:
    async def story(here: World) -> None:
        image = (await here.make())["id"]
        _, service, _ = await here.app.person("service")
        path = f"/v2/images/{image}/members"
        assert (await here.ask("POST", path, {"member": "p"}, token=service)).status == 403
        assert (await here.ask("POST", path, {"member": "p"})).status == 200
        assert (await here.ask("DELETE", f"{path}/p", token=service)).status == 403
        listed = await here.ask("GET", path, token=service)
        assert [one["member_id"] for one in listed.json["members"]] == ["p"]

    tell_once(story)


def test_who_is_in_no_project_makes_no_images_and_sees_nobodys(tell: Tell) -> None:
    async def story(here: World) -> None:
        await here.make(name="nobodys", owner="")
        ctx = here.app.program.app._services["image"].ctx
        nowhere = Who("u", "dom", None, None, frozenset({"member", "reader"}))
        with pytest.raises(Forbidden, match="belongs to a project"):
            await change.create(ctx, {"name": "lost"}, who=nowhere, cause=Cause())
        where = find.seen_by(nowhere, None, "accepted")
        order = [("created_at", True)]
        assert not await find.page(ctx, where, order, limit=5, marker=None, who=nowhere)

    tell(story)
