"""A cloud of lab hosts, and what its servers' guests do."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import libvirt

from siderite.compute.usecases.fleet import hosts
from tests.compute.cloud import Cloud
from tests.compute.cloud import cloud
from tests.lab import LabHost
from tests.lab import Mode
from tests.lab import linux_boot
from tests.lab import tiny_disk
from tests.lab.guest import PATIENCE_S
from tests.lab.linux import MIN_MEMORY_MIB

OCTETS = {"content-type": "application/octet-stream"}


class RealCloud:
    """A cloud whose hosts are the lab's."""

    def __init__(self, api: Cloud, folder: Path, labs: tuple[LabHost, ...]) -> None:
        self.api = api
        self.folder = folder
        self.labs = {lab.name: lab for lab in labs}
        self.tiny = self.tiny_image()
        self.flavor = api.make_flavor(ram=16, disk=1)
        self.large = api.make_flavor(ram=32, disk=2, vcpus=2)

    def image(self, file: Path, **fields: Any) -> str:
        """Upload a file; its image's id."""
        body = {
            "name": file.name, "disk_format": "raw", "container_format": "bare",
            "visibility": "public", **fields,
        }  # fmt: skip
        made = self.api.app.ask("POST", "/image/v2/images", body, version=None)
        assert made.status == 201, made
        image = str(made.json["id"])
        data = file.read_bytes()
        put = self.api.app.ask(
            "PUT", f"/image/v2/images/{image}/file", data, version=None, headers=OCTETS
        )
        assert put.status == 204, put
        return image

    def tiny_image(self, mode: Mode = Mode.GRACEFUL, tag: str = "tiny", **fields: Any) -> str:
        """An image of the 512-byte guest."""
        return self.image(tiny_disk(self.folder / tag, mode, tag=tag), **fields)

    def linux_image(self, role: str) -> str:
        """An image that boots the Linux guest, by kernel and ramdisk images."""
        boot = linux_boot()
        kernel, ramdisk = self.image(boot.kernel), self.image(boot.initramfs)
        line = boot.command_line(role)
        own = {"kernel_id": kernel, "ramdisk_id": ramdisk, "os_command_line": line}
        return self.tiny_image(tag="linux disk", **own)

    def boot(self, image: str | None = None, flavor: str | None = None, **fields: Any) -> str:
        """The id of a server that runs on some host."""
        return self.api.boot(imageRef=image or self.tiny, flavorRef=flavor or self.flavor, **fields)

    def linux_flavor(self) -> str:
        return self.api.make_flavor(ram=MIN_MEMORY_MIB, disk=1)

    def do(self, server: str, action: str, value: Any = None, *, then: str, **how: Any) -> None:
        """Ask for an action and wait until it is over."""
        answer = self.api.act(server, action, value, **how)
        assert answer.status in (200, 202, 204), answer
        seen = self.api.settled(server)
        assert seen["status"] == then, seen

    def host_of(self, server: str) -> LabHost:
        return self.labs[self.api.show(server)["OS-EXT-SRV-ATTR:host"]]

    def domain(self, server: str) -> Any | None:
        """libvirt's own view of the server, wherever it is."""
        for lab in self.labs.values():
            try:
                return lab.connection().lookupByUUIDString(server)
            except libvirt.libvirtError:
                continue
        return None

    def log(self, server: str) -> str:
        """What the guest printed, by the API."""
        answer = self.api.act(server, "os-getConsoleOutput", {})
        assert answer.status == 200, answer
        return str(answer.json["output"])

    def wait_for_words(self, server: str, words: str, times: int = 1) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while (said := self.log(server)).count(words) < times:
            assert time.monotonic() < deadline, f"no {words!r} in {said!r}"
            self.api.app.run(_pause())

    def delete(self, server: str) -> None:
        """Delete it, and see that nothing is left of it anywhere."""
        assert self.api.ask("DELETE", f"/servers/{server}").status == 204
        self.api.wait(server, lambda seen: seen["status"] in ("GONE", "DELETED"))
        assert self.domain(server) is None
        for lab in self.labs.values():
            assert list((lab.folder / "lib" / "siderite").glob(f"{server}*")) == []


async def _pause() -> None:
    await asyncio.sleep(0.05)


@contextmanager
def real_cloud(folder: Path, labs: tuple[LabHost, ...]) -> Iterator[RealCloud]:
    """The whole program with these hosts."""
    with cloud(folder, hosts=0, shutdown_timeout_s=20, shutdown_retry_interval_s=1) as api:
        compute = api.app.app.program.compute
        for lab in labs:
            uri, options = lab.uri, {"migration_address": "127.0.0.1"}
            if lab.doors is not None:  # as most hosts of a real cloud are reached
                uri, options = lab.doors.ssh_uri, options | lab.doors.ssh_options
            made = api.app.run(hosts.add(compute.context, lab.name, "libvirt", uri, options))
            assert api.app.run(compute.watch.ask(made)) is None
        yield RealCloud(api, folder, labs)
