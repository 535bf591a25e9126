"""Image records: made, shown, changed, deleted."""

from tests.image.world import World
from tests.support.stories import Tell

KEYS = {
    "id", "name", "status", "visibility", "protected", "owner", "container_format", "disk_format",
    "min_disk", "min_ram", "size", "virtual_size", "checksum", "os_hash_algo", "os_hash_value",
    "os_hidden", "tags", "created_at", "updated_at", "self", "file", "schema",
}  # fmt: skip


def test_a_new_image_is_queued_shared_and_its_projects(tell: Tell) -> None:
    async def story(here: World) -> None:
        _, token, project = await here.app.person("member")
        made = await here.make(token=token, name="cirros", os_shutdown_timeout="90")
        assert set(made) == KEYS | {"os_shutdown_timeout"}
        assert (made["status"], made["visibility"], made["owner"]) == ("queued", "shared", project)
        assert made["created_at"].endswith("Z") and len(made["created_at"]) == 20
        assert made["self"] == f"/v2/images/{made['id']}"
        assert await here.show(made["id"], token) == made

    tell(story)


def test_a_patch_adds_replaces_and_removes(tell: Tell) -> None:
    async def story(here: World) -> None:
        image = (await here.make(a="1"))["id"]
        answer = await here.patch(
            image,
            {"op": "replace", "path": "/name", "value": "new"},
            {"op": "add", "path": "/hw_disk_bus", "value": "virtio"},
            {"op": "add", "path": "/with~1slash", "value": "x"},
            {"op": "remove", "path": "/a"},
            {"op": "replace", "path": "/tags", "value": ["b", "a", "b"]},
            {"op": "replace", "path": "/protected", "value": True},
        )
        assert answer.status == 200, answer
        shown = await here.show(image)
        assert answer.json == shown
        assert (shown["name"], shown["hw_disk_bus"], shown["with/slash"]) == ("new", "virtio", "x")
        assert "a" not in shown
        assert (shown["tags"], shown["protected"]) == (["b", "a"], True)

    tell(story)


def test_the_elder_form_of_a_patch_is_understood(tell_once: Tell) -> None:
    async def story(here: World) -> None:
        image = (await here.make())["id"]
        answer = await here.ask(
            "PATCH", f"/v2/images/{image}", b'[{"replace": "/name", "value": "n"}]',
            headers={"content-type": "application/openstack-images-v2.0-json-patch"},
        )  # fmt: skip
        assert (answer.status, answer.json["name"]) == (200, "n")

    tell_once(story)


def test_a_protected_image_cannot_be_deleted(tell_once: Tell) -> None:
    async def story(here: World) -> None:
        image = (await here.make(protected=True))["id"]
        refused = await here.ask("DELETE", f"/v2/images/{image}")
        assert refused.status == 403 and "protected" in refused.sentence
        await here.patch(image, {"op": "replace", "path": "/protected", "value": False})
        assert (await here.ask("DELETE", f"/v2/images/{image}")).status == 204
        assert (await here.ask("GET", f"/v2/images/{image}")).status == 404

    tell_once(story)


def test_names_that_image_services_keep_for_themselves_are_refused(tell_once: Tell) -> None:
    async def story(here: World) -> None:
        body = {"name": "x", "os_glance_importing_to_stores": "a"}
        refused = await here.ask("POST", "/v2/images", body)
        assert refused.status == 403 and "os_glance_" in refused.sentence
        image = (await here.make())["id"]
        add = {"op": "add", "path": "/os_glance_foo", "value": "bar"}
        assert (await here.patch(image, add)).status == 403
        assert "os_glance_foo" not in await here.show(image)

    tell_once(story)


def test_an_id_may_be_given_once(tell: Tell) -> None:
    async def story(here: World) -> None:
        uuid = "6f0c1d0a-5b0e-4a0f-9b5e-1b1f3f0f7d2a"
        assert (await here.make(id=uuid))["id"] == uuid
        again = await here.ask("POST", "/v2/images", {"id": uuid})
        assert again.status == 409 and uuid in again.sentence

    tell(story)


def test_the_id_of_an_image_that_is_gone_is_never_anothers(tell: Tell) -> None:
    """Hosts keep its data under that id: who could have the id next would read it."""

    async def story(here: World) -> None:
        gone = (await here.make())["id"]
        assert (await here.ask("DELETE", f"/v2/images/{gone}")).status == 204
        _, token, _ = await here.app.person("member")
        refused = await here.ask("POST", "/v2/images", {"id": gone}, token=token)
        assert refused.status == 409 and gone in refused.sentence
        assert (await here.ask("GET", f"/v2/images/{gone}")).status == 404

    tell(story)


def test_tags_are_put_and_taken_one_by_one(tell: Tell) -> None:
    async def story(here: World) -> None:
        image = (await here.make())["id"]
        for _ in range(2):
            assert (await here.ask("PUT", f"/v2/images/{image}/tags/blue")).status == 204
        assert (await here.show(image))["tags"] == ["blue"]
        assert (await here.ask("DELETE", f"/v2/images/{image}/tags/blue")).status == 204
        assert (await here.ask("DELETE", f"/v2/images/{image}/tags/blue")).status == 404

    tell(story)


def test_every_change_is_announced(tell: Tell) -> None:
    async def story(here: World) -> None:
        image = (await here.make())["id"]
        await here.upload(image, b"data")
        await here.patch(image, {"op": "replace", "path": "/name", "value": "new"})
        await here.ask("DELETE", f"/v2/images/{image}")
        order = "seq" if here.app.program.store.dialect == "sqlite" else "id"
        rows = await here.app.program.store.fetch(
            f"SELECT event_type FROM events WHERE resource = ? ORDER BY {order}", (image,)
        )
        assert [row[0] for row in rows] == [
            "image.create", "image.prepare", "image.upload", "image.activate", "image.update",
            "image.delete",
        ]  # fmt: skip

    tell(story)


def test_schemas_and_import_methods_are_described(tell_once: Tell) -> None:
    async def story(here: World) -> None:
        for name in ("image", "images", "member", "members", "task", "tasks"):
            assert (await here.ask("GET", f"/v2/schemas/{name}")).json["name"] == name
        shown = (await here.ask("GET", "/v2/schemas/image")).json["properties"]
        assert set(shown) == KEYS
        assert (await here.ask("GET", "/v2/schemas/metadefs")).status == 404
        methods = (await here.ask("GET", "/v2/info/import")).json["import-methods"]["value"]
        assert methods == ["glance-direct", "web-download"]

    tell_once(story)


def test_versions_are_told_without_a_token(tell_once: Tell) -> None:
    async def story(here: World) -> None:
        for path, status in (
            ("", 300),
            ("/", 300),
            ("/versions", 200),
            ("/v2", 200),
            ("/v2/", 200),
        ):
            answer = await here.ask("GET", path, token="")
            assert answer.status == status, path
            current = [v for v in answer.json["versions"] if v["status"] == "CURRENT"]
            assert [v["id"] for v in current] == ["v2.9"]
            assert current[0]["links"][0]["href"] == "http://cloud.test/image/v2/"

    tell_once(story)
