"""Commands against a service that answers with a few things at a time."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from siderite.cli import node
from siderite.cli.cloud import Cloud
from siderite.cli.main import main
from tests.support.server import Server
from tests.support.server import running_server

MANY = 5


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    flags = ("--demo", "--demo-nodes", "0")
    folder = tmp_path_factory.mktemp("short")
    with running_server(folder, flags=flags, options={"max_limit": "2"}) as made:
        yield made


def _new_node(server: Server, **fields: object) -> None:
    server.api.post(
        "/baremetal/v1/nodes", json=fields, headers=server.headers("1.50")
    ).raise_for_status()


def test_a_rack_is_known_though_many_others_come_first(server: Server) -> None:
    for number in range(MANY):
        _new_node(server, driver="fake-hardware", driver_info={"rack": f"r{number}"})
    assert main(["demo", "power-cut", f"r{MANY - 1}", "--data", str(server.data)]) == 0
    assert main(["demo", "power-cut", f"r{MANY}", "--data", str(server.data)]) == 3


class Hasty(Cloud):
    """While pages are read, somebody deletes what the next one would come after."""

    gone: tuple[str, ...] = ()

    def baremetal(self, method: str, path: str, body: Any = None) -> Any:
        before, _, is_next = path.partition("&marker=")
        if is_next and not self.gone:
            first = super().baremetal("GET", before)
            self.gone = tuple(one["uuid"] for one in first["nodes"])
            for uuid in self.gone:
                super().baremetal("DELETE", f"/nodes/{uuid}")
        return super().baremetal(method, path, body)


def test_a_list_goes_on_though_its_last_rows_were_deleted_meanwhile(server: Server) -> None:
    for number in range(MANY):
        _new_node(server, driver="fake-hardware", name=f"row-{number}", resource_class="rows")
    cloud = Hasty(str(server.data))
    found = node.every(cloud, {"resource_class": "rows", "fields": "name,uuid"})
    assert len(cloud.gone) == 2
    assert [one["name"] for one in found] == ["row-2", "row-3", "row-4"]


def test_a_flavor_is_known_by_name_though_many_others_come_first(server: Server) -> None:
    words = ["server", "create", "s", "--image", "tiny", "--data", str(server.data)]
    for flavor in ("m1.tiny", "m1.small", "m1.medium", "m1.large"):
        assert main([*words, "--flavor", flavor]) == 0


def test_doctor_looks_at_every_bmc(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    address = {
        "redfish_address": "http://127.0.0.1:1",
        "redfish_system_id": "/redfish/v1/Systems/1",
    }
    for number in range(MANY):
        _new_node(server, driver="redfish", name=f"bmc-{number}", driver_info=address)
    listen = server.url.removeprefix("http://")
    main(["doctor", "--data", str(server.data), "--listen", listen, "-o", "json"])
    found = {each["what"]: each for each in json.loads(capsys.readouterr().out)}
    assert f"{MANY} cannot be read" in found["BMCs"]["found"]
