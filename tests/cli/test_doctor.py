"""What the doctor says of the service itself: that it runs, does not run here, or is not well; and
where a service says that it is.
"""

import json
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from http.server import HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from siderite import clouds
from siderite.cli.main import main
from siderite.core.config import Config
from tests.support.ports import free_port


class _Ailing(BaseHTTPRequestHandler):
    """What Siderite answers while its database is away."""

    def do_GET(self) -> None:
        self.send_response(503)
        self.send_header("x-openstack-request-id", "req-1")
        self.end_headers()
        error = {"code": "unavailable", "message": "The database is away: see to its server."}
        self.wfile.write(json.dumps({"error": error}).encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


class _Other(_Ailing):
    """Some other program that is not well."""

    def do_GET(self) -> None:
        self.send_error(503)


@contextmanager
def answering(how: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), how) as server:
        thread = Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_an_option_that_the_service_does_not_start_with_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SIDERITE_CONSOLE_PORTS", "9:5")
    assert main(["doctor", "--data", str(tmp_path), "--listen", "127.0.0.1:0", "-o", "json"]) == 1
    [options] = [one for one in json.loads(capsys.readouterr().out) if one["what"] == "options"]
    assert "console_ports = '9:5' must be LOW:HIGH" in options["found"]


def port_found(folder: Path, listen: str, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    main(["doctor", "--data", str(folder), "--listen", listen, "-o", "json"])
    found = {one["what"]: one for one in json.loads(capsys.readouterr().out)}
    return dict(found["port"])


def test_a_service_that_is_not_well_is_not_taken_for_another_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with answering(_Ailing) as listen:
        found = port_found(tmp_path, listen, capsys)
    assert (found["state"], found["remedy"]) == (
        "wrong", "The database is away: see to its server.",
    )  # fmt: skip
    assert found["found"] == f"Siderite answers at http://{listen}, and is not well"


def test_a_service_on_this_machine_is_not_asked_by_way_of_a_proxy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
    with answering(_Ailing) as listen:
        assert port_found(tmp_path, listen, capsys)["found"].startswith("Siderite answers")


def test_another_program_that_is_not_well_is_not_taken_for_the_service(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with answering(_Other) as listen:
        found = port_found(tmp_path, listen, capsys)
    assert found["remedy"].startswith("another program has it")


def test_where_nothing_listens_it_is_said_that_this_machine_was_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listen = f"127.0.0.1:{free_port()}"
    found = port_found(tmp_path, listen, capsys)
    assert found["found"] == f"{listen} is free: the service does not run here"
    assert "on another machine, ask the doctor there" in found["remedy"]


def test_an_ipv6_address_that_is_free_is_not_taken_for_another_programs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listen = f"[::1]:{free_port()}"
    found = port_found(tmp_path, listen, capsys)
    assert found["found"] == f"{listen} is free: the service does not run here"


def test_a_program_that_does_not_speak_http_is_another_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def greet(server: socket.socket) -> None:
        client, _ = server.accept()
        with client:
            client.recv(4096)
            client.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = Thread(target=greet, args=(server,), daemon=True)
        thread.start()
        found = port_found(tmp_path, f"127.0.0.1:{server.getsockname()[1]}", capsys)
        thread.join()
    assert found["remedy"].startswith("another program has it")


def test_where_any_port_would_do_it_is_looked_where_the_service_said_that_it_listens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with answering(_Ailing) as listen:
        clouds.write(Config(data=str(tmp_path), listen=listen), "secret")
        found = port_found(tmp_path, "127.0.0.1:0", capsys)
    assert found["found"] == f"Siderite answers at http://{listen}, and is not well"


def test_a_service_on_any_free_port_says_which_it_is(tmp_path: Path) -> None:
    words = ["up", "--data", str(tmp_path), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(
        [sys.executable, "-m", "siderite.cli.main", *words], stdout=subprocess.PIPE, text=True
    ) as service:
        try:
            assert service.stdout is not None
            said = next(line for line in service.stdout if "is ready at" in line)
            url = said.split(" is ready at ")[1].split(";")[0]
            with urllib.request.urlopen(f"{url}/healthz", timeout=10) as answer:
                assert answer.status == 200
            assert f"{url}/identity/v3" in (tmp_path / "clouds.yaml").read_text()
        finally:
            service.terminate()
            service.communicate(timeout=60)
