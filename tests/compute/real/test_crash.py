"""The program is killed while real guests are made and removed: none is lost, none is left over."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.lab import LabHost
from tests.lab import Mode
from tests.lab import tiny_disk
from tests.support.server import Server
from tests.support.server import running_server

PATIENCE_S = 120.0
SERVERS = 4


def _ask(server: Server, method: str, path: str, body: Any = None) -> Any:
    headers = {**server.headers(), "OpenStack-API-Version": "compute 2.900"}
    reply = server.api.request(method, f"/compute/v2.1{path}", json=body, headers=headers)
    assert reply.is_success, reply.text
    return reply.json() if reply.content else None


def _image(server: Server, file: Path) -> str:
    fields = {"name": "tiny", "disk_format": "raw", "container_format": "bare"}
    made = server.api.post("/image/v2/images", json=fields, headers=server.headers())
    image = str(made.json()["id"])
    octets = {**server.headers(), "content-type": "application/octet-stream"}
    data = file.read_bytes()
    put = server.api.put(f"/image/v2/images/{image}/file", content=data, headers=octets)
    assert put.status_code == 204, put.text
    return image


def _statuses(server: Server) -> list[str]:
    return [one["status"] for one in _ask(server, "GET", "/servers/detail")["servers"]]


def _wait(look: Callable[[], Any], wanted: Any) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while (seen := look()) != wanted:
        assert time.monotonic() < deadline, seen
        time.sleep(0.1)


def test_a_kill_in_the_middle_loses_and_repeats_nothing(lab: LabHost, tmp_path: Path) -> None:
    before = {domain.UUIDString() for domain in lab.connection().listAllDomains()}

    def domains() -> set[str]:
        return {d.UUIDString() for d in lab.connection().listAllDomains()} - before

    with running_server(tmp_path) as server:
        host = {"host": {"name": "lab", "uri": lab.uri}}
        assert _ask(server, "POST", "/hosts", host)["host"]["problem"] is None
        image = _image(server, tiny_disk(tmp_path / "tiny", Mode.GRACEFUL))
        flavor = {"flavor": {"name": "small", "ram": 16, "vcpus": 1, "disk": 1}}
        flavor_id = _ask(server, "POST", "/flavors", flavor)["flavor"]["id"]
        wish = {"name": "s", "flavorRef": flavor_id, "imageRef": image, "networks": "none"}
        made = [
            str(_ask(server, "POST", "/servers", {"server": wish})["server"]["id"])
            for _ in range(SERVERS)
        ]
        for pause_s in (0.2, 0.5):
            time.sleep(pause_s)
            server.kill()
            server.start()
        _wait(lambda: _statuses(server), ["ACTIVE"] * SERVERS)
        assert domains() == set(made)
        for one in made:
            _ask(server, "DELETE", f"/servers/{one}")
        server.kill()
        server.start()
        _wait(lambda: _statuses(server), [])
        _wait(domains, set())
        pool = lab.folder / "lib" / "siderite"
        assert [path.name for one in made for path in pool.glob(f"{one}*")] == []
