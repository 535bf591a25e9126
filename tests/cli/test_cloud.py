"""The command's HTTP client: an answer that breaks off is a sentence, whatever was asked."""

import json
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from siderite.cli.main import main
from tests.support.serving import serving


class Breaking(BaseHTTPRequestHandler):
    """Gives tokens, and of all else only the beginning."""

    def do_POST(self) -> None:
        self._answer(201, b'{"token": {}}', 13)

    def do_GET(self) -> None:
        self._answer(200, b'{"hosts": [', 99)

    def _answer(self, status: int, body: bytes, length: int) -> None:
        self.send_response(status)
        self.send_header("X-Subject-Token", "t")
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
