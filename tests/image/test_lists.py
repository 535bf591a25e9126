"""Lists of images: who sees what, filters, order, pages."""

from urllib.parse import quote

from tests.image.world import World
from tests.support.stories import Tell


def test_a_project_sees_its_own_the_public_and_what_it_accepted(tell: Tell) -> None:
    async def story(here: World) -> None:
        _, ours, project = await here.app.person("member")
        _, theirs, _ = await here.app.person("member")
        for visibility in ("private", "shared", "community"):
            await here.make(name=f"their {visibility}", visibility=visibility, token=theirs)
        public = await here.make(name="public", visibility="public")
        await here.make(name="ours", token=ours)
        offered = (await here.make(name="offered", token=theirs))["id"]
        path = f"/v2/images/{offered}/members"
        await here.ask("POST", path, {"member": project}, token=theirs)

        assert sorted(await here.names(token=ours)) == ["ours", "public"]
        assert await here.names("?visibility=community", ours) == ["their community"]
        assert sorted(await here.names("?visibility=all", ours)) == [
            "ours", "public", "their community",
        ]  # fmt: skip
        assert await here.names("?visibility=shared&member_status=pending", ours) == [
            "offered", "ours",
        ]  # fmt: skip
        await here.ask("PUT", f"{path}/{project}", {"status": "accepted"}, token=ours)
        assert "offered" in await here.names(token=ours)
        assert len(await here.names()) == 6, "the admin sees all"
        assert (await here.show(public["id"], ours))["name"] == "public"

    tell(story)


def test_filters_choose(tell: Tell) -> None:
    async def story(here: World) -> None:
        one = await here.make(name="one", tags=["red", "big"], os_distro="debian", min_ram=512)
        two = await here.make(name="two, too", tags=["red"], disk_format="qcow2")
        await here.make(name="three", os_hidden=True, protected=True)
        await here.upload(one["id"], b"12345")
        checksum = (await here.show(one["id"]))["checksum"]
        in_names = quote('in:"two, too",one')
        for query, names in (
            ("name=one", ["one"]),
            (f"id=in:{one['id']},{two['id']}", ["two, too", "one"]),
            (f"name={in_names}", ["two, too", "one"]),
            ("status=active", ["one"]),
            ("disk_format=qcow2", ["two, too"]),
            ("tag=red", ["two, too", "one"]),
            ("tag=red&tag=big", ["one"]),
            ("os_distro=debian", ["one"]),
            ("os_distro=arch", []),
            ("size_min=5&size_max=5", ["one"]),
            ("min_ram=512", ["one"]),
            ("os_hidden=true", ["three"]),
            ("protected=true", []),
            (f"checksum={checksum}", ["one"]),
            ("created_at=gte:2020-01-01T00:00:00Z", ["two, too", "one"]),
            ("created_at=lt:2020-01-01", []),
            ("owner=nobody", []),
        ):
            assert await here.names("?" + query) == names, query

    tell(story)


def test_lists_are_sorted_by_several_keys_and_paged(tell: Tell) -> None:
    async def story(here: World) -> None:
        for name, ram in (("b", 1), ("a", 2), ("c", 1), ("a", 1), ("d", 2)):
            await here.make(name=name, min_ram=ram)
        for query, wanted in (
            ("sort=min_ram:desc,name:asc", ["a", "d", "a", "b", "c"]),
            ("sort_key=name&sort_dir=asc", ["a", "a", "b", "c", "d"]),
            (
                "sort_key=min_ram&sort_dir=asc&sort_key=name&sort_dir=desc",
                ["c", "b", "a", "d", "a"],
            ),
            ("sort_key=name", ["d", "c", "b", "a", "a"]),
            ("", ["d", "a", "c", "a", "b"]),
        ):
            got, pages, path = [], 0, f"/v2/images?limit=2&{query}"
            while path:
                page = (await here.ask("GET", path)).json
                got += [one["name"] for one in page["images"]]
                pages, path = pages + 1, page.get("next")
            assert (got, pages) == (wanted, 3), query

    tell(story)


def test_a_key_that_is_named_again_changes_nothing(tell: Tell) -> None:
    async def story(here: World) -> None:
        made = [(await here.make(name=name))["id"] for name in ("a", "c", "b")]
        often = ",".join(["name:asc", *["min_ram", "name:desc"] * 1250])
        assert await here.names(f"?sort={often}") == ["a", "b", "c"]
        assert await here.names(f"?sort={often}&marker={made[0]}") == ["b", "c"]

    tell(story)


def test_a_marker_of_anothers_image_is_refused(tell: Tell) -> None:
    async def story(here: World) -> None:
        image = (await here.make(visibility="private"))["id"]
        _, token, _ = await here.app.person("member")
        refused = await here.ask("GET", f"/v2/images?marker={image}", token=token)
        assert refused.status == 400 and "marker" in refused.sentence

    tell(story)


def test_an_empty_page_has_no_next(tell: Tell) -> None:
    async def story(here: World) -> None:
        answer = await here.ask("GET", "/v2/images?limit=0")
        assert answer.json == {
            "images": [], "schema": "/v2/schemas/images", "first": "/v2/images?limit=0",
        }  # fmt: skip

    tell(story)


NO_SENSE = [
    "limit=-1", "limit=x", "marker=x", "sort_key=colour", "sort_dir=up", "sort=name:up",
    "sort=name&sort_key=name", "sort_key=name&sort_dir=asc&sort_dir=asc", "visibility=secret",
    "member_status=maybe", "os_hidden=perhaps", "protected=1", "size_min=big", "min_ram=1.5",
    "created_at=yesterday", "created_at=gte:2026-13", "id=in:", "name=%00",
]  # fmt: skip


def test_a_query_that_makes_no_sense_is_refused(tell: Tell) -> None:
    async def story(here: World) -> None:
        for query in NO_SENSE:
            refused = await here.ask("GET", f"/v2/images?{query}")
            assert refused.status == 400, (query, refused)
            assert refused.sentence

    tell(story)
