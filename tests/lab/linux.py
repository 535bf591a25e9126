"""A Linux guest: Debian's cloud kernel and an initramfs of BusyBox, qemu-ga and `guest/init`.

The kernel package is downloaded by apt and unpacked, never installed. All parts are kept in the
cache folder; `python -m tests.lab linux` fills it beforehand.
"""

import gzip
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.lab.cache import LabUnavailable
from tests.lab.cache import alone
from tests.lab.cache import run

PACKAGE = "linux-image-cloud-amd64"
# Without these the kernel calibrates, probes and tests what TCG is slow at.
COMMAND_LINE = (
    "console=ttyS0 quiet no_timer_check nokaslr mitigations=off cryptomgr.notests"
    " rcupdate.rcu_expedited=1"
)
MIN_MEMORY_MIB = 128

_GUEST = Path(__file__).with_name("guest")
_MODULES = (
    "virtio virtio_ring virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci failover"
    " net_failover virtio_net virtio_blk button evdev virtio_console scsi_common scsi_mod"
    " virtio_scsi cdrom sr_mod libata ata_piix isofs"
)
_SHUTDOWN = """#!/bin/busybox sh
echo "GUEST shutdown $*" >/dev/console
case "$*" in *-r*) reboot -f ;; *) poweroff -f ;; esac
"""


@dataclass(frozen=True, slots=True)
class LinuxBoot:
    """What a direct kernel boot needs."""

    kernel: Path
    ramdisk: Path
    """Without qemu-ga: half the time to load and unpack."""
    initramfs: Path

    def command_line(self, role: str) -> str:
        """The kernel's command line for one of the roles in guest/init."""
        return f"{COMMAND_LINE} role={role}"


def linux_boot() -> LinuxBoot:
    """The kernel and the initramfs, made by whoever needs them first."""
    with alone("linux") as cache:
        kernel = _kernel(cache)
        modules = cache / "kernel" / "lib" / "modules"
        mark = _fingerprint(kernel)
        ramdisk, initramfs = (cache / f"{name}-{mark}.gz" for name in ("ramdisk", "initramfs"))
        if not initramfs.exists():
            for old in (*cache.glob("initramfs-*.gz"), *cache.glob("ramdisk-*.gz")):
                old.unlink()
            plain = _packed(lambda root: _add_basics(modules, root))
            _write(ramdisk, plain)
            _write(initramfs, plain + _packed(_add_agent))
        return LinuxBoot(kernel, ramdisk, initramfs)


def _kernel(cache: Path) -> Path:
    """The unpacked kernel; downloaded if there is none."""
    folder = cache / "kernel"
    found = list(folder.glob("boot/vmlinuz-*"))
    if found:
        return found[0]
    with TemporaryDirectory(prefix="kernel-", dir=cache) as scratch:
        at = Path(scratch)
        at.chmod(0o755)  # apt's own user writes here
        run(["apt-get", "download", _kernel_package()], cwd=at)
        package = next(at.glob("*.deb"))
        run(["dpkg", "-x", package, at / "unpacked"])
        shutil.rmtree(folder, ignore_errors=True)
        (at / "unpacked").rename(folder)
    return next(folder.glob("boot/vmlinuz-*"))


def _kernel_package() -> str:
    """The package with the files: the one named above only depends on the newest of them."""
    listing = ["apt-cache", "depends", PACKAGE]
    known = subprocess.run(listing, capture_output=True, text=True, check=False)
    if known.returncode or not known.stdout.strip():
        if os.geteuid() != 0:
            raise LabUnavailable(f"apt does not know {PACKAGE}; as root: apt-get update")
        run(["apt-get", "-qq", "update"])
    match = re.search(r"Depends: (linux-image-\S+)", run(listing))
    if match is None:
        raise LabUnavailable(f"apt knows no kernel behind {PACKAGE}; the lab wants Debian 12")
    return match[1]


def _fingerprint(kernel: Path) -> str:
    """Changes with everything that goes into the initramfs."""
    digest = hashlib.sha256(f"{kernel.name} {_MODULES} {_SHUTDOWN}".encode())
    for part in (*sorted(_GUEST.iterdir()), _agent(), _busybox()):
        digest.update(part.read_bytes())
    return digest.hexdigest()[:16]


def _packed(add: Callable[[Path], None]) -> bytes:
    """An archive of what is added to an empty folder; the kernel unpacks one after another."""
    with TemporaryDirectory(prefix="siderite-initramfs-") as scratch:
        root = Path(scratch)
        add(root)
        names = "\n".join(_below(root)).encode()
        cpio = ["cpio", "-o", "-H", "newc", "--quiet"]
        archive = subprocess.run(cpio, input=names, cwd=root, capture_output=True, check=True)
        return gzip.compress(archive.stdout, 1, mtime=0)


def _write(out: Path, content: bytes) -> None:
    partial = out.with_suffix(".part")
    partial.write_bytes(content)
    partial.rename(out)


def _add_basics(modules: Path, root: Path) -> None:
    for folder in ("bin", "sbin", "mod", "etc", "proc", "sys", "dev", "usr/sbin", "tmp", "run"):
        (root / folder).mkdir(parents=True)
    shutil.copy(_busybox(), root / "bin" / "busybox")
    for name in ("init", "udhcpc.script", "deploy.sh", "agent.sh"):
        shutil.copy(_GUEST / name, root / name)
        (root / name).chmod(0o755)
    _add_modules(modules, root)


def _add_modules(modules: Path, root: Path) -> None:
    files = {path.stem: path for path in modules.rglob("*.ko")}
    missing = [name for name in _MODULES.split() if name not in files]
    if missing:
        raise LabUnavailable(f"the kernel in {modules} has no module {', '.join(missing)}")
    for name in _MODULES.split():
        shutil.copy(files[name], root / "mod")
    (root / "modlist").write_text("".join(f"/mod/{name}.ko\n" for name in _MODULES.split()))


def _add_agent(root: Path) -> None:
    for folder in ("sbin", "usr/sbin"):
        (root / folder).mkdir(parents=True)
    shutil.copy(_agent(), root / "usr" / "sbin" / "qemu-ga")
    shutdown = root / "sbin" / "shutdown"
    shutdown.write_text(_SHUTDOWN)
    shutdown.chmod(0o755)
    for library in re.findall(r"(/\S+)", run(["ldd", _agent()])):
        at = root / library.lstrip("/")
        at.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, at)


def _agent() -> Path:
    return _tool("/usr/sbin/qemu-ga", "qemu-guest-agent")


def _busybox() -> Path:
    return _tool("/bin/busybox", "busybox-static")


def _tool(path: str, package: str) -> Path:
    if not Path(path).exists():
        raise LabUnavailable(f"{path} is missing; as root: apt-get install {package}")
    return Path(path)


def _below(root: Path) -> Iterator[str]:
    for path in sorted(root.rglob("*")):
        yield str(path.relative_to(root))
