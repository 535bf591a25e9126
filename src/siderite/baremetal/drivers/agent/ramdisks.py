"""Ramdisks for machines to boot: kernel and initial ramdisk, or an ISO image, for one node at a
time, in a folder that the listener serves.

The address holds a random part made for this boot, so only who was told it can fetch the files.
What an operator configured may be any local file or http(s) address; what a node's `driver_info`
names may be http(s), within what the guard allows, or a file below `boot_files`.
"""

import asyncio
import contextlib
import shutil
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from urllib.parse import urlsplit

from siderite.baremetal.domain.secrets import mask
from siderite.baremetal.drivers.agent import image
from siderite.baremetal.drivers.agent import iso
from siderite.baremetal.drivers.agent.iso import NoRamdisk
from siderite.baremetal.drivers.contract import Endpoint
from siderite.core.guard import Guard
from siderite.core.guard import Network

_MADE_WITH = "boot.iso.params"


def guard(allowed: Sequence[Network] = ()) -> Guard:
    """The rules for addresses that a node's `driver_info` has us fetch from."""
    return Guard(allowed, callers="downloads of ramdisks", option="ramdisk_allow")


@dataclass(frozen=True, slots=True)
class RamdiskSettings:
    """What the configuration says about ramdisks."""

    folder: Path
    """Where files to be served are put, one folder per node."""
    api_url: str
    """By which ramdisks and booting machines reach the listener."""
    media_url: str
    """By which BMCs do."""
    kernel: str = ""
    ramdisk: str = ""
    iso: str = ""
    params: str = ""
    boot_files: str = ""
    guard: Guard = field(default_factory=guard)


class Ramdisks:
    """Makes boot media for nodes."""

    def __init__(self, settings: RamdiskSettings, images: image.Images | None = None) -> None:
        self._settings = settings
        self._images = images

    @property
    def has_images(self) -> bool:
        """Whether images can be had by their ids."""
        return self._images is not None

    async def image_info(self, at: Endpoint) -> dict[str, Any]:
        """What the node's ramdisk is told of its image; one of the image service is served here."""
        uuid = image.image_id(at.instance_info)
        if uuid is None or self._images is None:
            return image.info(at.node, at.instance_info)
        found = await self._images(uuid, at.project)
        secret = str((at.driver_internal_info.get("ramdisk") or {}).get("secret"))
        await asyncio.to_thread(_link, found.path, self._folder(at, secret) / "image")
        url = self._address(self._settings.api_url, at, secret, "image")
        return image.local_info(at.node, found, url)

    def lacks(self, info: Mapping[str, Any], *, media: bool) -> str | None:
        """What is missing to boot a ramdisk on a node."""
        kernel = info.get("deploy_kernel") or self._settings.kernel
        ramdisk = info.get("deploy_ramdisk") or self._settings.ramdisk
        iso = info.get("deploy_iso") or self._settings.iso
        if (kernel and ramdisk) or (media and iso):
            return None
        either = "deploy_kernel and deploy_ramdisk" + (", or deploy_iso" if media else "")
        return f"there is no ramdisk to boot: set {either} in driver_info or in the configuration"

    def params(self, at: Endpoint, *, inspects: bool = False, token: str = "") -> str:
        """The kernel's parameters: where the ramdisk finds us, the token by which we know it if it
        need not ask for one, and what the operator adds.
        """
        api = f"{self._settings.api_url}/baremetal"
        words = [
            f"ipa-api-url={api}",
            f"ipa-inspection-callback-url={api}/v1/continue_inspection" if inspects else "",
            f"ipa-agent-token={token}" if token else "",
            "ipa-insecure=1" if self._settings.api_url.startswith("http://") else "",
            str(at.driver_info.get("kernel_append_params") or self._settings.params),
        ]
        # A line break would end the line in a boot loader's menu.
        return " ".join(" ".join(words).split())

    def ready_iso(self, at: Endpoint) -> str:
        """The ISO image that is there for the node; empty if one is made for it."""
        given = at.driver_info.get("deploy_iso")
        if not given and not at.driver_info.get("deploy_kernel"):
            given = self._settings.iso
        return str(given or "")

    async def iso(
        self, at: Endpoint, secret: str, *, inspects: bool = False, token: str = ""
    ) -> str:
        """The address of an ISO image that boots the node's ramdisk, for its BMC. Only the BMC is
        told the address, so that what is made for the node may have its ramdisk's token in it.
        """
        given = self.ready_iso(at)
        if given:
            return await self.given_iso(at, given, secret)
        folder = self._folder(at, secret)
        params = self.params(at, inspects=inspects, token=token)
        if not await asyncio.to_thread(_is_made, folder, params):
            await self._fetch_pair(at, folder)
            await iso.bootable(folder, params, uefi=at.is_uefi, network=at.network_data)
            await asyncio.to_thread((folder / _MADE_WITH).write_text, params)
        return self._address(self._settings.media_url, at, secret, "boot.iso")

    async def given_iso(self, at: Endpoint, source: str, secret: str) -> str:
        """The address of a ready ISO image; what is a file here is served."""
        if source.startswith(("http://", "https://")):
            return source
        folder = self._folder(at, secret)
        await self._fetch(source, folder / "boot.iso")
        return self._address(self._settings.media_url, at, secret, "boot.iso")

    async def pair(self, at: Endpoint, secret: str, *, inspects: bool = False) -> dict[str, str]:
        """Kernel, ramdisk and parameters, for a machine that boots by iPXE."""
        await self._fetch_pair(at, self._folder(at, secret))
        base = self._settings.api_url
        return {
            "kernel": self._address(base, at, secret, "vmlinuz"),
            "ramdisk": self._address(base, at, secret, "initrd"),
            "params": self.params(at, inspects=inspects),
        }

    async def remove(self, at: Endpoint) -> None:
        """The node needs the files of its boot no more. Those of another are left alone: work that
        was given up may be tidied up when the next has begun.
        """
        folder = self._settings.folder / at.node
        secret = (at.driver_internal_info.get("ramdisk") or {}).get("secret")
        await asyncio.to_thread(_remove, folder, str(secret) if secret else None)

    def _folder(self, at: Endpoint, secret: str) -> Path:
        folder = self._settings.folder / at.node / secret
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return folder

    def _address(self, base: str, at: Endpoint, secret: str, name: str) -> str:
        return f"{base}/boot/v1/files/{at.node}/{secret}/{name}"

    def _chosen(self, at: Endpoint, key: str, default: str) -> str:
        return str(at.driver_info.get(key) or default)

    async def _fetch_pair(self, at: Endpoint, folder: Path) -> None:
        for key, default, name in (
            ("deploy_kernel", self._settings.kernel, "vmlinuz"),
            ("deploy_ramdisk", self._settings.ramdisk, "initrd"),
        ):
            source = self._chosen(at, key, default)
            if not source:
                raise NoRamdisk(self.lacks(at.driver_info, media=False) or f"{key} is missing")
            await self._fetch(source, folder / name)

    async def _fetch(self, source: str, to: Path) -> None:
        """Have the file at `to`, whole or not at all."""
        if await asyncio.to_thread(to.exists):
            return
        configured = (self._settings.kernel, self._settings.ramdisk, self._settings.iso)
        is_ours = source in configured
        if source.startswith(("http://", "https://")):
            from siderite.baremetal.drivers.agent import fetch  # noqa: PLC0415 - brings httpx along

            await fetch.download(source, to, None if is_ours else self._settings.guard)
            return
        path = Path(unquote(urlsplit(source).path) if source.startswith("file://") else source)
        if not is_ours:
            self._check_below(path, source)
        try:
            await asyncio.to_thread(_link, path, to)
        except OSError as why:
            raise NoRamdisk(f"{path} cannot be read: {why.strerror}") from why

    def _check_below(self, path: Path, source: str) -> None:
        allowed = self._settings.boot_files
        if not allowed or not path.resolve().is_relative_to(Path(allowed).resolve()):
            where = f"below {allowed}" if allowed else "allowed only with the option boot_files"
            shown = mask(source)
            raise NoRamdisk(f"{shown} is a local file; those that nodes may name are {where}")


def _is_made(folder: Path, params: str) -> bool:
    """Whether there is a medium, and with these parameters: one that a worker of an older version
    has made, and not told of, lacks the token.
    """
    with contextlib.suppress(OSError):
        return (folder / "boot.iso").exists() and (folder / _MADE_WITH).read_text() == params
    return False


def _remove(folder: Path, secret: str | None) -> None:
    shutil.rmtree(folder / secret if secret else folder, ignore_errors=True)
    with contextlib.suppress(OSError):  # it is gone, or holds another boot's files
        folder.rmdir()


def _link(path: Path, to: Path) -> None:
    if not path.is_file():
        raise OSError(2, "there is no such file")
    with contextlib.suppress(FileExistsError):
        to.symlink_to(path.resolve())
