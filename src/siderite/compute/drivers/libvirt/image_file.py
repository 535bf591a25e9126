"""What an image file is: its format and the size of the disk in it. Read from its first bytes.

The bytes are a stranger's. A qcow2 file that names another file would make the host read that, so
it is refused; anything else without a known header is a raw disk.
"""

import struct
from pathlib import Path

import msgspec

from siderite.compute.drivers.libvirt.trouble import Refused

_QCOW2 = b"QFI\xfb"
_HEADER = struct.Struct(
    ">4sIQIIQ"
)  # magic, version, backing offset, its length, cluster bits, size
_EXTERNAL_DATA = 1 << 2
_FEATURES_AT = 72
_VERSION_3 = 3
# Formats that QEMU would also take, but that we cannot vouch for.
_OTHERS = {
    b"KDMV": "vmdk",
    b"COWD": "vmdk",
    b"# Disk Desc": "vmdk",
    b"conectix": "vhd",
    b"vhdxfile": "vhdx",
    b"<<< ": "vdi",
    b"QED\0": "qed",
}


class ImageFile(msgspec.Struct, frozen=True):
    """A disk image on this machine."""

    path: Path
    format: str
    virtual_bytes: int
    file_bytes: int


def inspect(path: Path, image: str) -> ImageFile:
    """Look at the file; `Refused` with a remedy if it cannot be used."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(512)
    for magic, name in _OTHERS.items():
        if head.startswith(magic):
            raise Refused(
                f"image {image} is a {name} file; convert it (qemu-img convert -O qcow2) and"
                " upload it again",
                elsewhere=False,
            )
    if not head.startswith(_QCOW2) or len(head) < _HEADER.size:
        return ImageFile(path, "raw", size, size)
    _, version, backing, _, _, virtual = _HEADER.unpack_from(head)
    features = 0
    if version >= _VERSION_3:
        features = struct.unpack_from(">Q", head, _FEATURES_AT)[0]
    if backing or features & _EXTERNAL_DATA:
        raise Refused(
            f"image {image} is a qcow2 file that refers to another file; flatten it"
            " (qemu-img convert -O qcow2) and upload it again",
            elsewhere=False,
        )
    return ImageFile(path, "qcow2", virtual, size)
