"""The server that other tests start is the real program, and is always gone afterwards."""

import os
from pathlib import Path

import pytest

from tests.support.server import ServerUnavailable
from tests.support.server import running_server


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_server_keeps_its_data_and_address_over_a_kill_and_a_restart(tmp_path: Path) -> None:
    with running_server(tmp_path) as server:
        url, first = server.url, server.pid
        node = {"driver": "fake-hardware", "name": "kept"}
        made = server.api.post("/baremetal/v1/nodes", json=node, headers=server.headers("1.115"))
        assert made.status_code == 201
        server.kill()
        assert not server.running
        assert not _is_alive(first)
        server.start()
        server.restart()
        second = server.pid
        assert (server.url, second == first) == (url, False)
        kept = server.api.get("/baremetal/v1/nodes/kept", headers=server.headers("1.115"))
        assert kept.json()["uuid"] == made.json()["uuid"]
    assert not _is_alive(second)


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    with (
        pytest.raises(ServerUnavailable, match="must be token or none"),
        running_server(tmp_path, options={"baremetal_auth": "maybe"}),
    ):
        pass
