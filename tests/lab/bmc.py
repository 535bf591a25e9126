"""BMCs in front of the lab's guests: Redfish by sushy-emulator, IPMI by virtualbmc.

    with redfish_bmcs(host) as bmcs:                  # one service for all domains of a host
        node = make_node(driver="redfish", driver_info=bmcs.driver_info(guest.uuid))

They listen on loopback, on free ports, and end with the test.
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import bcrypt
import httpx

from tests.lab.cache import LabUnavailable
from tests.lab.guest import Guest
from tests.lab.guest import wait_until
from tests.lab.host import LabHost
from tests.support.ports import free_port
from tests.support.serving import serving

START_TIMEOUT_S = 60.0
USERNAME = "operator"
PASSWORD = "correct horse"  # of the emulators only
# One BMC without the daemon around it, which only remembers BMCs and takes orders about them.
_VBMC = """
from virtualbmc.vbmc import VirtualBMC
VirtualBMC({username!r}, {password!r}, {port}, "127.0.0.1", {name!r}, {uri!r}).listen(timeout=1)
"""
_POOL = """
<pool type='dir'><name>bmc</name><target><path>{path}</path></target></pool>
"""


@dataclass(slots=True)
class RedfishBmcs:
    """A Redfish service in front of all domains of one libvirt."""

    port: int
    folder: Path
    uri: str
    _process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def driver_info(self, uuid: str, **more: str) -> dict[str, str]:
        """How a node reaches its system."""
        return {
            "redfish_address": self.url,
            "redfish_system_id": f"/redfish/v1/Systems/{uuid}",
            "redfish_username": USERNAME,
            "redfish_password": PASSWORD,
            **more,
        }

    def start(self) -> None:
        """Let it answer."""
        accounts = self.folder / "htpasswd"
        hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
        accounts.write_text(f"{USERNAME}:{hashed}\n")
        config = self.folder / "emulator.conf"
        config.write_text(
            f"SUSHY_EMULATOR_LIBVIRT_URI = {self.uri!r}\n"
            f"SUSHY_EMULATOR_STATE_DIR = {str(self.folder)!r}\n"
            "SUSHY_EMULATOR_STORAGE_POOL = 'bmc'\n"
            f"SUSHY_EMULATOR_AUTH_FILE = {str(accounts)!r}\n"
        )
        self._process = spawn(
            ["sushy-emulator", "--config", str(config), "-i", "127.0.0.1", "-p", str(self.port)],
            self.folder / "emulator.log",
        )
        wait_for_port(self._process, self.port, self.folder / "emulator.log")

    def stop(self) -> None:
        """Have every BMC unreachable."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()


@contextmanager
def redfish_bmcs(folder: Path, uri: str) -> Iterator[RedfishBmcs]:
    """A Redfish service in front of whatever libvirt has at this URI."""
    folder.mkdir(parents=True, exist_ok=True)
    bmcs = RedfishBmcs(free_port(), folder, uri)
    try:
        bmcs.start()
        yield bmcs
    finally:
        bmcs.stop()


def with_pool(host: LabHost) -> str:
    """The host's URI, once it has the storage pool that virtual media are copied into."""
    connection = host.connection()
    if "bmc" not in [pool.name() for pool in connection.listAllStoragePools()]:
        path = host.folder / "bmc"
        path.mkdir()
        connection.storagePoolCreateXML(_POOL.format(path=path))
    return host.uri


def spawn(
    command: list[str], log: Path, env: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """A tool from the tests' environment, ended by the kernel should the tests die."""
    tool = Path(sys.executable).parent / command[0]
    if not tool.exists():
        raise LabUnavailable(f"{tool} is missing; run scripts/install test")
    with log.open("ab") as out:
        return subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", tool, *command[1:]],
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def wait_for_port(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Until the service answers there."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            httpx.get(
                f"http://127.0.0.1:{port}/redfish/v1/", timeout=5.0, trust_env=False, verify=False
            )
        except httpx.TransportError:
            time.sleep(0.05)
        else:
            return
    words = log.read_text(errors="replace")[-2000:]
    raise LabUnavailable(f"the BMC emulator did not start; its last words:\n{words}")


@contextmanager
def ipmi_bmc(folder: Path, guest: Guest) -> Iterator[dict[str, str | int]]:
    """virtualbmc in front of a guest; gives the node's `driver_info`."""
    folder.mkdir(parents=True, exist_ok=True)
    port, log = free_port(socket.SOCK_DGRAM), folder / "bmc.log"
    program = _VBMC.format(
        username=USERNAME, password=PASSWORD, port=port, name=guest.name, uri=guest.host.uri
    )
    process = spawn(["python", "-c", program], log)
    info: dict[str, str | int] = {
        "ipmi_address": "127.0.0.1",
        "ipmi_port": port,
        "ipmi_username": USERNAME,
        "ipmi_password": PASSWORD,
        "ipmi_cipher_suite": 3,
    }
    try:
        wait_until(
            lambda: process.poll() is not None or listens(port),
            lambda: f"the BMC did not start:\n{log.read_text(errors='replace')[-2000:]}",
        )
        yield info
    finally:
        process.kill()
        process.wait()


def listens(port: int) -> bool:
    """Whether somebody has this UDP port."""
    return any(f":{port:04X} " in line for line in Path("/proc/net/udp").read_text().splitlines())


@contextmanager
def files_served(folder: Path) -> Iterator[str]:
    """A folder over HTTP, on loopback; gives its address."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with serving(partial(Quiet, directory=str(folder))) as url:
        yield url
