"""Images as compute and its drivers see them."""

import asyncio
from pathlib import Path

from siderite.compute.domain.outcome import Done
from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.outcome import Outcome
from siderite.compute.domain.outcome import Wait
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
