"""The command's HTTP client: whom it trusts, and answers that break off."""

import json
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from siderite.cli.main import main
from tests.support.serving import serving


class Breaking(BaseHTTPRequestHandler):
    """Gives tokens, and of all else only the beginning."""

    media_type = "application/json"

    def do_POST(self) -> None:
        self._answer(201, b'{"token": {}}', 13)

    def do_GET(self) -> None:
        self._answer(200, b'{"hosts": [', 99)

    def _answer(self, status: int, body: bytes, length: int) -> None:
        self.send_response(status)
        self.send_header("X-Subject-Token", "t")
        self.send_header("Content-Type", self.media_type)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("words", [("host", "list"), ("node", "list"), ("image", "list")])
def test_an_answer_that_breaks_off_is_said_in_a_sentence(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(Breaking) as url:
        cloud = {"auth": {"auth_url": f"{url}/identity/v3"}}
        (tmp_path / "clouds.yaml").write_text(json.dumps({"clouds": {"x": cloud}}))
        assert main([*words, "--data", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"siderite: cannot reach {url}: ")
    assert said.count("\n") == 1


class Proxy(Breaking):
    """Stands in front of a service that is away, or elsewhere."""

    media_type = "text/html"
    answer = 502, b"<html><head><title>502 Bad Gateway</title></head></html>"

    def do_POST(self) -> None:
        status, body = self.answer
        self._answer(status, body, len(body))


class Full(Proxy):
    """Siderite itself, which has as many connections as it may have."""

    media_type = "text/plain"
    answer = 503, b"This server has as many connections\nas it may have; try again later."


class Astray(Proxy):
    """Siderite itself, asked at an address where it has no identity service."""

    answer = 404, b'{"error": {"code": 404, "message": "There is nothing at /v3/auth/tokens."}}'


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (Proxy, "answers 502 Bad Gateway, and not as Siderite does"),
        (Full, "siderite: This server has as many connections as it may have; try again later."),
        (Astray, "auth_url in clouds.yaml ends with /identity/v3."),
    ],
)
def test_an_answer_that_is_not_the_services_own_says_where_to_look(
    kind: type[Proxy], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(kind) as url:
        cloud = {"auth": {"auth_url": f"{url}/"}}
        (tmp_path / "clouds.yaml").write_text(json.dumps({"clouds": {"x": cloud}}))
        assert main(["node", "list", "--data", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert told in said
    assert "<html>" not in said


class Empty(Breaking):
    """Has no nodes and no pending servers."""

    def do_GET(self) -> None:
        body = b'{"nodes": [], "servers": []}'
        self._answer(200, body, len(body))


@contextmanager
def _behind_tls(folder: Path) -> Iterator[tuple[str, Path]]:
    """A service with a certificate that only its own file vouches for."""
    path = folder / "own.pem"
    words = ["-keyout", path, "-out", path, "-subj", "/CN=siderite", "-nodes", "-days", "1"]
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    name = ["-addext", "subjectAltName=IP:127.0.0.1"]
    made = ["openssl", "req", "-x509", *kind, *name, *words]
    subprocess.run(made, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Empty)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_address[1]}", path
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_ca_of_ones_own_is_named_as_for_other_clients(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with _behind_tls(tmp_path) as (url, certificate):

        def said(*words: str, **more: Any) -> tuple[int, str]:
            cloud = {"auth": {"auth_url": f"{url}/identity/v3"}, **more}
            (tmp_path / "clouds.yaml").write_text(json.dumps({"clouds": {"x": cloud}}))
            return main([*words, "--data", str(tmp_path)]), capsys.readouterr().err

        code, err = said("node", "list")
        assert (code, "name the file of its CA as cacert" in err) == (1, True), err
        for words in (("node", "list"), ("reaper", "--once")):
            assert said(*words, cacert=str(certificate)) == (0, "")
            assert said(*words, verify=False) == (0, "")
        code, err = said("node", "list", cacert=str(tmp_path / "none.pem"))
        assert (code, "No such file" in err) == (1, True), err
