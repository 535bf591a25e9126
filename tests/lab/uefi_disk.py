"""A disk that a UEFI machine boots: GRUB in a FAT file system, which says so on the serial line."""

from pathlib import Path
from tempfile import TemporaryDirectory

from tests.lab.cache import run

_GRUB = Path("/usr/lib/grub/x86_64-efi/monolithic/gcdx64.efi")
_MENU = """serial --unit=0 --speed=115200
terminal_output serial
echo "UEFI DISK ready {tag}"
sleep 3600
"""


def uefi_disk(path: Path, tag: str) -> Path:
    """Write it."""
    run(["mformat", "-C", "-i", path, "-T", str(12 << 11), "::"])
    run(["mmd", "-i", path, "::/EFI", "::/EFI/BOOT", "::/.disk", "::/boot", "::/boot/grub"])
    with TemporaryDirectory(prefix="siderite-uefi-") as scratch:
        menu, info = Path(scratch) / "grub.cfg", Path(scratch) / "info"
        menu.write_text(_MENU.format(tag=tag))
        info.write_text("disk\n")
        run(["mcopy", "-i", path, _GRUB, "::/EFI/BOOT/BOOTX64.EFI"])
        run(["mcopy", "-i", path, menu, "::/boot/grub/grub.cfg"])
        run(["mcopy", "-i", path, info, "::/.disk/info"])
    return path
