"""`kill -9` in the middle of an upload."""

import threading
import time
from collections.abc import Callable
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.server import Server
from tests.support.server import running_server


def test_an_upload_cut_off_by_kill_leaves_a_queued_image_and_no_file(tmp_path: Path) -> None:
    with running_server(tmp_path) as server:
        record = {"name": "cut", "disk_format": "raw", "container_format": "bare"}
        made = server.api.post("/image/v2/images", json=record, headers=server.headers())
        path = f"/image/v2/images/{made.json()['id']}"
        killed = threading.Event()

        def pieces() -> Iterator[bytes]:
            for _ in range(64):
                yield b"x" * 65536
            _until(lambda: _status(server, path) == "saving")
            server.kill()
            killed.set()
            yield b"y" * 65536

        headers = {**server.headers(), "content-type": "application/octet-stream"}
        with pytest.raises(httpx.TransportError):
            httpx.put(f"{server.url}{path}/file", content=pieces(), headers=headers)
        assert killed.is_set()
        folder = server.data / "images"
        assert len(list(folder.iterdir())) == 1
        server.start()
        _until(lambda: _status(server, path) == "queued" and not list(folder.iterdir()))
        again = server.api.put(f"{path}/file", content=b"whole", headers=headers)
        assert (again.status_code, _status(server, path)) == (204, "active")


def _status(server: Server, path: str) -> str:
    return str(server.api.get(path, headers=server.headers()).json()["status"])


def _until(claim: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not claim():
        assert time.monotonic() < deadline
        time.sleep(0.02)
