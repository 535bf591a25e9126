"""The `openstack` command, as tests speak to it."""

import json
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.support.server import Server
from tests.support.server import command

COMMAND_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that has ended."""

    words: tuple[str, ...]
    code: int
    out: str
    err: str

    def __str__(self) -> str:
        return f"$ {' '.join(self.words)}\n{self.out}{self.err}[exit code {self.code}]"


@dataclass(frozen=True, slots=True)
class Shell:
    """Runs commands of the unmodified client; threads may share it."""

    address: str
    program: str = "openstack"
    environment: dict[str, str] | None = None

    def run(self, *words: str) -> Ran:
        """Run a command, whatever comes of it."""
        wanted = {"program": self.program, "words": words, "environment": self.environment}
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(COMMAND_TIMEOUT_S)
            connection.connect(self.address)
            connection.sendall(json.dumps(wanted).encode() + b"\n")
            with connection.makefile("rb") as answer:
                text = answer.read()
        assert text, f"{self.program} {' '.join(words)}: the client died"
        return Ran((self.program, *words), **json.loads(text))

    def like(self, **other: Any) -> "Shell":
        """The same with another `program` or `environment`."""
        return replace(self, **other)

    def __call__(self, *words: str) -> str:
        """What a command prints, which must succeed."""
        ran = self.run(*words)
        assert ran.code == 0, str(ran)
        return ran.out

    def json(self, *words: str) -> Any:
        """What a command prints as JSON."""
        return json.loads(self(*words, "-f", "json"))

    def refused(self, *words: str) -> str:
        """What a command complains of, which must fail."""
        ran = self.run(*words)
        assert ran.code != 0, str(ran)
        assert "Traceback" not in ran.err, str(ran)
        return ran.err

    def column(self, name: str, *words: str) -> list[Any]:
        """One column of a list."""
        return [row[name] for row in self.json(*words)]


@contextmanager
def running_shell(server: Server) -> Iterator[Shell]:
    """Load the client for this server; end it afterwards."""
    with tempfile.TemporaryDirectory(prefix="siderite-shell-") as folder:
        address = f"{folder}/socket"  # short: the path of a socket may have 107 characters
        process = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("shell_loop.py"), address],
            env=server.client_environment(),
            cwd=folder,  # away from any clouds.yaml of the developer's own
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "ready\n", "the openstack client does not load"
            yield Shell(address)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def process(
    name: str, *words: str, environment: dict[str, str], typed: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a client as a process of its own, as people do; it takes a second or two."""
    return subprocess.run(
        [command(name), *words],
        env=environment,
        cwd=environment["HOME"],
        input=typed,
        capture_output=True,
        text=True,
        timeout=COMMAND_TIMEOUT_S,
        check=False,
    )
