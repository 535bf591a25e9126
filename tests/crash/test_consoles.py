"""A console is there again after the process that carried it was killed, and says so once."""

import socket
import time
from urllib.parse import urlsplit

from tests.support.server import Server
from tests.support.server import running_server

DEADLINE_S = 30.0


def console(server: Server, node: str) -> str:
    """The URL of a node's console, once there is one."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        address = f"/baremetal/v1/nodes/{node}/states/console"
        now = server.api.get(address, headers=server.headers("1.115")).json()
        if now["console_info"]:
            return str(now["console_info"]["url"])
        assert time.monotonic() < deadline, now
        time.sleep(0.05)


def greeting(url: str) -> str:
    """What a console says to whoever connects."""
    place = urlsplit(url)
    with socket.create_connection((place.hostname, place.port), timeout=DEADLINE_S) as line:
        return line.recv(1000).decode()


def facts(server: Server, node: str) -> list[str]:
    """The console facts of a node, in order."""
    address = f"/events/v1/events?resource={node}"
    found = server.api.get(address, headers=server.headers()).json()["events"]
    names = [fact["event_type"].removeprefix("baremetal.node.") for fact in found]
    return [name for name in names if name.startswith("console")]


def test_consoles_outlive_kill(tmp_path, database_url):
    with running_server(tmp_path, db=database_url) as server:
        nodes = []
        for _ in range(3):
            made = server.api.post(
                "/baremetal/v1/nodes", headers=server.headers("1.115"),
                json={"driver": "fake-hardware"},
            )  # fmt: skip
            nodes.append(made.json()["uuid"])
        for node in nodes:
            address = f"/baremetal/v1/nodes/{node}/states/console"
            body = {"enabled": True}
            server.api.put(address, headers=server.headers("1.115"), json=body).raise_for_status()
        for node in nodes:
            assert node in greeting(console(server, node))
        server.kill()
        server.start()
        for node in nodes:
            deadline = time.monotonic() + DEADLINE_S
            while len(facts(server, node)) < 4:
                assert time.monotonic() < deadline, facts(server, node)
                time.sleep(0.05)
            assert node in greeting(console(server, node))
            told = [f"console_{a}.{s}" for a in ("set", "restore") for s in ("start", "end")]
            assert facts(server, node) == told
