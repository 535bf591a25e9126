"""The real program as a process of its own, for tests from outside.

    with running_server(tmp_path) as server:
        reply = server.api.get("/baremetal/v1/nodes", headers=server.headers("1.115"))
        server.kill()        # SIGKILL, as a power failure would
        server.start()       # the same data, the same address

Loopback, a free port, a data folder of the test's own. The process is always ended, by its id, and
the kernel ends it should the tests themselves be killed: start it from a thread that lives on.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.support.ports import free_port

PASSWORD = "an admin's pass phrase"
# Nothing takes this long; a loaded machine may.
START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 60.0
_PAUSE_S = 0.02


class ServerUnavailable(Exception):
    """The program could not be found, or did not get ready; the text has its last words."""


class Server:
    """One installation: its data folder and its address, and the process while it runs."""

    def __init__(
        self, data: Path, *, db: str | None, flags: Sequence[str], options: Mapping[str, str]
    ) -> None:
        self.data = data
        self.password = PASSWORD
        self.log = data.with_name(data.name + ".log")
        self._db = db
        self._flags = tuple(flags)
        self._options = dict(options)
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._token: str | None = None
        self._api: httpx.Client | None = None

    @property
    def url(self) -> str:
        """Where it listens; stays the same over restarts."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        """The process that runs now."""
        if self._process is None:
            raise ServerUnavailable("the server does not run")
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    @property
    def clouds(self) -> Path:
        """The clients' configuration that the program wrote."""
        return self.data / "clouds.yaml"

    @property
    def api(self) -> httpx.Client:
        """A client whose addresses begin with this server's."""
        if self._api is None:
            # Without TLS: reading the authorities that are trusted takes longer than many a test.
            self._api = httpx.Client(base_url=self.url, timeout=30.0, trust_env=False, verify=False)
        return self._api

    # Its life

    def start(self) -> None:
        """Start it and wait until it answers."""
        if self.running:
            raise ServerUnavailable("the server runs already")
        first = not self.data.exists()
        for attempt in range(3):
            self._process = self._spawn()
            if self._ready():
                return
            self.kill()
            if not first or attempt == 2 or not _is_taken(self._port):
                break
            self._port = free_port()  # another process was faster
            self.clouds.unlink(missing_ok=True)
        raise ServerUnavailable(f"siderite did not start; its last words:\n{self.last_words()}")

    def stop(self) -> int:
        """SIGTERM, as an init system does; the exit code."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL: no time for anything."""
        self._end(signal.SIGKILL)

    def change(self, options: Mapping[str, str]) -> None:
        """Other options from the next start on."""
        self._options = dict(options)

    def restart(self) -> None:
        """Stop it cleanly if it runs, and start it again on the same data and address."""
        if self.running:
            self.stop()
        self.start()

    def close(self) -> None:
        """End the process and let go of connections."""
        self._drop_connections()
        if self.running:
            self.stop()

    def last_words(self, lines: int = 20) -> str:
        """The end of its log."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def _spawn(self) -> subprocess.Popen[bytes]:
        listen = ["--listen", f"127.0.0.1:{self._port}"]
        database = ["--db", self._db] if self._db else []
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [*_program(), "up", "--data", self.data, *listen, *database, *self._flags],
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a Ctrl-C at the terminal is ours to pass on
            )

    def _environment(self) -> dict[str, str]:
        """Ours, without what would change a client's or a server's mind, and the options."""
        mine = {"SIDERITE_ADMIN_PASSWORD": self.password}
        for name, value in self._options.items():
            mine[f"SIDERITE_{name.upper()}"] = value.replace("{port}", str(self._port))
        return clean_environment() | mine

    def _ready(self) -> bool:
        deadline = time.monotonic() + START_TIMEOUT_S
        while self.running and time.monotonic() < deadline:
            try:
                # Only our own process writes this data folder, but the port may be another's.
                if self.api.get("/healthz", timeout=5.0).status_code == 200 and self.running:
                    return True
            except httpx.TransportError:
                pass
            time.sleep(_PAUSE_S)
        return False

    def _end(self, sign: signal.Signals) -> int:
        """Send the signal to the process that we started, and wait until it is gone."""
        self._drop_connections()
        process, self._process = self._process, None
        if process is None:
            return 0
        if process.poll() is None:
            process.send_signal(sign)
        try:
            return process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            words = self.last_words()
            raise ServerUnavailable(f"siderite outlived {sign.name}:\n{words}") from None

    def _drop_connections(self) -> None:
        if self._api is not None:
            self._api.close()
            self._api = None

    # Talking to it

    def token(self) -> str:
        """A token of the administrator, scoped to the project `admin`; the same each time."""
        if self._token is None:
            user = {"name": "admin", "domain": {"id": "default"}, "password": self.password}
            scope = {"project": {"name": "admin", "domain": {"id": "default"}}}
            identity = {"methods": ["password"], "password": {"user": user}}
            reply = self.api.post(
                "/identity/v3/auth/tokens", json={"auth": {"identity": identity, "scope": scope}}
            )
            reply.raise_for_status()
            self._token = reply.headers["x-subject-token"]
        return self._token

    def headers(self, version: str | None = None) -> dict[str, str]:
        """What an administrator's request carries, with a bare metal API version if named."""
        known = {"X-Auth-Token": self.token()}
        return known if version is None else known | {"X-OpenStack-Ironic-API-Version": version}

    def script(self, scope: str, **behaviour: Any) -> None:
        """Say how simulated machines behave: `all`, `rack:NAME` or `node:UUID`."""
        address = f"/simulator/v1/scripts/{scope}"
        self.api.put(address, json=behaviour, headers=self.headers()).raise_for_status()

    def unscript(self, scope: str) -> None:
        """The machines behave as they did before."""
        self.api.delete(f"/simulator/v1/scripts/{scope}", headers=self.headers()).raise_for_status()

    def client_environment(self) -> dict[str, str]:
        """The environment in which OpenStack's own clients find this server, and no other."""
        home = {"HOME": str(self.data.parent)}  # for what they cache
        files = {"OS_CLIENT_CONFIG_FILE": str(self.clouds), "OS_CLOUD": "siderite"}
        return clean_environment() | home | files


@contextmanager
def running_server(
    folder: Path,
    *,
    db: str | None = None,
    flags: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
) -> Iterator[Server]:
    """Start a server with its data below `folder` (SQLite unless `db`); end it whatever happens.

    `flags` are more words for the command line, `options` configuration options by their names;
    `{port}` in a value is the server's own.
    """
    server = Server(folder / "siderite-data", db=db, flags=flags, options=options or {})
    try:
        server.start()
        yield server
    finally:
        server.close()


def clean_environment() -> dict[str, str]:
    """This process's environment without options, clouds and proxies."""
    prefixes = ("OS_", "SIDERITE_", "XDG_")
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(prefixes) and not name.lower().endswith("_proxy")
    }


def command(name: str) -> Path:
    """A command that is installed beside the interpreter that runs the tests."""
    path = Path(sys.executable).parent / name
    if not path.exists():
        raise ServerUnavailable(f"{path} is missing; run scripts/install")
    return path


def _program() -> list[Path | str]:
    """The program, to be ended by the kernel should this process die."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise ServerUnavailable("setpriv is missing; install util-linux")
    return [setpriv, "--pdeathsig", "KILL", command("siderite")]


def _is_taken(port: int) -> bool:
    try:
        with socket.create_server(("127.0.0.1", port)):
            return False
    except OSError:
        return True
