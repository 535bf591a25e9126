"""Domains of the tiny guest, for tests that need a machine that Siderite did not make.

A BMC in front of a guest, say: define one here, and point sushy-emulator or vbmc at its name.
"""

import time
import uuid as uuids
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import libvirt

from tests.lab.host import LabHost
from tests.lab.tiny import Mode
from tests.lab.tiny import tiny_disk

# Nothing takes this long; a loaded machine may.
PATIENCE_S = 120.0
_PAUSE_S = 0.02

_DOMAIN = """
<domain type='qemu'>
  <name>{name}</name>
  <uuid>{uuid}</uuid>
  <memory unit='MiB'>16</memory>
  <vcpu>1</vcpu>
  <os>
    <type arch='x86_64' machine='pc'>hvm</type>
    <boot dev='hd'/><boot dev='cdrom'/>
  </os>
  <features><acpi/><apic/></features>
  <on_poweroff>destroy</on_poweroff>
  <on_reboot>restart</on_reboot>
  <on_crash>destroy</on_crash>
  <devices>
    <disk type='file' device='disk'>
      <driver name='qemu' type='raw'/>
      <source file='{disk}'/>
      <target dev='vda' bus='virtio'/>
    </disk>
    <disk type='file' device='cdrom'><target dev='hda' bus='ide'/><readonly/></disk>
    <interface type='user'><mac address='{mac}'/><model type='virtio'/></interface>
    <serial type='pty'><log file='{log}' append='on'/></serial>
    <channel type='unix'><target type='virtio' name='org.qemu.guest_agent.0'/></channel>
    <graphics type='vnc' listen='127.0.0.1' autoport='yes'/>
    <video><model type='vga'/></video>
  </devices>
</domain>
"""


@dataclass(frozen=True, slots=True)
class Guest:
    """A defined domain on a lab host."""

    host: LabHost
    name: str
    uuid: str
    mac: str
    disk: Path
    log: Path

    def domain(self) -> Any:
        """libvirt's handle."""
        return self.host.connection().lookupByName(self.name)

    def start(self) -> None:
        """Power on."""
        self.domain().create()

    def is_on(self) -> bool:
        """Whether it runs now."""
        return bool(self.domain().isActive())

    def serial(self) -> str:
        """All that it has printed since it was defined."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def wait_for(self, words: str, *, times: int = 1) -> None:
        """Until the serial log has the words (so many times)."""
        wait_until(
            lambda: self.serial().count(words) >= times,
            lambda: (
                f"{self.name} did not print {words!r}; its serial log:\n{self.serial()[-2000:]}"
            ),
        )

    def wait_until_off(self) -> None:
        """Until it no longer runs."""
        wait_until(lambda: not self.is_on(), lambda: f"{self.name} still runs")

    def remove(self) -> None:
        """Destroy and undefine it."""
        domain = self.domain()
        if domain.isActive():
            domain.destroy()
        domain.undefineFlags(
            libvirt.VIR_DOMAIN_UNDEFINE_MANAGED_SAVE | libvirt.VIR_DOMAIN_UNDEFINE_NVRAM
        )


def tiny_guest(
    host: LabHost, mode: Mode = Mode.GRACEFUL, *, name: str | None = None, delay_s: int = 2
) -> Guest:
    """Define a domain with the 512-byte guest on its disk; it is not started."""
    name = name or f"tiny-{uuids.uuid4().hex[:8]}"
    disk = tiny_disk(host.disks / f"{name}.raw", mode, delay_s=delay_s, tag=name)
    return _define(host, name, disk)


def _define(host: LabHost, name: str, disk: Path) -> Guest:
    """Define a domain with a raw disk, an empty CD drive, a serial log, VNC and user networking."""
    uuid = str(uuids.uuid4())
    mac = "52:54:00:" + ":".join(uuid[at : at + 2] for at in (0, 2, 4))
    log = host.disks / f"{name}.log"
    text = _DOMAIN.format(name=name, uuid=uuid, disk=disk, mac=mac, log=log)
    host.connection().defineXML(text)
    return Guest(host, name, uuid, mac, disk, log)


def wait_until(holds: Callable[[], bool], complaint: Callable[[], str]) -> None:
    """Look again and again until something holds; fail with the complaint after a long time."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(complaint())
        time.sleep(_PAUSE_S)
