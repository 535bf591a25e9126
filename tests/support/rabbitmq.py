"""A private RabbitMQ for tests and benchmarks, from the distribution's package.

Tests reach it through the fixture `rabbitmq` of tests/conftest.py. Nothing is shared with a
RabbitMQ that the machine may already run: own data folder, own ports, and an own `epmd`, which
otherwise is one per machine and outlives its broker. By hand, `python -m tests.support.rabbitmq`
prints a URL and serves until Ctrl-C.
"""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextlib import suppress
from pathlib import Path

import aio_pika

from tests.support.ports import free_port

REMEDY = "install it (as root: apt-get install rabbitmq-server), or run scripts/test, which does"
SERVER = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
PARTS = "/usr/lib/rabbitmq/lib/*/plugins/*"
ACCOUNT = "rabbitmq"  # Debian's package makes this account; a broker should not run as root
TOPICS = {"ironic": "ironic_versioned_notifications", "nova": "versioned_notifications"}
START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 30.0
_CONFIG = """\
listeners.tcp.default = {address}:{port}
default_user = siderite
default_pass = {password}
loopback_users = none
vm_memory_high_watermark.absolute = 512MB
disk_free_limit.absolute = 50MB
log.console = true
log.console.level = warning
log.file = false
"""


class RabbitUnavailable(Exception):
    """RabbitMQ could not be found or started; the text has its last words."""


class Rabbit:
    """One broker: its data folder and its address, and the processes while it runs."""

    def __init__(self, home: Path, address: str) -> None:
        self._home = home
        self._address = address
        self._password = secrets.token_hex(12)
        self._port, self._epmd_port, self._dist_port = free_port(), free_port(), free_port()
        self._epmd: subprocess.Popen[bytes] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        config = home / "rabbitmq.conf"
        config.write_text(_CONFIG.format(address=address, port=self._port, password=self._password))
        (home / "enabled_plugins").write_text("[].\n")
        _lay_out_parts(home / "parts")
        (home / "env.conf").write_text("")
        if os.geteuid() == 0:
            for path in (home, *home.iterdir()):
                shutil.chown(path, ACCOUNT, ACCOUNT)

    def url(self, scheme: str = "amqp") -> str:
        """Its address; stays the same over restarts."""
        return f"{scheme}://siderite:{self._password}@{self._address}:{self._port}/"

    def start(self) -> None:
        """Start it and wait until it speaks AMQP."""
        if self._epmd is None or self._epmd.poll() is not None:
            self._epmd = self._spawn(["/usr/bin/epmd", "-address", "127.0.0.1"])
        self._process = self._spawn([str(SERVER)])
        deadline = time.monotonic() + START_TIMEOUT_S
        while self._process.poll() is None and time.monotonic() < deadline:
            if self._speaks():
                return
            time.sleep(0.05)
        self.kill()
        raise RabbitUnavailable(f"RabbitMQ did not start; its last words:\n{self.last_words()}")

    async def clear(self) -> None:
        """Take away what notifications made."""
        async with await aio_pika.connect(self.url()) as connection:
            channel = await connection.channel()
            for exchange, topic in TOPICS.items():
                await channel.exchange_delete(exchange)
                for priority in ("info", "error"):
                    await channel.queue_delete(f"{topic}.{priority}")

    def kill(self) -> None:
        """SIGKILL: no time for anything."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM, as an init system does."""
        self._end(signal.SIGTERM)

    def close(self) -> None:
        """End the broker and its `epmd`."""
        self.kill()
        if self._epmd is not None:
            self._epmd.kill()
            self._epmd.wait()

    def last_words(self, lines: int = 20) -> str:
        """The end of its log."""
        log = self._home / "log"
        text = log.read_text(errors="replace") if log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def _spawn(self, command: list[str]) -> subprocess.Popen[bytes]:
        with (self._home / "log").open("ab") as log:
            return subprocess.Popen(
                [*_unprivileged(), *command],
                cwd=self._home,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # its helpers are ended with it, as one group
            )

    def _environment(self) -> dict[str, str]:
        home = str(self._home)
        return {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": home,
            "LANG": "C.UTF-8",
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(self._epmd_port),
            "RABBITMQ_CONF_ENV_FILE": f"{home}/env.conf",
            "RABBITMQ_CONFIG_FILE": f"{home}/rabbitmq.conf",
            "RABBITMQ_DIST_PORT": str(self._dist_port),
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{home}/enabled_plugins",
            "RABBITMQ_LOG_BASE": f"{home}/logs",
            "RABBITMQ_MNESIA_BASE": f"{home}/data",
            "RABBITMQ_PLUGINS_DIR": f"{home}/parts",
            "RABBITMQ_NODENAME": f"t{self._port}@localhost",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": (
                "-start_epmd false +S 2:2 +sbwt none -kernel inet_dist_use_interface {127,0,0,1}"
            ),
        }

    def _speaks(self) -> bool:
        try:
            with socket.create_connection((self._address, self._port), timeout=2.0) as client:
                client.sendall(b"AMQP\x00\x00\x09\x01")
                return client.recv(1) == b"\x01"
        except OSError:
            return False

    def _end(self, sign: signal.Signals) -> None:
        """Signal the group that we started, and wait until its leader is gone."""
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, sign)  # its leader may be gone already, and the broker not
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def running_rabbitmq(address: str = "127.0.0.1") -> Iterator[Rabbit]:
    """Start a broker in a scratch folder; end it and remove the folder whatever happens."""
    if not SERVER.exists():
        raise RabbitUnavailable(f"RabbitMQ is not installed; {REMEDY}")
    home = Path(tempfile.mkdtemp(prefix="siderite-mq-"))
    rabbit = Rabbit(home, address)
    try:
        rabbit.start()
        yield rabbit
    finally:
        rabbit.close()
        shutil.rmtree(home, ignore_errors=True)


def _lay_out_parts(folder: Path) -> None:
    """Its parts without those that can be switched on: it reads them all each time it starts, which
    is a quarter of the work.
    """
    folder.mkdir()
    for part in Path("/").glob(PARTS.lstrip("/")):
        if not part.name.startswith("rabbitmq_") or part.name.startswith("rabbitmq_prelaunch"):
            (folder / part.name).symlink_to(part)


def _unprivileged() -> list[str]:
    """Command prefix: not root, and stopped by the kernel should this process be killed."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise RabbitUnavailable("setpriv is missing; install util-linux")
    prefix = [setpriv, "--pdeathsig", "KILL"]
    if os.geteuid() == 0:
        prefix += ["--reuid", ACCOUNT, "--regid", ACCOUNT, "--init-groups"]
    return prefix


def main() -> None:
    """Serve until Ctrl-C."""
    with running_rabbitmq() as rabbit:
        print(rabbit.url(), flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    main()
