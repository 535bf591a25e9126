"""`kill -9` in the middle of an upload and of an import."""

import hashlib
import os
import tempfile
import threading
import time
from collections.abc import Callable
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.image.mirror import Mirror
from tests.image.mirror import mirroring
from tests.support.postgres import running_postgres
from tests.support.server import Server
from tests.support.server import running_server

DATA = os.urandom(400_000)


def test_after_a_kill_an_upload_left_nothing_and_an_import_begins_again_and_ends(
    tmp_path: Path,
) -> None:
    _over_a_kill(tmp_path, None)


def _over_a_kill(folder: Path, db: str | None) -> None:
    options = {"image_import_allow": "127.0.0.1"}
    with mirroring() as mirror, running_server(folder, db=db, options=options) as server:
        uploaded, imported = _image(server), _image(server)
        images = server.data / "images"
        mirror.open.clear()
        _import(server, imported, mirror.at("/disk.img", DATA))
        assert mirror.half.wait(30)
        headers = {**server.headers(), "content-type": "application/octet-stream"}
        _upload_until_killed(server, uploaded, headers)
        assert len(list(images.iterdir())) == 2
        mirror.half.clear()
        server.start()
        _until(lambda: _status(server, uploaded) == "queued")
        again = server.api.put(f"{uploaded}/file", content=b"whole", headers=headers)
        assert (again.status_code, _status(server, uploaded)) == (204, "active")
        _ends(server, imported, mirror)
        _until(lambda: len(list(images.iterdir())) == 2)


def _ends(server: Server, path: str, mirror: Mirror) -> None:
    assert mirror.half.wait(30)
    assert _status(server, path) == "importing"
    mirror.open.set()
    _until(lambda: _status(server, path) != "importing")
    shown = server.api.get(path, headers=server.headers()).json()
    assert (shown["status"], shown["checksum"]) == ("active", hashlib.md5(DATA).hexdigest())
    assert server.api.get(f"{path}/file", headers=server.headers()).content == DATA
    assert mirror.asked == ["/disk.img"] * 2


def _image(server: Server) -> str:
    record = {"name": "cut", "disk_format": "raw", "container_format": "bare"}
    made = server.api.post("/image/v2/images", json=record, headers=server.headers())
    return f"/image/v2/images/{made.json()['id']}"


def _import(server: Server, path: str, uri: str) -> None:
    body = {"method": {"name": "web-download", "uri": uri}}
    answer = server.api.post(f"{path}/import", json=body, headers=server.headers())
    assert answer.status_code == 202, answer.text


def _upload_until_killed(server: Server, path: str, headers: dict[str, str]) -> None:
    killed = threading.Event()

    def pieces() -> Iterator[bytes]:
        for _ in range(64):
            yield b"x" * 65536
        _until(lambda: _status(server, path) == "saving")
        server.kill()
        killed.set()
        yield b"y" * 65536

    with pytest.raises(httpx.TransportError):
        httpx.put(f"{server.url}{path}/file", content=pieces(), headers=headers)
    assert killed.is_set()


def _status(server: Server, path: str) -> str:
    return str(server.api.get(path, headers=server.headers()).json()["status"])


def _until(claim: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not claim():
        assert time.monotonic() < deadline
        time.sleep(0.02)


if __name__ == "__main__":  # scripts/soak
    with tempfile.TemporaryDirectory() as place, running_postgres() as postgres:
        _over_a_kill(Path(place), postgres.url())
        print("an import killed on PostgreSQL began again and ended; the upload left nothing")
