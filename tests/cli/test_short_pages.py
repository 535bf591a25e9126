"""Commands against a service that answers with a few things at a time."""

import json
from collections.abc import Iterator

import pytest

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
    assert f"{MANY} do not answer" in found["BMCs"]["found"]
