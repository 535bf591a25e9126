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
_MENU = """\
default boot
prompt 0
timeout 1
label boot
  kernel vmlinuz
  append initrd=initrd {params}
"""
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


async def bootable(folder: Path, params: str) -> None:
    """Make `boot.iso` of `vmlinuz` and `initrd` in a folder, for BIOS machines."""
    for needed, package in ((_ISOLINUX, "isolinux"), (_LDLINUX, "syslinux-common")):
        if not needed.exists():
            raise NoRamdisk(f"{needed} is missing here: install {package}, or give a deploy_iso")
    root = folder / "iso"
    await asyncio.to_thread(_fill, root, folder, params)
    part = folder / "boot.iso.part"
    await _genisoimage(
        "-V", "ramdisk", "-b", "isolinux.bin", "-c", "boot.cat", "-no-emul-boot",
        "-boot-load-size", "4", "-boot-info-table", "-o", part, root,
    )  # fmt: skip
    part.rename(folder / "boot.iso")
    await asyncio.to_thread(shutil.rmtree, root, ignore_errors=True)


def _fill(root: Path, folder: Path, params: str) -> None:
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    shutil.copy(_ISOLINUX, root / "isolinux.bin")  # genisoimage writes into it
    (root / "ldlinux.c32").symlink_to(_LDLINUX)
    for name in ("vmlinuz", "initrd"):
        (root / name).symlink_to((folder / name).resolve())
    (root / "isolinux.cfg").write_text(_MENU.format(params=params))


async def config_drive(value: str | Mapping[str, Any] | None) -> str | None:
    """As a ramdisk takes it: an address, or an ISO image in gzip and base64."""
    if value is None or isinstance(value, str):
        return value
    with tempfile.TemporaryDirectory(prefix="siderite-configdrive-") as scratch:
        root, out = Path(scratch) / "root", Path(scratch) / "out.iso"
        await asyncio.to_thread(_write_config, root, value)
        await _genisoimage("-V", "config-2", "-o", out, root)
        return base64.b64encode(gzip.compress(out.read_bytes())).decode()


def _write_config(root: Path, parts: Mapping[str, Any]) -> None:
    root.mkdir()
    for name, where in _CONFIG_FILES.items():
        part = parts.get(name)
        if part is None:
            continue
        path = root / where
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(part if isinstance(part, str) else json.dumps(part))


async def _genisoimage(*words: str | Path) -> None:
    try:
        process = await asyncio.create_subprocess_exec(
            "genisoimage", "-quiet", "-f", "-J", "-r", *words,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
    except FileNotFoundError as why:
        raise NoRamdisk("genisoimage is missing here: install it") from why
    _, said = await process.communicate()
    if process.returncode:
        raise NoRamdisk(f"genisoimage failed: {said.decode(errors='replace').strip()[-300:]}")
