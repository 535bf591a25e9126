"""A hypervisor host of the tests' own: a private libvirtd in namespaces of its own.

All its files are in one scratch folder, and one kill ends it with all its guests; the kernel does
that too should the tests themselves be killed. Start it from a thread that lives on.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from contextlib import suppress
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from typing import Any

import libvirt

from tests.lab.cache import LabUnavailable
from tests.lab.doors import Doors
from tests.lab.doors import prepare_doors
from tests.support.ports import take_number
from tests.support.scratch import cache_folder

SMALL = "/var/lib/libvirt/small"
START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 60.0
_PAUSE_S = 0.02
_TOOLS = {
    "libvirtd": "libvirt-daemon-system",
    "virtlogd": "libvirt-daemon-system",
    "qemu-system-x86_64": "qemu-system-x86",
    "qemu-img": "qemu-utils",
    "tini": "tini",
    "setpriv": "util-linux",
    "unshare": "util-linux",
    "ip": "iproute2",
    "sshd": "openssh-server",
    "openssl": "openssl",
}
# QEMU runs as the one user there is: as another it could not open this machine's /dev/kvm, and
# libvirt would probe for it again at every call.
_QEMU_CONF = """\
user = "root"
group = "root"
security_driver = "none"
namespaces = []
cgroup_controllers = []
seccomp_sandbox = 0
remote_display_port_min = {display}
remote_display_port_max = {display_end}
migration_port_min = {migration}
migration_port_max = {migration_end}
migrate_tls_x509_cert_dir = "{keys}"
# Without this libvirt asks a new guest's processor for each of its 400 features, in 47 kB that QEMU
# reads one byte at a time: longer than the guest takes to boot.
capability_filters = ["cpu-unavailable-features"]
"""
_LIBVIRTD_CONF = """\
auth_unix_rw = "none"
host_uuid = "{uuid}"
"""


@dataclass(frozen=True, slots=True)
class LabHost:
    """A running host."""

    name: str
    folder: Path
    pid: int  # killing it ends the host and its guests
    doors: Doors | None = None  # ways in from afar
    _open: list[Any] = field(default_factory=list)

    @property
    def socket(self) -> Path:
        """libvirtd's socket."""
        return self.folder / "run" / "libvirt-sock"

    @property
    def uri(self) -> str:
        """Where libvirt's clients, ours and others', find this host."""
        return f"qemu+unix:///system?socket={self.socket}"

    @property
    def disks(self) -> Path:
        """A folder for disks and serial logs."""
        return self.folder / "disks"

    @property
    def keys(self) -> Path:
        """A folder for the certificates that its guests migrate with; there are none."""
        return self.folder / "keys"

    @property
    def small(self) -> Path:
        """Its disk of 24 MiB, as seen from here; the host has it at `SMALL`."""
        return Path(f"/proc/{_below(self.pid)[0]}/root{SMALL}")

    def fill_small(self, *, but_mib: int = 0) -> Path:
        """Leave so much room on that disk and no more; the file that takes the rest."""
        room, filler = self.small / "room", self.small / "filler"
        room.write_bytes(bytes(but_mib << 20))
        with filler.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(4096))
        room.unlink()
        return filler

    def connection(self) -> Any:
        """A libvirt connection, the same at each call; for the test's own looks and deeds."""
        if not self._open:
            self._open.append(libvirt.open(self.uri))
        return self._open[0]

    def libvirtd(self) -> int:
        """Its process, as soon as there is one."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            for pid in _below(self.pid):
                if _command(pid).startswith(b"libvirtd\0"):
                    return pid
            time.sleep(_PAUSE_S)
        raise LabUnavailable("there is no libvirtd")

    def qemu(self, uuid: str) -> int:
        """The process of a guest, as soon as there is one."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            for pid in _below(self.pid):
                words = _command(pid)
                if words.startswith(b"/usr/bin/qemu-system") and uuid.encode() in words:
                    return pid
        raise LabUnavailable(f"there is no QEMU of {uuid}")

    def kill_libvirtd(self, pid: int | None = None) -> None:
        """As a crash of it: its guests run on, and it stays away until it is started. Whoever has
        looked for its process before is faster.
        """
        (self.folder / "down").touch()
        pid = pid or self.libvirtd()
        os.kill(pid, signal.SIGKILL)
        while _command(pid):  # it is told at once, and gone a moment later
            time.sleep(_PAUSE_S)
        while self._open:
            _close(self._open.pop())

    def start_libvirtd(self) -> None:
        """After such a crash; at once, whether it answers yet or not."""
        (self.folder / "down").unlink()


def _below(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    try:
        found = [int(child) for child in children.read_text().split()]
    except OSError:  # it ended while we looked
        return []
    return found + [below for child in found for below in _below(child)]


def _command(pid: int) -> bytes:
    """What was called, each word with a zero behind it; nothing if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@contextmanager
def lab_host(
    name: str = "lab", *, own_network: bool = False, is_remote: bool = False
) -> Iterator[LabHost]:
    """Start a host; end it with all its guests, and remove its files, whatever happens.

    It shares this machine's loopback, so that VNC and migration ports can be reached, unless
    `own_network`: then it may make bridges, and nobody outside sees them. One that `is_remote` can
    also be reached over ssh and TLS.
    """
    for tool, package in _TOOLS.items():
        if shutil.which(tool) is None:
            raise LabUnavailable(f"{tool} is missing; as root: apt-get install {package}")
    folder = Path(tempfile.mkdtemp(prefix="siderite-lab-"))
    # Libvirt looks for a free port before it starts QEMU: two hosts with one range find the same.
    ports = take_number("ports", 100)
    try:
        _prepare(folder, ports.number)
        doors = prepare_doors(folder) if is_remote else None
        process = _start(folder, name, own_network=own_network)
        host = LabHost(name, folder, process.pid, doors)
        try:
            _wait_until_it_answers(host, process)
            yield host
        finally:
            while host._open:
                _close(host._open.pop())
            _end(process)
    finally:
        ports.lock.close()
        shutil.rmtree(folder, ignore_errors=True)


def _prepare(folder: Path, ports: int) -> None:
    for name in ("run", "etc/qemu", "lib", "log", "disks", "keys"):
        (folder / name).mkdir(parents=True)
    # What libvirt finds out about QEMU takes it two seconds, and holds for all hosts of the lab.
    capabilities = cache_folder() / "libvirt"
    capabilities.mkdir(exist_ok=True)
    (folder / "cache").symlink_to(capabilities)
    display, migration = 10_000 + 100 * ports, 20_000 + 100 * ports
    (folder / "etc" / "qemu.conf").write_text(
        _QEMU_CONF.format(
            display=display,
            display_end=display + 99,
            migration=migration,
            migration_end=migration + 99,
            keys=folder / "keys",
        )
    )
    # Logs of guests are set aside early, so that no test has to print for long.
    (folder / "etc" / "virtlogd.conf").write_text("max_size = 1048576\n")
    # Two hosts of one machine must differ, or libvirt refuses to migrate between them.
    (folder / "etc" / "libvirtd.conf").write_text(_LIBVIRTD_CONF.format(uuid=uuid.uuid4()))


def _start(folder: Path, name: str, *, own_network: bool) -> subprocess.Popen[bytes]:
    script = Path(__file__).with_name("host.sh")
    namespaces = ["--mount", "--pid", "--uts", "--fork", "--kill-child", "--mount-proc"]
    if own_network:
        namespaces.append("--net")
    if os.geteuid() != 0:
        namespaces.append("--map-root-user")
    with (folder / "libvirtd.log").open("wb") as log:
        return subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "unshare", *namespaces, script, folder, name],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a Ctrl-C at the terminal is ours to pass on
        )


def _wait_until_it_answers(host: LabHost, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while process.poll() is None and time.monotonic() < deadline:
        if host.socket.exists():
            try:
                host.connection().getLibVersion()
            except libvirt.libvirtError:
                while host._open:
                    _close(host._open.pop())
            else:
                return
        time.sleep(_PAUSE_S)
    words = (host.folder / "libvirtd.log").read_text(errors="replace")[-2000:]
    raise LabUnavailable(f"libvirtd did not start; its last words:\n{words}")


def _close(connection: Any) -> None:
    with suppress(libvirt.libvirtError):  # the host may be gone already
        connection.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the namespace's first process, and with it all others; wait until none is left."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    inside = [int(pid) for pid in children.read_text().split()] if process.poll() is None else []
    process.kill()
    process.wait()
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while any(Path(f"/proc/{pid}/ns/pid").exists() for pid in inside):
        if time.monotonic() > deadline:
            raise LabUnavailable(f"processes of the lab outlived it: below {inside}")
        time.sleep(_PAUSE_S)


def _quietly(_: object, __: object) -> None:
    """libvirt's C code prints every error to stderr; tests read them as exceptions."""


libvirt.registerErrorHandler(_quietly, None)
