"""Text that the terminal, or the service, cannot take."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.support.server import Server
from tests.support.server import running_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(tmp_path_factory.mktemp("text")) as made:
        image = {"name": "雪", "disk_format": "raw", "container_format": "bare"}
        made.api.post("/image/v2/images", json=image, headers=made.headers()).raise_for_status()
        yield made


def _say(server: Server, *words: bytes | str, **environment: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "siderite.cli.main", *words, "--data", server.data]
    return subprocess.run(
        command, env=os.environ | environment, capture_output=True, check=False, timeout=60
    )


def test_an_answer_that_nobody_wants_is_no_trouble(server: Server) -> None:
    command = [sys.executable, "-m", "siderite.cli.main"]
    for words in ("node list", "config show", "events monitor", "events tail --no-follow"):
        done = subprocess.run(
            ["sh", "-c", 'exec "$@" >&-', "sh", *command, *words.split(), "--data", server.data],
            capture_output=True, check=False, timeout=60,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, b""), words


def test_a_name_that_the_terminal_has_no_letters_for_is_still_told(server: Server) -> None:
    done = _say(server, "image", "list", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\u96ea" in done.stdout
    assert "雪" in _say(server, "image", "list", LC_ALL="C").stdout.decode()


@pytest.mark.parametrize(
    "words",
    [
        ("node", "show", b"\xff"),
        ("server", "stop", b"\xff"),
        ("events", "tail", "--no-follow", "--type", b"\xff"),
        ("node", "maintenance", "on", "n", "--reason", b"\xff"),
    ],
)
def test_what_is_no_text_is_said_to_be_that(server: Server, words: tuple[bytes | str, ...]) -> None:
    done = _say(server, *words)
    assert done.returncode == 2
    assert b"is not UTF-8" in done.stderr
    assert done.stderr.count(b"\n") == 1
