"""A guest as libvirt's domain XML. Pure: what goes in decides all that comes out."""

import re
from collections.abc import Mapping
from xml.etree import ElementTree as Xml

import msgspec

from siderite.compute.drivers.contract import Guest
from siderite.compute.drivers.contract import Nic
from siderite.compute.drivers.libvirt.names import NAMESPACE
from siderite.compute.drivers.libvirt.names import PREFIX
from siderite.compute.drivers.libvirt.names import Mark
from siderite.compute.drivers.libvirt.trouble import Refused

AGENT = "org.qemu.guest_agent.0"
_BUSES = {"virtio": "vd", "scsi": "sd", "sata": "sd", "ide": "hd", "usb": "sd"}
_IDE_ROOM = 4
_MODELS = {"virtio", "e1000", "e1000e", "rtl8139", "ne2k_pci", "pcnet", "vmxnet3"}
_NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_DEFAULT_MACHINE = {
    "x86_64": "pc",
    "aarch64": "virt",
    "ppc64le": "pseries",
    "s390x": "s390-ccw-virtio",
}


class HostTraits(msgspec.Struct, frozen=True):
    """What a host's domains are made for."""

    arch: str
    has_kvm: bool
    vnc_listen: str = "127.0.0.1"


class Files(msgspec.Struct, frozen=True):
    """A guest's files, by their paths on the host."""

    disks: tuple[str, ...]
    """The one it boots from first."""
    console: str
    config: str | None = None
    kernel: str | None = None
    ramdisk: str | None = None


class Shape(msgspec.Struct, frozen=True):
    """Everything a domain is made of."""

    guest: Guest
    host: HostTraits
    files: Files
    mark: Mark = msgspec.field(default_factory=Mark)


def domain_xml(shape: Shape) -> str:
    """The domain's description."""
    guest, host = shape.guest, shape.host
    Xml.register_namespace(PREFIX, NAMESPACE)
    root = Xml.Element("domain", type="kvm" if host.has_kvm else "qemu")
    _add(root, "name", guest.name)
    _add(root, "uuid", guest.uuid)
    _add(root, "title", _one_line(guest.display_name))
    _add(root, "metadata").append(shape.mark.xml())
    _add(root, "memory", str(guest.ram_mib), unit="MiB")
    _add(root, "vcpu", str(guest.vcpus))
    root.append(_os(shape))
    features = _add(root, "features")
    _add(features, "acpi")
    if host.arch == "x86_64":
        _add(features, "apic")
    if host.has_kvm:
        _add(root, "cpu", mode="host-model", check="partial")
    _add(root, "clock", offset="localtime" if _is_windows(guest) else "utc")
    for event, action in (("poweroff", "destroy"), ("reboot", "restart"), ("crash", "destroy")):
        _add(root, f"on_{event}", action)
    root.append(_devices(shape))
    text = Xml.tostring(root, encoding="unicode")
    odd = _NOT_IN_XML.search(text)
    if odd is not None:  # libvirt would refuse all of it, and show all of it
        raise Refused(
            f"a property of the image of server {guest.uuid} has the character {odd[0]!a}, which"
            " libvirt does not take; change the image",
            elsewhere=False,
        )
    return text


def interface_xml(nic: Nic, properties: Mapping[str, str]) -> str:
    """One network interface, to attach or detach."""
    return Xml.tostring(_interface(nic, properties), encoding="unicode")


def _os(shape: Shape) -> Xml.Element:
    properties = shape.guest.image_properties
    system = Xml.Element("os")
    if properties.get("hw_firmware_type") == "uefi":
        system.set("firmware", "efi")
    machine = properties.get("hw_machine_type") or _DEFAULT_MACHINE.get(shape.host.arch)
    kind = _add(system, "type", "hvm", arch=shape.host.arch)
    if machine:
        kind.set("machine", machine)
    if shape.files.kernel:
        _add(system, "kernel", shape.files.kernel)
        if shape.files.ramdisk:
            _add(system, "initrd", shape.files.ramdisk)
        _add(system, "cmdline", properties.get("os_command_line") or "console=ttyS0 root=/dev/vda")
    else:
        _add(system, "boot", dev="hd")
    return system


def _devices(shape: Shape) -> Xml.Element:
    guest, files = shape.guest, shape.files
    devices = Xml.Element("devices")
    bus = guest.image_properties.get("hw_disk_bus", "virtio")
    bus = bus if bus in _BUSES else "virtio"
    for number, path in enumerate(files.disks):
        devices.append(_disk(path, *_slot(bus, number, has_cd=files.config is not None)))
    if files.config:
        devices.append(_cd(files.config, shape))
    for nic in guest.nics:
        devices.append(_interface(nic, guest.image_properties))
    serial = _add(devices, "serial", type="pty")
    _add(serial, "log", file=files.console, append="on")
    channel = _add(devices, "channel", type="unix")
    _add(channel, "target", type="virtio", name=AGENT)
    graphics = _add(devices, "graphics", type="vnc", autoport="yes", listen=shape.host.vnc_listen)
    _add(graphics, "listen", type="address", address=shape.host.vnc_listen)
    video = _add(devices, "video")
    model = guest.image_properties.get("hw_video_model")
    _add(video, "model", type=model or ("vga" if shape.host.arch == "x86_64" else "virtio"))
    if shape.host.arch == "x86_64":
        _add(devices, "input", type="tablet", bus="usb")
    random = _add(devices, "rng", model="virtio")
    _add(random, "backend", "/dev/urandom", model="random")
    return devices


def _slot(bus: str, number: int, *, has_cd: bool) -> tuple[str, int]:
    """Bus and place of a disk. An IDE controller has room for four; a rescue with all disks that a
    flavor can give, and the config drive's CD in the last place, needs one more.
    """
    room = _IDE_ROOM - has_cd
    return ("sata", number - room) if bus == "ide" and number >= room else (bus, number)


def _disk(path: str, bus: str, number: int) -> Xml.Element:
    disk = Xml.Element("disk", type="file", device="disk")
    _add(disk, "driver", name="qemu", type="qcow2", discard="unmap")
    _add(disk, "source", file=path)
    _add(disk, "target", dev=f"{_BUSES[bus]}{chr(ord('a') + number)}", bus=bus)
    return disk


def _cd(path: str, shape: Shape) -> Xml.Element:
    machine = shape.guest.image_properties.get("hw_machine_type", "")
    old = shape.host.arch == "x86_64" and "q35" not in machine
    bus = "ide" if old else ("sata" if shape.host.arch == "x86_64" else "scsi")
    disk = Xml.Element("disk", type="file", device="cdrom")
    _add(disk, "driver", name="qemu", type="raw")
    _add(disk, "source", file=path)
    # Far from the letters that further disks get.
    _add(disk, "target", dev="hdd" if bus == "ide" else "sdz", bus=bus)
    _add(disk, "readonly")
    return disk


def _interface(nic: Nic, properties: Mapping[str, str]) -> Xml.Element:
    interface = Xml.Element("interface", type=nic.kind)
    _add(interface, "mac", address=nic.mac)
    if nic.kind in ("network", "bridge"):
        _add(interface, "source", {nic.kind: nic.target})
    model = properties.get("hw_vif_model", "virtio")
    _add(interface, "model", type=model if model in _MODELS else "virtio")
    return interface


def _is_windows(guest: Guest) -> bool:
    return guest.image_properties.get("os_type") == "windows"


def _one_line(text: str) -> str:
    """A title may not have line ends or control characters."""
    return "".join(c if c.isprintable() else " " for c in text) or "server"


def _add(
    parent: Xml.Element, tag: str, text: str | Mapping[str, str] | None = None, **fields: str
) -> Xml.Element:
    if isinstance(text, Mapping):
        fields, text = {**fields, **text}, None
    child = Xml.SubElement(parent, tag, fields)
    child.text = text
    return child
