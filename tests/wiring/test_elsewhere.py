"""Keystone and Glance elsewhere, by configuration: another installation of ours is both."""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from siderite.compute.domain.outcome import Done
from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.outcome import Wait
from siderite.core.errors import Forbidden
from siderite.core.errors import Invalid
from siderite.core.errors import SideriteError
from siderite.core.errors import Unavailable
from siderite.wiring import glance_images
from siderite.wiring import image_cache
from siderite.wiring.glance_images import GlanceImages
from siderite.wiring.image_cache import ImageCache
from tests.support.app import running
from tests.support.server import Server
from tests.support.server import running_server


class _Tokens:
    """For those who ask nobody real."""

    async def service_token(self) -> str:
        return "t"


def _options(there: Server) -> dict[str, Any]:
    return {
        "keystone_url": f"{there.url}/identity/v3", "keystone_user": "admin",
        "keystone_password": there.password, "keystone_project": "admin",
        "image_url": f"{there.url}/image",
    }  # fmt: skip


async def _until(ask: Any) -> Any:
    outcome = await ask()
    while isinstance(outcome, Wait):
        outcome = await ask()
    return outcome


async def _end(there: Server, images: GlanceImages) -> None:
    """The token of our own account ends, as it does when its time is over."""
    own = await images._keystone.service_token()
    headers = {**there.headers(), "x-subject-token": own}
    answer = await asyncio.to_thread(
        there.api.delete, "/identity/v3/auth/tokens", headers=headers
    )  # fmt: skip
    assert answer.status_code == 204, answer


def _image(there: Server, data: bytes) -> str:
    """An image of theirs with this data."""
    record = {"name": "i", "disk_format": "raw", "container_format": "bare", "os_distro": "x"}
    made = there.api.post("/image/v2/images", json=record, headers=there.headers()).json()
    typed = {**there.headers(), "content-type": "application/octet-stream"}
    there.api.put(f"/image/v2/images/{made['id']}/file", content=data, headers=typed)
    return str(made["id"])


def test_servers_here_use_tokens_and_images_from_there(tmp_path: Path) -> None:
    with running_server(tmp_path) as there:
        data = b"disk" * 100_000
        asyncio.run(_story(tmp_path, there, _image(there, data), data))


async def _story(tmp_path: Path, there: Server, image: str, data: bytes) -> None:
    async with running(tmp_path / "here", work=True, **_options(there)) as here:
        theirs = there.token()
        answer = await here.ask("GET", "/v1/nodes", token=theirs)
        assert answer.status == 200, "a token of theirs is good at every API"
        catalogue = (await here.ask("GET", "/identity/v3/auth/catalog")).json["catalog"]
        (entry,) = [one for one in catalogue if one["type"] == "image"]
        assert entry["endpoints"][0]["url"] == f"{there.url}/image"

        images = here.program.app._services["compute"].images
        assert isinstance(images, GlanceImages)
        found = await images.show(image, token=theirs, project=None)
        assert found is not None and found.properties == {"os_distro": "x"}
        assert found.checksum == hashlib.md5(data).hexdigest()
        other = "6f0c1d0a-5b0e-4a0f-9b5e-1b1f3f0f7d2a"
        assert await images.show(other, token=None, project=None) is None
        assert isinstance(await images.local(other), Failed)

        path = await _until(lambda: images.local(image))
        assert path.read_bytes() == data
        assert await images.local(image) == path
        assert [file.name for file in path.parent.iterdir()] == [path.name]

        await _end(there, images)
        assert await images.show(image, token=None, project=None) == found, "we log in again"
        path.unlink()
        await _end(there, images)
        path = await _until(lambda: images.local(image))
        assert path.read_bytes() == data

        snap = await images.make("snap", {"a": "b"}, token=theirs, project=None)
        assert isinstance(await images.local(snap), Failed)
        assert await _until(lambda: images.store(snap, path, "raw")) == Done()
        assert await _until(lambda: images.store(snap, path, "raw")) == Done()
        shown = await images.show(snap, token=None, project=None)
        assert shown is not None and (shown.status, shown.size) == ("active", len(data))
        gone = await images.make("gone", {}, token=None, project="p")
        await images.discard(gone)
        assert await images.show(gone, token=None, project=None) is None


def test_images_from_there_are_listed_and_deleted_by_way_of_compute(tmp_path: Path) -> None:
    async def story(there: Server, kept: str, gone: str) -> None:
        async with running(tmp_path / "here", work=True, **_options(there)) as here:
            how: dict[str, Any] = {"version": None, "token": there.token()}

            async def ids(query: str) -> list[str]:
                page = await here.ask("GET", f"/compute/v2.1/images?{query}", **how)
                return [one["id"] for one in page.json["images"]]

            assert await ids("name=i") == [gone, kept]
            assert await ids("name=i&limit=1") == [gone]
            assert await ids(f"name=i&limit=1&marker={gone}") == [kept]
            assert await ids("name=i&status=saving") == []
            odd = await here.ask("GET", "/compute/v2.1/images?marker=none", **how)
            said = odd.json["badRequest"]["message"]
            assert (odd.status, said) == (400, "marker [none] not found. Ask from the start.")
            shown = await here.ask("GET", f"/compute/v2.1/images/{kept}", **how)
            (link,) = [one for one in shown.json["image"]["links"] if one["rel"] == "alternate"]
            assert link["href"] == f"{there.url}/image/v2/images/{kept}"
            at = f"/compute/v2.1/images/{kept}/metadata"
            put = await here.ask("PUT", at, {"metadata": {"a/b": "1"}}, **how)
            assert put.status == 400, "a slash is no part of a key"
            put = await here.ask("PUT", at, {"metadata": {"a": "1"}}, **how)
            assert (put.status, put.json) == (200, {"metadata": {"a": "1"}})
            assert (await here.ask("DELETE", f"{at}/a", **how)).status == 204
            assert (await here.ask("GET", at, **how)).json == {"metadata": {}}
            for image, status in ((gone, 204), (gone, 404), ("none", 404), (kept, 403)):
                answer = await here.ask("DELETE", f"/compute/v2.1/images/{image}", **how)
                assert answer.status == status, (image, answer)
            assert await ids("name=i") == [kept]

    with running_server(tmp_path) as there:
        kept = _image(there, b"kept")
        protect = [{"op": "replace", "path": "/protected", "value": True}]
        kind = {"content-type": "application/openstack-images-v2.1-json-patch"}
        headers = {**there.headers(), **kind}
        there.api.patch(f"/image/v2/images/{kept}", json=protect, headers=headers)
        asyncio.run(story(there, kept, _image(there, b"gone")))


def test_a_filter_that_is_refused_there_is_not_said_to_be_a_marker(tmp_path: Path) -> None:
    async def story(there: Server) -> None:
        async with running(tmp_path / "here", work=True, **_options(there)) as here:
            how: dict[str, Any] = {"version": None, "token": there.token()}
            odd = await here.ask("GET", "/compute/v2.1/images?name=in:", **how)
            said = odd.json["badRequest"]["message"]
            assert odd.status == 400 and "marker" not in said
            assert said.startswith("The image service takes no such filter: "), said

    with running_server(tmp_path) as there:
        asyncio.run(story(there))


def test_a_fetched_image_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, list[str]]] = []
    real = os.fsync

    def fsync(fd: int) -> None:
        path = Path(f"/proc/self/fd/{fd}").readlink()
        if "image-cache" in path.parts:
            folder = path if path.is_dir() else path.parent
            seen.append((path.suffix, [file.suffix for file in folder.iterdir()]))
        real(fd)

    async def story(there: Server, image: str) -> None:
        async with running(tmp_path / "here", work=True, **_options(there)) as here:
            images = here.program.app._services["compute"].images
            monkeypatch.setattr(os, "fsync", fsync)
            path = await _until(lambda: images.local(image))
            assert seen == [(".part", [".part"]), ("", [path.suffix])]

    with running_server(tmp_path) as there:
        asyncio.run(story(there, _image(there, b"disk")))


def test_a_snapshot_is_sent_again_when_our_token_ends_or_the_service_there_falters(
    tmp_path: Path,
) -> None:
    """Its data took minutes to copy; it is not given up for what is over in a moment."""

    async def story(there: Server) -> None:
        async with running(tmp_path / "here", work=True, **_options(there)) as here:
            images = here.program.app._services["compute"].images
            source = tmp_path / "disk"
            source.write_bytes(b"disk" * 1000)
            ended: list[str] = []

            async def end_token(request: httpx.Request) -> None:
                if request.method == "PUT" and not ended:
                    ended.append(request.method)
                    await _end(there, images)

            async def falter(answer: httpx.Response) -> None:
                if answer.request.method not in ("GET", *ended):
                    ended.append(answer.request.method)
                    answer.status_code = 503

            images._http.event_hooks = {"request": [end_token]}
            snap = await images.make("snap", {}, token=None, project=None)
            assert await _until(lambda: images.store(snap, source, "raw")) == Done()
            assert ended == ["PUT"]

            ended[:] = ["POST"]
            images._http.event_hooks = {"response": [falter]}
            snap = await images.make("snap", {}, token=None, project=None)
            assert await _until(lambda: images.store(snap, source, "raw")) == Done()
            assert ended == ["POST", "PATCH", "PUT"]
            shown = await images.show(snap, token=None, project=None)
            assert (shown.status, shown.size) == ("active", 4000)

    with running_server(tmp_path) as there:
        asyncio.run(story(there))


@pytest.mark.parametrize("how", ["remove", "discard"])
def test_an_image_is_not_taken_for_gone_as_the_service_there_falters(
    tmp_path: Path, how: str
) -> None:
    """Whoever removes what nobody needs any more asks again then."""
    image, answers = "9a3d7c2e-0f5b-4c1d-8e6a-1b2c3d4e5f60", [503, 204]

    async def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "DELETE":
            return httpx.Response(answers.pop(0))
        return httpx.Response(200, json={"id": image, "status": "queued"})

    async def story() -> None:
        images = GlanceImages("http://glance", _Tokens(), ImageCache(tmp_path))  # type: ignore[arg-type]
        images._http = httpx.AsyncClient(transport=httpx.MockTransport(answer))
        with pytest.raises(Unavailable):
            await getattr(images, how)(image)
        await getattr(images, how)(image)
        assert answers == []

    asyncio.run(story())


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, Invalid), (403, Forbidden), (413, Forbidden), (503, Unavailable)],
)
def test_who_may_have_no_more_images_there_is_not_told_to_try_again(
    tmp_path: Path, status: int, kind: type[SideriteError]
) -> None:
    async def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(status, text="<h1>Sorry</h1> image_count_total is over.<br />")

    async def story() -> None:
        images = GlanceImages("http://glance", _Tokens(), tmp_path)  # type: ignore[arg-type]
        images._http = httpx.AsyncClient(transport=httpx.MockTransport(answer))
        with pytest.raises(kind) as refused:
            await images.make("snap", {}, token="t", project="p")
        assert ("image_count_total is over. Change" in refused.value.sentence) == (status != 503)

    asyncio.run(story())


def test_a_snapshot_leaves_out_what_the_service_there_noted_of_its_servers_image(
    tmp_path: Path,
) -> None:
    async def story(there: Server) -> None:
        async with running(tmp_path / "here", work=True, **_options(there)) as here:
            images = here.program.app._services["compute"].images
            noted = {"os_glance_failed_import": "", "colour": "blue"}
            snap = await images.make("snap", noted, token=None, project=None)
            shown = await images.show(snap, token=None, project=None)
            assert shown.properties == {"colour": "blue"}

    with running_server(tmp_path) as there:
        asyncio.run(story(there))


def test_a_disk_here_that_fails_is_not_said_to_be_the_image_service(tmp_path: Path) -> None:
    async def story(there: Server, image: str) -> None:
        async with running(tmp_path / "here", work=True, **_options(there)) as here:
            images = here.program.app._services["compute"].images
            images._cache.folder.rename(tmp_path / "away")
            outcome = await images.local(image)
            assert isinstance(outcome, Wait) and "on its way" not in outcome.reason
            assert "No such file" in outcome.reason and "data directory" in outcome.reason
            assert "does not answer" not in outcome.reason
            (tmp_path / "away").rename(images._cache.folder)
            path = await _until(lambda: images.local(image))
            assert path.read_bytes() == b"disk"

    with running_server(tmp_path) as there:
        asyncio.run(story(there, _image(there, b"disk")))


def test_a_start_removes_what_was_left_and_not_what_another_process_is_fetching(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(there: Server, image: str) -> None:
        async with running(tmp_path / "here", work=True, **_options(there)) as here:
            images = here.program.app._services["compute"].images
            left = images._cache.folder / "left.0123abcd.part"
            left.write_bytes(b"half")
            started: list[list[str]] = []
            real = images._http.stream

            def stream(*args: Any, **how: Any) -> Any:
                return _Watched(real(*args, **how), another_start)

            def another_start() -> None:
                ImageCache(images._cache.folder)
                started.append([file.suffix for file in images._cache.folder.iterdir()])

            def syncing(part: Path, path: Path) -> None:
                another_start()
                keep(part, path)

            images._http.stream = stream
            keep = image_cache._keep
            monkeypatch.setattr(image_cache, "_keep", syncing)
            async with asyncio.timeout(30):
                path = await _until(lambda: images.local(image))
            assert (started, path.read_bytes()) == ([[".part"], [".part"]], b"disk")
            assert not left.exists()

    with running_server(tmp_path) as there:
        asyncio.run(story(there, _image(there, b"disk")))


class _Watched:
    """An answer during which something happens."""

    def __init__(self, answer: Any, happens: Any) -> None:
        self._answer = answer
        self._happens = happens

    async def __aenter__(self) -> "_Watched":
        self._found = await self._answer.__aenter__()
        return self

    async def __aexit__(self, *why: Any) -> None:
        await self._answer.__aexit__(*why)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._found, name)

    async def aiter_bytes(self, size: int) -> AsyncIterator[bytes]:
        async for data in self._found.aiter_bytes(size):
            self._happens()
            yield data


def test_hosts_that_ask_for_an_image_at_the_same_moment_all_get_it(tmp_path: Path) -> None:
    async def story(there: Server, image: str) -> None:
        async with running(tmp_path / "here", work=True, **_options(there)) as here:
            images = here.program.app._services["compute"].images
            every = [_until(lambda: images.local(image)) for _ in range(4)]
            assert [path.read_bytes() for path in await asyncio.gather(*every)] == [b"disk"] * 4

    with running_server(tmp_path) as there:
        asyncio.run(story(there, _image(there, b"disk")))


def test_what_no_host_asked_for_in_a_while_leaves_the_cache(tmp_path: Path) -> None:
    async def story(there: Server, first: str, second: str) -> None:
        options = _options(there) | {"image_cache_keep_s": 3600}
        async with running(tmp_path / "here", work=True, **options) as here:
            images = here.program.app._services["compute"].images
            old, used = [await _until(lambda one=one: images.local(one)) for one in (first, second)]
            now = old.stat().st_mtime
            for path in (old, used):
                os.utime(path, (now - 4000, now - 4000))
            assert await images.local(second) == used
            assert images._cache.prune(now) == 1
            assert list(old.parent.iterdir()) == [used]
            assert (await _until(lambda: images.local(first))).read_bytes() == b"one"

    with running_server(tmp_path) as there:
        asyncio.run(story(there, _image(there, b"one"), _image(there, b"two")))


def test_what_came_of_a_transfer_that_nobody_waits_for_any_more_is_not_told_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when its server is deleted meanwhile, and the image has left the cache since."""
    image, data = "9a3d7c2e-0f5b-4c1d-8e6a-1b2c3d4e5f60", [b"half", b"disk"]
    record = {"id": image, "status": "active", "checksum": hashlib.md5(b"disk").hexdigest()}

    async def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/file"):
            await asyncio.sleep(0.02)
            return httpx.Response(200, content=data.pop(0))
        return httpx.Response(200, json=record)

    async def given_up(images: GlanceImages) -> None:
        monkeypatch.setattr(glance_images, "_AGAIN_S", 0.0)
        assert isinstance(await images.local(image), Wait)
        async with asyncio.timeout(10):
            while images._under_way:
                await asyncio.sleep(0.005)
        monkeypatch.setattr(glance_images, "_AGAIN_S", 10.0)

    async def story() -> None:
        images = GlanceImages("http://glance", _Tokens(), ImageCache(tmp_path))  # type: ignore[arg-type]
        images._http = httpx.AsyncClient(transport=httpx.MockTransport(answer))
        await given_up(images)  # with another checksum
        path = await images.local(image)
        assert isinstance(path, Path) and path.read_bytes() == b"disk"
        path.unlink()
        data[:] = [b"disk", b"disk"]
        await given_up(images)
        path.unlink()
        assert await images.local(image) == path and path.exists()

    monkeypatch.setattr(glance_images, "_TOLD_S", 0.0)
    asyncio.run(story())
