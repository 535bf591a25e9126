"""What the first bytes of an image tell: its virtual size, and whether it reaches beyond itself.

A disk image can name another file to read from. Whoever uploads one must not be able to name a
file of the host's, so such an image is refused whatever its format is said to be.
"""

import struct

from siderite.core.errors import Invalid

HEAD_BYTES = 512
_QCOW = b"QFI\xfb"
_EXTERNAL_DATA = 1 << 2
_VERSION_3 = 3


def virtual_size(head: bytes, disk_format: str | None, size: int) -> int | None:
    """How large the disk is that a guest sees; None if the format is not understood here."""
    if disk_format in ("raw", "iso", "ami", "ari", "aki"):
        return size
    if disk_format == "qcow2" and head[:4] == _QCOW and len(head) >= 32:  # noqa: PLR2004
        return int(struct.unpack_from(">Q", head, 24)[0]) & (2**63 - 1)
    return None


def check(head: bytes) -> None:
    """Refuse what reads other files than itself."""
    if head[:4] == _QCOW and len(head) >= 16:  # noqa: PLR2004
        version, backing = struct.unpack_from(">IQ", head, 4)
        if backing:
            raise Invalid(
                "The image names a backing file, which would be read from the host; flatten it"
                " first, with `qemu-img convert`."
            )
        if version >= _VERSION_3 and len(head) >= 80:  # noqa: PLR2004
            (features,) = struct.unpack_from(">Q", head, 72)
            if features & _EXTERNAL_DATA:
                raise Invalid(
                    "The image keeps its data in another file, which would be read from the host;"
                    " put it into one file first, with `qemu-img convert`."
                )
    if head.startswith(b"# Disk DescriptorFile"):
        raise Invalid(
            "The image is only a VMDK description, whose data is in other files; make it one file"
            " first, with `qemu-img convert`."
        )
