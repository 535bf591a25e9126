"""Machines as bare metal: a bigger empty disk, a CD drive, and a network card by which the ramdisk
reaches this machine and can be reached from it.

The card is QEMU's user network: the guest sees this machine's loopback at 10.0.2.2, and its port
9999 is a port of loopback here. With an address to boot from, iPXE is its firmware, and has a fixed
address in place of one by DHCP, whose timeouts are most of a boot's time.
"""

import uuid as uuids
from dataclasses import dataclass
from pathlib import Path

from tests.lab.cache import LabUnavailable
from tests.lab.guest import Guest
from tests.lab.host import LabHost
from tests.lab.linux import MIN_MEMORY_MIB
from tests.support.ports import free_port

HERE = "10.0.2.2"
_DISK_MIB = 16
_UEFI_MEMORY_MIB = 512
_OVMF = Path("/usr/share/OVMF")
_IPXE = Path("/usr/lib/ipxe/ipxe.lkrn")
# What a card's firmware does: ask the network first, and take the disk if that says nothing.
_SCRIPT = """#!ipxe
ifopen net0
set net0/ip 10.0.2.15
set net0/netmask 255.255.255.0
chain {url}
sanboot --no-describe --drive 0x80
"""
_DOMAIN = """
<domain type='qemu' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
  <name>{name}</name>
  <uuid>{uuid}</uuid>
  <memory unit='MiB'>{memory}</memory>
  <vcpu>1</vcpu>
  <os><type arch='x86_64' machine='pc'>hvm</type>{firmware}<boot dev='hd'/></os>
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
    <controller type='usb' model='none'/>
    <serial type='pty'><log file='{log}' append='on'/></serial>
  </devices>
  <qemu:commandline>
    <qemu:arg value='-netdev'/>
    <qemu:arg value='user,id=n0,hostfwd=tcp:127.0.0.1:{port}-:9999'/>
    <qemu:arg value='-device'/>
    <qemu:arg value='virtio-net-pci,netdev=n0,mac={mac},bus=pci.0,addr=0x10,romfile='/>
  </qemu:commandline>
</domain>
"""


@dataclass(frozen=True, slots=True)
class Iron:
    """A machine, and where its ramdisk can be reached."""

    guest: Guest
    callback: str


def iron(host: LabHost, *, boot_url: str | None = None, uefi: bool = False) -> Iron:
    """Define a machine with an empty disk; with a `boot_url`, it asks the network first."""
    uuid = str(uuids.uuid4())
    name = f"iron-{uuid[:8]}"
    mac = "52:54:00:" + ":".join(uuid[at : at + 2] for at in (0, 2, 4))
    disk, log = host.disks / f"{name}.raw", host.disks / f"{name}.log"
    with disk.open("wb") as file:
        file.truncate(_DISK_MIB << 20)
    port = free_port()
    text = _DOMAIN.format(
        name=name, uuid=uuid, memory=_UEFI_MEMORY_MIB if uefi else MIN_MEMORY_MIB,
        disk=disk, log=log, mac=mac, port=port,
        firmware=_uefi(disk) if uefi else _firmware(disk.with_suffix(".ipxe"), boot_url),
    )  # fmt: skip
    host.connection().defineXML(text)
    return Iron(Guest(host, name, uuid, mac, disk, log), f"http://127.0.0.1:{port}")


def _uefi(disk: Path) -> str:
    code, variables = _OVMF / "OVMF_CODE_4M.fd", _OVMF / "OVMF_VARS_4M.fd"
    if not code.exists():
        raise LabUnavailable(f"{code} is missing; as root: apt-get install ovmf")
    return (
        f"<loader readonly='yes' type='pflash'>{code}</loader>"
        f"<nvram template='{variables}'>{disk.with_suffix('.nvram')}</nvram>"
    )


def _firmware(script: Path, url: str | None) -> str:
    if url is None:
        return ""
    if not _IPXE.exists():
        raise LabUnavailable(f"{_IPXE} is missing; as root: apt-get install ipxe")
    script.write_text(_SCRIPT.format(url=url))
    return f"<kernel>{_IPXE}</kernel><initrd>{script}</initrd>"
