"""The disk under an embedded database is full for a while: a real file system of a few MiB."""

import os
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support import server as support
from tests.support.server import running_server

_MOUNT = 'mount -t tmpfs -o size=6m tmpfs "$0" && exec "$@"'


@pytest.fixture
def small_disk(tmp_path, monkeypatch):
    """The server's data folder is one, in a namespace of its own."""
    namespace = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    data, program = tmp_path / "siderite-data", support._program()
    data.mkdir()
    monkeypatch.setattr(
        support, "_program", lambda: [*namespace, "sh", "-c", _MOUNT, data, *program]
    )
    return data


def fill(path):
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))


def test_a_full_disk_is_seen_by_who_asks_for_health_and_so_is_its_end(tmp_path, small_disk):
    with running_server(tmp_path) as server:
        filler = Path(f"/proc/{server.pid}/root{small_disk}/filler")
        node, headers = {"driver": "fake-hardware"}, server.headers("1.50")

        def made():
            return server.api.post("/baremetal/v1/nodes", json=node, headers=headers).status_code

        def health(path="/healthz"):
            return server.api.get(path)

        assert (made(), health().status_code) == (201, 200)
        fill(filler)
        answers = {made() for _ in range(200)}
        assert answers <= {201, 503}
        assert 503 in answers
        answer = health()
        assert answer.status_code == 503
        assert "disk" in answer.json()["error"]["message"]
        assert answer.headers["retry-after"]
        assert health("/livez").status_code == 200, "to start it anew would mend nothing"
        assert server.api.get("/baremetal/v1/nodes", headers=headers).status_code == 200
        filler.unlink()
        assert health().status_code == 200, "although nobody wrote anything since"
        assert made() == 201
