"""Images as compute and its drivers see them."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from siderite.compute.domain.outcome import Done
from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.outcome import Outcome
from siderite.compute.domain.outcome import Wait
from siderite.core.transition import Cause
from siderite.image.files import Files
from siderite.wiring.own_images import SYSTEM
from siderite.wiring.own_images import OwnImages
from tests.image.world import World
from tests.image.world import world


def _images(here: World) -> OwnImages:
    source = here.app.program.app._services["compute"].images
    assert isinstance(source, OwnImages)
    return source


async def _stored(images: OwnImages, image: str, file: Path) -> Outcome:
    outcome: Outcome = Wait("", 0)
    for _ in range(100):
        outcome = await images.store(image, file, "raw")
        if not isinstance(outcome, Wait):
            break
    return outcome


def test_an_image_is_shown_to_those_who_may_use_it(tmp_path: Path) -> None:
    async def story() -> None:
        async with world(tmp_path) as here:
            _, token, project = await here.app.person("member")
            made = await here.make(
                token=token, name="i", visibility="private", min_ram=64, os_shutdown_timeout="9"
            )
            images = _images(here)
            found = await images.show(made["id"], token=None, project=project)
            assert found is not None
            assert (found.name, found.status, found.min_ram_mib) == ("i", "queued", 64)
            assert found.properties == {"os_shutdown_timeout": "9"}
            assert await images.show(made["id"], token=None, project="other") is None
            assert await images.show("x", token=None, project=project) is None
            assert await images.show(made["id"], token=here.app.token, project=None) == found

    asyncio.run(story())


def test_nobody_waits_while_a_large_file_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever deletes it by way of compute, or left it behind."""
    where: list[threading.Thread] = []
    remove = Files.remove

    def spied(files: Files, name: str) -> None:
        where.append(threading.current_thread())
        remove(files, name)

    async def story() -> None:
        async with world(tmp_path) as here:
            made = await here.make()
            await here.upload(made["id"], b"disk")
            (here.folder / f"{made['id']}.0123abcd").write_bytes(b"left behind")
            monkeypatch.setattr(Files, "remove", spied)
            images = _images(here)
            await images.remove(made["id"])
            await images._images.sweep()
            assert here.files() == []
            assert len(where) == 2 and threading.current_thread() not in where

    asyncio.run(story())


def test_a_snapshot_is_made_stored_once_and_read_as_a_file(tmp_path: Path) -> None:
    async def story() -> None:
        async with world(tmp_path) as here:
            images = _images(here)
            file = tmp_path / "disk"
            file.write_bytes(b"disk" * 1000)
            properties = {"base_image_ref": "b", "status": "an attribute, so not kept"}
            image = await images.make("snap", properties, token=None, project="p")
            assert isinstance(await images.local(image), Failed)
            assert await _stored(images, image, file) == Done()
            assert await _stored(images, image, file) == Done(), "again changes nothing"
            shown = await here.show(image)
            assert (shown["owner"], shown["status"], shown["size"]) == ("p", "active", 4000)
            assert (shown["disk_format"], shown["base_image_ref"]) == ("raw", "b")
            path = await images.local(image)
            assert isinstance(path, Path) and path.read_bytes() == file.read_bytes()
            await images.discard(image)
            assert (await here.show(image))["status"] == "active", "what is complete stays"
            path.unlink()
            lost = await images.local(image)
            assert isinstance(lost, Failed) and "look at the images directory" in lost.reason

    asyncio.run(story())


def test_a_snapshot_whose_contents_do_not_come_is_discarded(tmp_path: Path) -> None:
    async def story() -> None:
        async with world(tmp_path) as here:
            images = _images(here)
            image = await images.make("snap", {}, token=None, project="p")
            assert isinstance(await _stored(images, image, tmp_path / "missing"), Failed)
            await images.discard(image)
            await images.discard(image)
            assert (await here.ask("GET", f"/v2/images/{image}")).status == 404

    asyncio.run(story())


def test_what_an_image_service_noted_of_an_image_stays_there_and_is_not_a_snapshots(
    tmp_path: Path,
) -> None:
    noted = {"os_glance_failed_import": "", "colour": "blue"}

    async def story() -> None:
        async with world(tmp_path) as here:
            fields = {"name": "i", "visibility": "public", "properties": noted}
            images = _images(here)
            image = await images._images.create(fields, who=SYSTEM, cause=Cause())
            where = f"/compute/v2.1/images/{image}/metadata"
            body = {"metadata": {**noted, "size_of": "a cat"}}
            for method in ("POST", "PUT"):  # with what was read
                answer = await here.app.ask(method, where, body, version=None)
                assert (answer.status, answer.json) == (200, body)
            snap = await images.make("snap", noted, token=None, project="p")
            shown = await here.show(snap)
            assert shown["colour"] == "blue" and "os_glance_failed_import" not in shown

    asyncio.run(story())


def test_metadata_are_decided_on_as_they_are_when_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else adds a property after an image was read, and before it is changed."""
    real = OwnImages.show

    async def story() -> None:
        async with world(tmp_path) as here:
            faster: list[str] = []

            async def show(*args: Any, **how: Any) -> Any:
                found = await real(*args, **how)
                if faster:
                    op = {"op": "add", "path": f"/{faster.pop()}", "value": "x"}
                    assert (await here.patch(found.id, op)).status == 200
                return found

            monkeypatch.setattr(OwnImages, "show", show)

            async def write(method: str, path: str, *body: Any, between: str) -> tuple[int, Any]:
                faster.append(between)
                where = f"/compute/v2.1/images/{image}/metadata{path}"
                answer = await here.app.ask(method, where, *body, version=None)
                assert not faster
                shown = await here.app.ask("GET", where.removesuffix(path), version=None)
                return answer.status, shown.json["metadata"]

            image = (await here.make(a="1"))["id"]
            body = {"metadata": {"b": "2"}}
            assert await write("PUT", "", body, between="late") == (200, {"b": "2"})
            after = {"b": "2", "c": "3", "late": "x"}
            body = {"metadata": {"c": "3"}}
            assert await write("POST", "", body, between="late") == (200, after)
            assert await write("DELETE", "/late", between="b") == (204, {"b": "x", "c": "3"})

            project = (await here.show(image))["owner"]
            few = {"quota_set": {"metadata_items": 3}}
            quota = f"/compute/v2.1/os-quota-sets/{project}"
            assert (await here.app.ask("PUT", quota, few, version=None)).status == 200
            kept = {"b": "x", "c": "3", "third": "x"}
            body = {"metadata": {"fourth": "4"}}
            assert await write("POST", "", body, between="third") == (403, kept)

    asyncio.run(story())
