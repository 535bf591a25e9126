"""The guest of 512 bytes: a boot sector, ready in a fraction of a second on any QEMU.

It prints `TINY GUEST ready TAG` on the serial line, and `armed` once it listens to the power
button. A button pressed before that is lost, as with a real machine that still boots.
"""

import struct
from enum import IntEnum
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.lab.cache import run

_SOURCE = Path(__file__).with_name("guest") / "tiny.S"
_MODE_AT = 440
_TAG_AT = 448
_SECTOR = 512
MAX_TAG = 58


class Mode(IntEnum):
    """How the guest behaves."""

    GRACEFUL = 0  # obeys the power button
    IGNORE = 1  # does not
    LATE = 2  # listens to it only after some seconds
    SELFOFF = 3  # powers itself off after some seconds
    SELFREBOOT = 4  # resets itself after some seconds
    CHATTY = 5  # prints its tag for ever
    STUBBORN = 6  # starts anew when the power button is pressed
    WRITER = 7  # writes 12 MiB to its disk, and obeys the power button then


def tiny_disk(
    path: Path, mode: Mode, *, delay_s: int = 2, tag: str = "tiny", size_mib: int = 1
) -> Path:
    """Write a raw disk that boots the guest."""
    if not tag.isascii() or len(tag) > MAX_TAG:
        raise ValueError(f"a tag is at most {MAX_TAG} ASCII characters, not {tag!r}")
    sector = bytearray(_boot_sector())
    struct.pack_into("<BH", sector, _MODE_AT, mode, delay_s)
    words = tag.encode() + b"\r\n\0"
    sector[_TAG_AT : _TAG_AT + len(words)] = words
    with path.open("wb") as disk:
        disk.write(sector)
        disk.truncate(size_mib << 20)
    return path


@cache
def _boot_sector() -> bytes:
    with TemporaryDirectory(prefix="siderite-tiny-") as scratch:
        at = Path(scratch)
        run(["as", "--32", "-o", at / "tiny.o", _SOURCE])
        run(["ld", "-m", "elf_i386", "-Ttext", "0x7c00", "-o", at / "tiny.elf", at / "tiny.o"])
        run(["objcopy", "-O", "binary", "-j", ".text", at / "tiny.elf", at / "tiny.bin"])
        sector = (at / "tiny.bin").read_bytes()
    if len(sector) != _SECTOR:
        raise AssertionError(f"the boot sector has {len(sector)} bytes")
    return sector
