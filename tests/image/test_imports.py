"""Images fetched from addresses: whole or not at all, from where one may, and told of meanwhile."""

import asyncio
import contextlib
import hashlib
import os
from collections.abc import Awaitable
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from siderite.core import leases
from siderite.core.clock import now as wall_clock
from siderite.core.guarded_http import BadRedirect
from siderite.core.guarded_http import followed
from siderite.core.store import Op
from siderite.image import importing
from siderite.image import web_download
from siderite.image.web.forms import MAX_PROPERTIES
from tests.image.mirror import Mirror
from tests.image.mirror import mirroring
from tests.image.world import World
from tests.image.world import world
from tests.support.app import Answer
from tests.support.stories import Tell

Story = Callable[[World, Mirror], Awaitable[None]]
DATA = os.urandom(300_000)


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    """Somewhere to fetch from."""
    with mirroring() as mirror:
        yield mirror


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is waited for that need not be."""
    monkeypatch.setattr(importing, "AGAIN_S", (0.0,))
    monkeypatch.setattr(importing, "WAIT_S", 0.05)
    monkeypatch.setattr(importing, "TELL_S", 0.0)


def run(
    folder: Path, mirror: Mirror, story: Story, db: str = "", allow: str = "127.0.0.1", **more: Any
) -> None:
    """A story with the program at work."""

    async def begin() -> None:
        async with (
            asyncio.timeout(60),
            world(folder, db, work=True, image_import_allow=allow, **more) as here,
        ):
            try:
                await story(here, mirror)
            finally:
                mirror.open.set()

    asyncio.run(begin())


async def fetch(here: World, image: str, uri: Any, token: str | None = None) -> Answer:
    method = {"name": "web-download", "uri": uri}
    return await here.ask("POST", f"/v2/images/{image}/import", {"method": method}, token=token)


async def begun(here: World, uri: str, token: str | None = None) -> str:
    """A new image whose import was begun."""
    image = str((await here.make(token=token))["id"])
    answer = await fetch(here, image, uri, token)
    assert answer.status == 202, answer
    return image


async def until(here: World, image: str, *statuses: str) -> dict[str, Any]:
    """The image when it has come to a status."""
    while True:
        shown = await here.show(image)
        if shown["status"] in statuses:
            return shown
        await asyncio.sleep(0.01)


async def task_of(here: World, image: str) -> dict[str, Any]:
    (task,) = (await here.ask("GET", f"/v2/images/{image}/tasks")).json["tasks"]
    return dict(task)


def test_an_image_is_fetched_and_what_is_under_way_can_be_seen(
    tmp_path: Path, database_url: str, mirror: Mirror
) -> None:
    async def story(here: World, mirror: Mirror) -> None:
        mirror.open.clear()
        image = await begun(here, mirror.at("/disk.img", DATA) + "?signature=secret")
        assert await asyncio.to_thread(mirror.half.wait, 30)
        while not (task := await task_of(here, image))["message"].startswith("Copied"):
            await asyncio.sleep(0.01)
        assert task["status"] == "processing"
        uri = task["input"]["import_req"]["method"]["uri"]
        assert uri == f"http://127.0.0.1:{mirror.port}/disk.img?***"
        shown = await here.show(image)
        assert (shown["status"], shown["size"], shown["checksum"]) == ("importing", None, None)
        assert (await here.ask("GET", f"/v2/images/{image}/file")).status == 204
        assert (await here.upload(image, b"other")).status == 409
        assert (await fetch(here, image, uri)).status == 409
        mirror.open.set()
        shown = await until(here, image, "active", "queued")
        assert (shown["status"], shown["size"]) == ("active", len(DATA))
        assert shown["checksum"] == hashlib.md5(DATA).hexdigest()
        assert shown["os_hash_value"] == hashlib.sha512(DATA).hexdigest()
        assert (await here.ask("GET", f"/v2/images/{image}/file")).body == DATA
        task = await task_of(here, image)
        assert task["status"] == "success" and task["result"] == {"image_id": image}
        assert (await here.ask("GET", f"/v2/tasks/{task['id']}")).json == task
        schema = (await here.ask("GET", task["schema"])).json
        assert set(task) == set(schema["properties"])
        assert mirror.asked == ["/disk.img?signature=secret"]
        assert len(here.files()) == 1
        assert (await here.ask("DELETE", f"/v2/images/{image}")).status == 204
        assert (await here.ask("GET", f"/v2/tasks/{task['id']}")).status == 404

    run(tmp_path, mirror, story, database_url)


def test_what_an_import_says_takes_no_place_of_the_owners_properties(
    tmp_path: Path, mirror: Mirror
) -> None:
    async def story(here: World, mirror: Mirror) -> None:
        full = {f"p{n}": "x" for n in range(MAX_PROPERTIES)}
        image = (await here.make(**full))["id"]
        assert (await fetch(here, image, mirror.at("/disk.img", DATA) + ".gone")).status == 202
        assert "404" in (await until(here, image, "queued", "active"))["import_error"]
        renamed = await here.patch(image, {"op": "replace", "path": "/name", "value": "n"})
        assert renamed.status == 200, renamed
        more = await here.patch(image, {"op": "add", "path": "/more", "value": "x"})
        assert more.status == 400, more

    run(tmp_path, mirror, story)


def test_what_cannot_be_had_leaves_a_queued_image_that_says_why(
    tmp_path: Path, mirror: Mirror
) -> None:
    async def story(here: World, mirror: Mirror) -> None:
        uri = mirror.at("/disk.img", DATA)
        image = await begun(here, uri + ".gone")
        shown = await until(here, image, "queued", "active")
        assert shown["import_error"] == "The server answered 404 in place of 200."
        task = await task_of(here, image)
        assert (task["status"], task["message"]) == ("failure", shown["import_error"])
        mirror.answers = [0, 503, 429]
        assert (await fetch(here, image, uri)).status == 202
        shown = await until(here, image, "active", "queued")
        assert (shown["status"], "import_error" in shown) == ("active", False)
        assert len(mirror.asked) == 5, "what broke off is tried again"
        mirror.answers = [0] * 4
        image = await begun(here, uri)
        shown = await until(here, image, "queued", "active")
        assert "broke off" in shown["import_error"] and "4 tries" in shown["import_error"]
        assert len(here.files()) == 1, "the good one's"
        assert (await here.upload(image, b"by hand")).status == 204
        assert "import_error" not in await here.show(image)
        backed = b"QFI\xfb\x00\x00\x00\x03" + b"\x00\x00\x00\x00\x00\x00\x02\x00" + bytes(500)
        image = await begun(here, mirror.at("/backed.qcow2", backed))
        assert "backing file" in (await until(here, image, "queued", "active"))["import_error"]

    run(tmp_path, mirror, story)


def test_redirects_lead_only_where_one_may_go(tmp_path: Path, mirror: Mirror) -> None:
    async def story(here: World, mirror: Mirror) -> None:
        uri = mirror.at("/disk.img", DATA)
        start = mirror.at("/start", b"").removesuffix("/start")
        for path, to, word in (
            ("/relative", "/disk.img", None),
            ("/absolute", uri, None),
            ("/metadata", "http://169.254.169.254/latest/", "a metadata service"),
            ("/neighbour", f"http://127.0.0.2:{mirror.port}/disk.img", "a loopback address"),
            ("/denied", "http://192.0.2.7/", "denied"),
            ("/file", "file:///etc/passwd", "no plain http"),
            ("/password", "http://a:b@127.0.0.1/", "no plain http"),
            ("/round", "/round", "more than 5 times"),
        ):
            mirror.redirects[path] = to
            shown = await until(here, await begun(here, start + path), "active", "queued")
            assert shown["status"] == ("active" if word is None else "queued"), shown
            assert word is None or word in shown["import_error"]
        with pytest.raises(BadRedirect, match="https to http"):
            followed(httpx.URL("https://a.example/x"), "http://a.example/x")

    run(tmp_path, mirror, story, image_import_deny="192.0.2.0/24")


def test_a_server_that_never_ends_its_headers_is_not_listened_to_for_long(
    tmp_path: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each piece comes soon enough, but there is always one more."""
    monkeypatch.setattr(web_download, "ANSWER_S", 0.2)

    drips: list[Any] = []

    async def drip(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        drips.append(asyncio.current_task())
        with contextlib.suppress(ConnectionError):
            writer.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            while not writer.is_closing():
                writer.write(b"a")
                await writer.drain()
                await asyncio.sleep(0.02)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    async def story(here: World, _: Mirror) -> None:
        server = await asyncio.start_server(drip, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        image = await begun(here, f"http://127.0.0.1:{port}/disk.img")
        shown = await until(here, image, "queued")
        assert "does not answer" in shown["import_error"]
        server.close()
        await asyncio.gather(*drips)

    run(tmp_path, mirror, story)


def test_addresses_that_may_not_be_called_are_refused_at_once(
    tmp_path: Path, mirror: Mirror
) -> None:
    async def story(here: World, mirror: Mirror) -> None:
        image = (await here.make())["id"]
        for uri, word in (
            (mirror.at("/disk.img", DATA), "image_import_allow"),
            ("http://169.254.169.254/latest", "metadata"),
            ("http://[::ffff:127.0.0.1]/", "loopback"),
            ("http://[fd00:ec2::254]/latest", "metadata"),
            ("http://[fd00:ec2::254%eth0]/latest", "metadata"),
            ("file:///etc/passwd", "http or https"),
            ("ftp://host/disk.img", "http or https"),
            ("http://user:password@192.0.2.1/", "user or password"),
            ("", "http or https"),
            (None, "http or https"),
            (7, "http or https"),
        ):
            refused = await fetch(here, image, uri)
            assert (refused.status, word in refused.sentence) == (400, True), refused
        _, token, _ = await here.app.person("member")
        assert (await fetch(here, image, "http://192.0.2.1/", token)).status == 404
        assert (await here.ask("GET", f"/v2/images/{image}/tasks")).json == {"tasks": []}
        for body in ({}, [], {"method": []}, {"method": {"name": "copy-image"}}, {"method": {}}):
            assert (await here.ask("POST", f"/v2/images/{image}/import", body)).status == 400
        bare = (await here.ask("POST", "/v2/images", {"name": "bare"})).json["id"]
        assert "disk_format" in (await fetch(here, bare, "http://192.0.2.1/")).sentence
        assert ((await here.show(image))["status"], mirror.asked) == ("queued", [])

    run(tmp_path, mirror, story, allow="")


def test_limits_hold_whether_a_server_says_how_much_it_sends_or_not(
    tmp_path: Path, mirror: Mirror
) -> None:
    async def story(here: World, mirror: Mirror) -> None:
        _, token, _ = await here.app.person("member")
        full = (await here.make(token=token))["id"]
        await here.upload(full, b"x", token=token)
        sql = "UPDATE images SET size = ? WHERE uuid = ? RETURNING 1"
        await here.app.program.store.write(sql, (2**30 - 1000, full))
        uri = mirror.at("/disk.img", DATA)
        image = await begun(here, uri, token)
        shown = await until(here, image, "queued", "active")
        assert "quota_image_gib" in shown["import_error"]
        image = await begun(here, mirror.at("/small.img", b"small"), token)
        assert (await until(here, image, "queued", "active"))["status"] == "active"
        await here.app.program.store.write(sql, (2**30, full))
        late = (await here.make(token=token))["id"]
        assert (await fetch(here, late, uri, token)).status == 413
        transfer = here.app.program.app._services["image"].transfer
        transfer.files._max_bytes = 4
        image = await begun(here, uri)
        assert "image_max_gib" in (await until(here, image, "queued"))["import_error"]
        assert len(here.files()) == 2

    run(tmp_path, mirror, story, quota_image_gib=1)


def test_an_image_deleted_while_it_is_fetched_stays_deleted(tmp_path: Path, mirror: Mirror) -> None:
    async def story(here: World, mirror: Mirror) -> None:
        mirror.open.clear()
        image = await begun(here, mirror.at("/disk.img", DATA))
        assert await asyncio.to_thread(mirror.half.wait, 30)
        assert (await here.ask("DELETE", f"/v2/images/{image}")).status == 204
        mirror.open.set()
        store = here.app.program.store
        while here.files() or (await store.fetch("SELECT count(*) FROM work"))[0][0]:
            await asyncio.sleep(0.01)
        assert (await here.ask("GET", f"/v2/images/{image}")).status == 404

    run(tmp_path, mirror, story)


def test_who_lost_the_lease_cannot_finish_the_import(
    tmp_path: Path, postgres_url: str, mirror: Mirror
) -> None:
    async def story(here: World, mirror: Mirror) -> None:
        mirror.open.clear()
        image = await begun(here, mirror.at("/disk.img", DATA))
        assert await asyncio.to_thread(mirror.half.wait, 30)
        sql = "UPDATE work SET fence = fence + 1 WHERE machine = ? RETURNING 1"
        assert await here.app.program.store.write(sql, (image,))
        mirror.open.set()
        assert (await until(here, image, "active", "queued"))["status"] == "active"
        assert mirror.asked == ["/disk.img"] * 2
        while len(here.files()) > 1:
            await asyncio.sleep(0.01)
        assert (await here.ask("GET", f"/v2/images/{image}/file")).body == DATA

    run(tmp_path, mirror, story, postgres_url)


def test_an_import_that_is_cut_off_at_its_end_is_whole_or_has_not_been(
    tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the service stops: what was handed to the database may become true afterwards."""

    async def story(here: World) -> None:
        image = str((await here.make())["id"])
        assert (await fetch(here, image, "https://192.0.2.1/disk.img")).status == 202
        service, store = here.app.program.app._services["image"], here.app.program.store
        (held,), _ = await leases.claim(store, "me", now=wall_clock(), lease_s=60.0, limit=1)
        job = msgspec.json.decode(held.job, type=importing.imports.Job)
        real, handed_in = store.commit, asyncio.Event()
        late: list[asyncio.Task[None]] = []

        async def commit(ops: Sequence[Op]) -> None:
            if any("active" in op.args for op in ops):
                handed_in.set()
                late.append(asyncio.create_task(_after(0.3, lambda: real(ops))))
                await asyncio.shield(late[0])
            else:
                await real(ops)

        async def bring() -> None:
            async with service.transfer.writing(image) as writer:
                await asyncio.to_thread(writer.write, DATA)
                await importing.imports.complete(service.ctx, held, job, writer.complete())

        monkeypatch.setattr(store, "commit", commit)
        bringing = asyncio.create_task(bring())
        async with asyncio.timeout(30):
            await handed_in.wait()
        bringing.cancel()
        await asyncio.gather(bringing, *late, return_exceptions=True)
        status = (await here.show(image))["status"]
        assert (status, len(here.files())) in (("active", 1), ("importing", 0))

    tell(story)


async def _after(seconds: float, begin: Callable[[], Awaitable[None]]) -> None:
    await asyncio.sleep(seconds)
    await begin()


def test_many_imports_take_turns(
    tmp_path: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "OF_ONE_PROJECT", 1)
    monkeypatch.setattr(importing.imports, "MOST", 3)

    async def story(here: World, mirror: Mirror) -> None:
        mirror.open.clear()
        uri = mirror.at("/disk.img", DATA)
        images = [await begun(here, uri) for _ in range(3)]
        refused = await fetch(here, (await here.make())["id"], uri)
        assert (refused.status, "retry-after" in refused.headers) == (409, True)
        while "Other imports" not in (await task_of(here, images[2]))["message"]:
            await asyncio.sleep(0.01)
        assert len(mirror.asked) <= 1
        mirror.open.set()
        for image in images:
            assert (await until(here, image, "active", "queued"))["status"] == "active"

    run(tmp_path, mirror, story)


def test_an_import_that_takes_too_long_is_given_up(
    tmp_path: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing.imports, "WITHIN_S", 0.3)

    async def story(here: World, mirror: Mirror) -> None:
        mirror.open.clear()
        image = await begun(here, mirror.at("/disk.img", DATA))
        assert "hours" in (await until(here, image, "queued"))["import_error"]
        assert here.files() == []

    run(tmp_path, mirror, story)
