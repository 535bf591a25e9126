"""A service that was down for hours goes on where it stood: nothing is overdue because of that."""

import sqlite3
import time
from contextlib import closing

import pytest

from tests.support.server import running_server

HOURS_S = 36000.0
PATIENCE_S = 60.0


@pytest.mark.sampled
@pytest.mark.parametrize("ramdisk", [False, True])
def test_a_deploy_is_done_however_long_the_service_was_down(tmp_path, ramdisk):
    with running_server(tmp_path) as server:
        server.script("all", latency_s={"*": 1.0}, ramdisk=ramdisk)
        new = server.headers("1.900")
        node = ask(server, "POST", "nodes", {"driver": "fake-hardware"}, server.headers("1.10"))
        path = f"nodes/{node['uuid']}"
        ask(server, "PUT", f"{path}/states/provision", {"target": "active"}, new)
        until(server, path, lambda shown: shown["provision_state"] not in ("available", "active"))
        server.kill()
        with closing(sqlite3.connect(server.data / "siderite.db")) as db, db:
            (count,) = db.execute("SELECT count(*) FROM work WHERE lane = 'provision'").fetchone()
            assert count == 1
            for column in ("due", "deadline", "lease_until"):
                db.execute(f"UPDATE work SET {column} = {column} - {HOURS_S}")
        server.start()
        ends = ("active", "deploy failed")
        shown = until(server, path, lambda shown: shown["provision_state"] in ends)
        assert (shown["provision_state"], shown["last_error"]) == ("active", None)


def ask(server, method, path, body, headers):
    reply = server.api.request(method, f"/baremetal/v1/{path}", json=body, headers=headers)
    assert reply.status_code < 300, reply.text
    return reply.json() if reply.content else None


def until(server, path, reached):
    began = time.monotonic()
    while not reached(shown := ask(server, "GET", path, None, server.headers("1.900"))):
        assert time.monotonic() - began < PATIENCE_S, shown
        time.sleep(0.02)
    return shown
