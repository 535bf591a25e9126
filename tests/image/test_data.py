"""An image's data: taken whole or not at all, checksummed, given back as it was."""

import asyncio
import contextlib
import hashlib
import itertools
import struct
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from siderite.core.errors import Conflict
from siderite.core.store import Store
from siderite.core.transition import Cause
from siderite.image import store as rows
from siderite.image.files import PIECE
from siderite.image.store import IMAGES
from siderite.image.web import data
from tests.image.world import DATA
from tests.image.world import World
from tests.image.world import world
from tests.support.app import scope
from tests.support.stories import Tell


def test_what_is_uploaded_comes_back_with_its_checksums(tell: Tell) -> None:
    async def story(here: World) -> None:
        data = bytes(range(256)) * 10_000 + b"end"
        image = (await here.make())["id"]
        assert (await here.upload(image, data)).status == 204
        shown = await here.show(image)
        assert (shown["status"], shown["size"]) == ("active", len(data))
        assert shown["virtual_size"] == len(data)
        assert shown["checksum"] == hashlib.md5(data).hexdigest()
        assert shown["os_hash_algo"] == "sha512"
        assert shown["os_hash_value"] == hashlib.sha512(data).hexdigest()
        answer = await here.ask("GET", f"/v2/images/{image}/file")
        assert (answer.status, answer.body == data) == (200, True)
        assert answer.headers["content-length"] == str(len(data))
        assert answer.headers["content-md5"] == shown["checksum"]

    tell(story)


def test_holes_are_kept_as_holes_and_read_as_zeros(tell_once: Tell) -> None:
    async def story(here: World) -> None:
        data = bytes(3 * PIECE) + b"x" + bytes(2 * PIECE)
        image = (await here.make())["id"]
        await here.upload(image, data)
        assert (await here.ask("GET", f"/v2/images/{image}/file")).body == data
        (file,) = here.folder.iterdir()
        assert file.stat().st_size == len(data)
        assert file.stat().st_blocks * 512 < 2 * PIECE

    tell_once(story)


RANGES = (
    ("bytes=0-3", 206, b"0123"),
    ("bytes=4-", 206, b"456789"),
    ("bytes=-2", 206, b"89"),
    ("bytes=8-99", 206, b"89"),
    ("bytes=10-", 416, None),
    ("bytes=5-4", 416, None),
    ("bytes=-", 416, None),
    ("items=0-1", 416, None),
)


def test_a_part_can_be_asked_for(tell_once: Tell) -> None:
    async def story(here: World) -> None:
        image = (await here.make())["id"]
        await here.upload(image, b"0123456789")
        for asked, status, body in RANGES:
            path = f"/v2/images/{image}/file"
            answer = await here.ask("GET", path, headers={"range": asked})
            assert answer.status == status, answer
            if body is None:
                assert answer.headers["content-range"] == "bytes */10", "so that one can ask anew"
            else:
                assert answer.body == body
                assert answer.headers["content-range"].endswith("/10")

    tell_once(story)


def test_an_image_without_data_has_nothing_to_download(tell_once: Tell) -> None:
    async def story(here: World) -> None:
        image = (await here.make())["id"]
        assert (await here.ask("GET", f"/v2/images/{image}/file")).status == 204

    tell_once(story)


def test_data_is_taken_once_and_only_with_formats(tell_once: Tell) -> None:
    async def story(here: World) -> None:
        bare = (await here.ask("POST", "/v2/images", {"name": "bare"})).json["id"]
        refused = await here.upload(bare, b"x")
        assert refused.status == 400 and "disk_format" in refused.sentence
        image = (await here.make())["id"]
        assert (await here.upload(image, b"x")).status == 204
        assert (await here.upload(image, b"y")).status == 409
        changed = await here.patch(image, {"op": "replace", "path": "/disk_format", "value": "iso"})
        assert changed.status == 403
        typed = await here.ask("PUT", f"/v2/images/{bare}/file", {"not": "data"})
        assert typed.status == 415

    tell_once(story)


def test_a_staged_image_is_active_once_it_is_imported(tell: Tell) -> None:
    async def story(here: World) -> None:
        image = (await here.make())["id"]
        body = {"method": {"name": "glance-direct"}}
        early = await here.ask("POST", f"/v2/images/{image}/import", body)
        assert early.status == 409
        assert (await here.upload(image, b"data", to="stage")).status == 204
        assert (await here.show(image))["status"] == "uploading"
        assert (await here.ask("GET", f"/v2/images/{image}/file")).status == 204
        other = {"method": {"name": "copy-image"}}
        assert (await here.ask("POST", f"/v2/images/{image}/import", other)).status == 400
        assert (await here.ask("POST", f"/v2/images/{image}/import", body)).status == 202
        shown = await here.show(image)
        assert (shown["status"], shown["size"]) == ("active", 4)

    tell(story)


def test_a_deactivated_image_is_read_by_administrators_only(tell: Tell) -> None:
    async def story(here: World) -> None:
        _, token, _ = await here.app.person("member")
        image = (await here.make(token=token))["id"]
        path = f"/v2/images/{image}"
        assert (await here.ask("POST", f"{path}/actions/deactivate")).status == 403
        await here.upload(image, b"data", token=token)
        assert (await here.ask("POST", f"{path}/actions/deactivate")).status == 204
        assert (await here.show(image))["status"] == "deactivated"
        assert (await here.ask("GET", f"{path}/file", token=token)).status == 403
        assert (await here.ask("GET", f"{path}/file")).status == 200
        assert (await here.ask("POST", f"{path}/actions/reactivate")).status == 204
        assert (await here.ask("GET", f"{path}/file", token=token)).status == 200

    tell(story)


def _qcow2(*, backing: int = 0, features: int = 0, size: int = 5 * 2**30) -> bytes:
    head = b"QFI\xfb" + struct.pack(">IQIIQ", 3, backing, 0, 16, size)
    return head.ljust(72, b"\0") + struct.pack(">Q", features) + bytes(432)


def test_the_virtual_size_is_read_from_the_header(tell_once: Tell) -> None:
    async def story(here: World) -> None:
        image = (await here.make(disk_format="qcow2"))["id"]
        await here.upload(image, _qcow2())
        assert (await here.show(image))["virtual_size"] == 5 * 2**30

    tell_once(story)


@pytest.mark.parametrize(
    "data", [_qcow2(backing=512), _qcow2(features=4), b"# Disk DescriptorFile\nversion=1\n"]
)
def test_an_image_that_would_read_the_hosts_files_is_refused(tmp_path: Path, data: bytes) -> None:
    async def story() -> None:
        async with world(tmp_path) as here:
            image = (await here.make(disk_format="raw"))["id"]
            refused = await here.upload(image, data)
            assert refused.status == 400 and "qemu-img convert" in refused.sentence
            assert (await here.show(image))["status"] == "queued"
            assert here.files() == []

    asyncio.run(story())


def test_an_upload_over_the_limit_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with world(tmp_path, image_max_gib=0) as here:
            image = (await here.make())["id"]
            assert (await here.upload(image, b"x")).status == 413
            assert (await here.show(image))["status"] == "queued"
            assert here.files() == []

    asyncio.run(story())


@pytest.mark.parametrize(
    ("options", "to"),
    [
        ({"image_max_gib": 1}, "file"),
        ({"image_max_gib": 1}, "stage"),
        ({"quota_image_gib": 1}, "file"),
    ],
)
def test_what_says_that_it_is_too_long_is_refused_before_it_comes(
    tmp_path: Path, options: dict[str, int], to: str
) -> None:
    async def story() -> None:
        async with world(tmp_path, **options) as here:
            image = (await here.make())["id"]
            headers = {"content-type": DATA, "content-length": str(2**30 + 1)}
            path = f"/v2/images/{image}/{to}"
            refused = await here.ask("PUT", path, b"the first of it", headers=headers)
            assert refused.status == 413 and next(iter(options)) in refused.sentence, refused
            assert (await here.show(image))["status"] == "queued"
            headers["content-length"] = str(2**30)
            assert (await here.ask("PUT", path, b"a short one", headers=headers)).status == 204

    asyncio.run(story())


def test_a_projects_images_have_a_quota_together(tmp_path: Path) -> None:
    async def story() -> None:
        async with world(tmp_path, quota_image_gib=1) as here:
            _, token, _ = await here.app.person("member")
            large, small, other = [(await here.make(token=token))["id"] for _ in range(3)]
            assert (await here.upload(large, b"x", token=token)).status == 204
            store = here.app.program.store
            await store.write(
                "UPDATE images SET size = ? WHERE uuid = ? RETURNING 1", (2**30 - 4, large)
            )
            both = await asyncio.gather(
                here.upload(small, b"xxx", token=token), here.upload(other, b"xxx", token=token)
            )
            assert sorted(one.status for one in both) == [204, 413], "they are counted one by one"
            last = (await here.make(token=token))["id"]
            answer = await here.upload(last, b"xx", token=token)
            assert answer.status == 413
            assert "quota_image_gib" in answer.json["error"]["message"]
            assert (await here.show(last))["status"] == "queued"
            assert len(here.files()) == 2
            assert (await here.upload(last, b"x", token=token)).status == 204
            full = (await here.make(token=token))["id"]
            assert (await here.upload(full, b"", token=token)).status == 413
            mine = (await here.make())["id"]
            assert (await here.upload(mine, b"xx")).status == 204, "that is another project"
            assert (await here.ask("DELETE", f"/v2/images/{large}", token=token)).status == 204
            assert (await here.upload(full, b"more", token=token)).status == 204

    asyncio.run(story())


class _NoTurns:
    """Whose turn it is in one process means nothing to another."""

    def of(self, _: str) -> contextlib.nullcontext[None]:
        return contextlib.nullcontext()


def test_uploads_that_end_at_the_same_moment_in_two_processes_cannot_pass_the_quota(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with world(tmp_path, database_url, quota_image_gib=1) as here:
            _, token, _ = await here.app.person("member")
            full, one, two = [(await here.make(token=token))["id"] for _ in range(3)]
            assert (await here.upload(full, b"x", token=token)).status == 204
            sql = "UPDATE images SET size = ? WHERE uuid = ? RETURNING 1"
            await here.app.program.store.write(sql, (2**30 - 9, full))
            monkeypatch.setattr(here.app.program.door, "turns", _NoTurns())
            count, calls, both = rows.bytes_of, itertools.count(1), asyncio.Barrier(2)

            async def bytes_of(store: Store, owner: str) -> int:
                size = await count(store, owner)
                if next(calls) in (3, 4):  # at the end: both have counted, and none has committed
                    async with asyncio.timeout(30):
                        await both.wait()
                return size

            monkeypatch.setattr(rows, "bytes_of", bytes_of)
            uploads = [here.upload(image, b"six by", token=token) for image in (one, two)]
            answers = await asyncio.gather(*uploads)
            assert sorted(answer.status for answer in answers) == [204, 413]

    asyncio.run(story())


def test_an_upload_that_breaks_off_leaves_the_image_queued(tell: Tell) -> None:
    async def story(here: World) -> None:
        image = (await here.make())["id"]
        messages = [
            {"type": "http.request", "body": b"half", "more_body": True},
            {"type": "http.disconnect"},
        ]
        sent: list[Any] = []

        async def receive() -> Any:
            if len(messages) == 1:
                assert (await here.show(image))["status"] == "saving"
            return messages.pop(0)

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"x-auth-token", here.app.token.encode()), (b"content-type", DATA.encode())]
        target = f"/image/v2/images/{image}/file"
        await here.app.program.app(scope("PUT", target, headers), receive, send)
        assert sent[0]["status"] == 400
        assert ((await here.show(image))["status"], here.files()) == ("queued", [])
        assert (await here.upload(image, b"whole")).status == 204

    tell(story)


def test_an_upload_of_which_no_more_comes_is_ended(
    tell_once: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data, "PATIENCE_S", 0.01)

    async def story(here: World) -> None:
        image = (await here.make())["id"]
        messages = [{"type": "http.request", "body": b"half", "more_body": True}]
        sent: list[Any] = []

        async def receive() -> Any:
            if not messages:
                await asyncio.Event().wait()
            return messages.pop(0)

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"x-auth-token", here.app.token.encode()), (b"content-type", DATA.encode())]
        target = f"/image/v2/images/{image}/file"
        async with asyncio.timeout(30):
            await here.app.program.app(scope("PUT", target, headers), receive, send)
        assert sent[0]["status"] == 400
        assert ((await here.show(image))["status"], here.files()) == ("queued", [])

    tell_once(story)


def test_a_directory_that_is_gone_is_said_and_changes_nothing(tell_once: Tell) -> None:
    async def story(here: World) -> None:
        image, kept = (await here.make())["id"], (await here.make())["id"]
        await here.upload(kept, b"kept")
        for file in here.folder.iterdir():
            file.unlink()
        here.folder.rmdir()
        refused = await here.upload(image, b"data")
        assert refused.status == 503 and "images directory" in refused.sentence
        assert (await here.show(image))["status"] == "queued"
        lost = await here.ask("GET", f"/v2/images/{kept}/file")
        assert lost.status == 503 and "images directory" in lost.sentence

    tell_once(story)


def test_of_two_uploads_at_once_one_is_refused(tell: Tell) -> None:
    async def story(here: World) -> None:
        image = (await here.make())["id"]
        answers = await asyncio.gather(here.upload(image, b"a" * 100), here.upload(image, b"b" * 9))
        assert sorted(answer.status for answer in answers) == [204, 409]
        assert len(here.files()) == 1

    tell(story)


def test_an_image_deleted_while_it_is_uploaded_stays_deleted(tell: Tell) -> None:
    async def story(here: World) -> None:
        image = (await here.make())["id"]
        transfer = here.app.program.app._services["image"].transfer
        who = await here.app.program.identity.by_token(here.app.token)

        async def pieces() -> Any:
            yield b"half"
            assert (await here.ask("DELETE", f"/v2/images/{image}")).status == 204
            yield b"whole"

        with pytest.raises(Conflict, match="was deleted"):
            await transfer.upload(image, pieces(), staged=False, who=who, cause=Cause())
        assert here.files() == []

    tell(story)


def test_what_a_crash_leaves_is_swept_away_at_start(tell: Tell) -> None:
    async def story(here: World) -> None:
        program = here.app.program
        transfer = program.app._services["image"].transfer
        kept = (await here.make())["id"]
        await here.upload(kept, b"kept")
        broken = (await here.make())["id"]
        await _pretend_saving(program.store, broken, f"{broken}.dead")
        (here.folder / f"{broken}.dead").write_bytes(b"half")
        left, live = (f"{uuid4()}.0123abcd" for _ in range(2))
        (here.folder / left).write_bytes(b"written, but the record was not")
        writer = transfer.files.begin(live)  # a live upload of another process
        for _ in range(2):
            await transfer.sweep_once()
            assert (await here.show(broken))["status"] == "queued"
            assert len(here.files()) == 2 and live in here.files()
        writer.close()
        await transfer.sweep_once()
        assert (await here.ask("GET", f"/v2/images/{kept}/file")).body == b"kept"
        assert (await here.upload(broken, b"again")).status == 204

    tell(story)


def test_files_that_are_not_ours_are_not_swept_away(tell_once: Tell) -> None:
    """Somebody may name a directory that has other files in it already."""

    async def story(here: World) -> None:
        theirs = ["debian-13.qcow2", f"{uuid4()}", f"{uuid4()}.qcow2", f"{uuid4()}.backup00"]
        for name in theirs:
            (here.folder / name).write_bytes(b"theirs")
        await here.app.program.app._services["image"].transfer.sweep_once()
        assert here.files() == sorted(theirs)

    tell_once(story)


async def _pretend_saving(store: Store, uuid: str, file: str) -> None:
    before = await IMAGES.get(store, uuid)
    assert before is not None
    after = before.changed(0.0, {"status": "saving", "file": file})
    await store.commit([IMAGES.swap(before, after)])
