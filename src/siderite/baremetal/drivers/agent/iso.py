"""ISO images: to boot a ramdisk from, and config drives."""

import asyncio
import base64
import gzip
import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_ISOLINUX = Path("/usr/lib/ISOLINUX/isolinux.bin")
_LDLINUX = Path("/usr/lib/syslinux/modules/bios/ldlinux.c32")
_GRUB = Path("/usr/lib/grub/x86_64-efi/monolithic/gcdx64.efi")
_BIOS_MENU = """\
default boot
prompt 0
timeout 1
label boot
  kernel vmlinuz
  append initrd=initrd {params}
"""
_UEFI_MENU = """\
linux ($root)/vmlinuz {params}
initrd ($root)/initrd
boot
"""
_BIOS_WORDS = ("-b", "isolinux.bin", "-no-emul-boot", "-boot-load-size", "4", "-boot-info-table")
_UEFI_WORDS = ("-eltorito-alt-boot", "-e", "efi.img", "-no-emul-boot")
_SECTOR = 512
_SPARE = 512
"""Sectors of the image with UEFI's boot loader beyond the loader itself."""
_CONFIG_FILES = {
    "meta_data": "openstack/latest/meta_data.json",
    "network_data": "openstack/latest/network_data.json",
    "user_data": "openstack/latest/user_data",
    "vendor_data": "openstack/latest/vendor_data2.json",
}


class NoRamdisk(Exception):
    """A ramdisk cannot be had; the text says why, and `passing` whether that may change."""

    def __init__(self, text: str, *, passing: bool = False) -> None:
        super().__init__(text)
        self.passing = passing


async def bootable(
    folder: Path, params: str, *, uefi: bool = False, network: Mapping[str, Any] | None = None
) -> None:
    """Make `boot.iso` of `vmlinuz` and `initrd` in a folder: for BIOS and UEFI machines, as far as
    the boot loaders are installed here; NoRamdisk if the one for this machine is not. With a
    network it is also the config drive that tells the ramdisk of it.
    """
    bios_loader, uefi_loader = await asyncio.to_thread(_loaders)
    if not (uefi_loader if uefi else bios_loader):
        packages = "grub-efi-amd64-bin and mtools" if uefi else "isolinux and syslinux-common"
        kind = "UEFI" if uefi else "BIOS"
        raise NoRamdisk(
            f"the boot loader for {kind} machines is missing here: install {packages}, or give a"
            " deploy_iso"
        )
    root = folder / "iso"
    await asyncio.to_thread(_fill, root, folder)
    words: list[str | Path] = ["-V", "config-2" if network else "ramdisk", "-c", "boot.cat"]
    if network:
        await asyncio.to_thread(_write_config, root, {"network_data": network})
    if bios_loader:
        await asyncio.to_thread(_add_isolinux, root, params)
        words += _BIOS_WORDS
    if uefi_loader:
        await _add_grub(root, params)
        words += _UEFI_WORDS if bios_loader else _UEFI_WORDS[1:]
    part = folder / "boot.iso.part"
    # By relative names: everybody on this computer can read a command's words, and the folder's
    # name is all that one needs to fetch what is in it.
    await _genisoimage(*words, "-o", part.name, root.name, cwd=folder)
    part.rename(folder / "boot.iso")
    await asyncio.to_thread(shutil.rmtree, root, ignore_errors=True)


def _loaders() -> tuple[bool, bool]:
    """Whether machines can be booted by BIOS and by UEFI from what is installed here."""
    has_mtools = shutil.which("mformat") is not None
    return _ISOLINUX.exists() and _LDLINUX.exists(), _GRUB.exists() and has_mtools


def _fill(root: Path, folder: Path) -> None:
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    for name in ("vmlinuz", "initrd"):
        (root / name).symlink_to((folder / name).resolve())


def _add_isolinux(root: Path, params: str) -> None:
    shutil.copy(_ISOLINUX, root / "isolinux.bin")  # genisoimage writes into it
    (root / "ldlinux.c32").symlink_to(_LDLINUX)
    (root / "isolinux.cfg").write_text(_BIOS_MENU.format(params=params))


async def _add_grub(root: Path, params: str) -> None:
    """UEFI starts a program from a FAT image; this one finds its medium by a file on it."""
    image = "efi.img"
    sectors = await asyncio.to_thread(_write_menu, root, params)
    await _tool("mformat", "-C", "-i", image, "-T", str(sectors), "::", cwd=root)
    await _tool("mmd", "-i", image, "::/EFI", "::/EFI/BOOT", cwd=root)
    await _tool("mcopy", "-i", image, _GRUB, "::/EFI/BOOT/BOOTX64.EFI", cwd=root)


def _write_menu(root: Path, params: str) -> int:
    """What UEFI's boot loader reads; gives how many sectors it needs itself."""
    quoted = " ".join("'" + word.replace("'", "'\\''") + "'" for word in params.split())
    for name, text in (
        (".disk/info", "ramdisk\n"),
        ("boot/grub/grub.cfg", _UEFI_MENU.format(params=quoted)),
    ):
        (root / name).parent.mkdir(parents=True)
        (root / name).write_text(text)
    return _GRUB.stat().st_size // _SECTOR + _SPARE


async def config_drive(value: Any, node: str) -> str | None:
    """As a ramdisk takes it: an address, or an ISO image in gzip and base64. Without meta data, and
    an id in it, a system takes a drive for none: it has the node's unless it names another.
    """
    if value is None or isinstance(value, str):
        return value
    meta = value.get("meta_data") or {} if isinstance(value, Mapping) else None
    if not isinstance(meta, Mapping):
        raise NoRamdisk(
            "instance_info.configdrive is neither text nor an object whose meta_data is one"
        )
    parts = {**value, "meta_data": {"uuid": node, **meta}}
    with tempfile.TemporaryDirectory(prefix="siderite-configdrive-") as scratch:
        root, out = Path(scratch) / "root", Path(scratch) / "out.iso"
        await asyncio.to_thread(_write_config, root, parts)
        await _genisoimage("-V", "config-2", "-o", out, root)
        return await asyncio.to_thread(_packed, out)


def _packed(file: Path) -> str:
    return base64.b64encode(gzip.compress(file.read_bytes())).decode()


def _write_config(root: Path, parts: Mapping[str, Any]) -> None:
    for name, where in _CONFIG_FILES.items():
        part = parts.get(name)
        if part is None:
            continue
        path = root / where
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(part if isinstance(part, str) else json.dumps(part))


async def _genisoimage(*words: str | Path, cwd: Path | None = None) -> None:
    await _tool("genisoimage", "-quiet", "-f", "-J", "-r", *words, cwd=cwd)


async def _tool(name: str, *words: str | Path, cwd: Path | None = None) -> None:
    try:
        process = await asyncio.create_subprocess_exec(
            name, *words, cwd=cwd,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
    except FileNotFoundError as why:
        raise NoRamdisk(f"{name} is missing here: install it") from why
    _, said = await process.communicate()
    if process.returncode:
        raise NoRamdisk(f"{name} failed: {said.decode(errors='replace').strip()[-300:]}")
