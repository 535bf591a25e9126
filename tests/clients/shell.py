"""The `openstack` command, as tests speak to it."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.server import Server

COMMAND_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that has ended."""

    words: tuple[str, ...]
    code: int
    out: str
    err: str

    def __str__(self) -> str:
        return f"$ openstack {' '.join(self.words)}\n{self.out}{self.err}[exit code {self.code}]"


class Shell:
    """Runs commands of the unmodified client in one long-lived interpreter."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, *words: str) -> Ran:
        """Run a command, whatever comes of it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        watchdog = threading.Timer(COMMAND_TIMEOUT_S, self._process.kill)
        watchdog.start()
        try:
            self._process.stdin.write(json.dumps(words) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        finally:
            watchdog.cancel()
        assert answer, f"openstack {' '.join(words)}: no answer within {COMMAND_TIMEOUT_S:g} s"
        return Ran(words, **json.loads(answer))

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
    """Start the client for this server; end it afterwards."""
    process = subprocess.Popen(
        [sys.executable, Path(__file__).with_name("shell_loop.py")],
        env=server.client_environment(),
        cwd=server.data,  # away from any clouds.yaml of the developer's own
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Shell(process)
    finally:
        process.kill()
        process.communicate()
