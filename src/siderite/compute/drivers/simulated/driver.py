"""The driver of simulated hosts. It keeps to the same contract as those of real ones."""

import asyncio
import hashlib
import tempfile
from collections.abc import Callable
from collections.abc import Mapping
from pathlib import Path

from siderite.compute.domain.driver_card import DriverCard
from siderite.compute.domain.outcome import Done
from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.outcome import Outcome
from siderite.compute.domain.outcome import Wait
from siderite.compute.domain.power import Power
from siderite.compute.domain.talk import MigrationProgress
from siderite.compute.domain.usage import DiskUsage
from siderite.compute.domain.usage import NicUsage
from siderite.compute.domain.usage import Usage
from siderite.compute.drivers.contract import At
from siderite.compute.drivers.contract import Driver
from siderite.compute.drivers.contract import Guest
from siderite.compute.drivers.contract import ImageFiles
from siderite.compute.drivers.contract import Inventory
from siderite.compute.drivers.contract import Nic
from siderite.compute.drivers.contract import Tell
from siderite.compute.drivers.simulated.guests import Guests
from siderite.compute.drivers.simulated.scripts import Script

ABILITIES = frozenset({
    "pause", "suspend", "rescue", "resize", "live_migrate", "snapshot", "console_log",
    "interfaces", "password", "crash_dump", "power_update", "diagnostics",
    "preserve_ephemeral",
})  # fmt: skip
_OPTIONS = frozenset({"vcpus", "ram_mib", "disk_gib", "traits", "resource_class"})
_ROOT = {"root_device_name": "/dev/vda"}
_UNREACHABLE_S = 2.0
_LOG = (
    "Linux version 6.1.0 (simulated) #1 SMP\n"
    "Command line: console=ttyS0\n"
    "Memory: {ram}K available, {vcpus} processors\n"
    "cloud-init: hostname {hostname}\n"
    "{hostname} login: "
)


class _Simulated:
    """Every part of the contract, over the same guests."""

    def __init__(self, guests: Guests, files: ImageFiles) -> None:
        self._guests = guests
        self._files = files
        self._disks: dict[str, tempfile.TemporaryDirectory[str]] = {}  # by the images they become

    def close(self) -> None:
        """Let go of files."""
        for folder in self._disks.values():
            folder.cleanup()
        self._guests.close()

    def _try(
        self, at: At, guest: Guest, call: str, token: str, effect: Callable[[], None]
    ) -> Outcome:
        """A call that takes its time, may fail, and then has its effect."""
        script = self._guests.script(at.host, guest.uuid)
        if script.unreachable:
            return _unreachable(at)
        why = script.failure(call)
        if why is not None:
            return Failed(why)
        latency = script.latency(self._guests.chance(), call)
        left = self._guests.left(f"{token}/{call}", guest.uuid, call, latency)
        if left > 0:
            return Wait(f"host {at.host} is busy with {call}", max(0.01, left))
        effect()
        return Done()

    def _script(self, at: At, guest: Guest) -> Script:
        return self._guests.script(at.host, guest.uuid)

    # Life

    async def capacity(self, at: At) -> list[Inventory] | Wait | Failed:
        if self._guests.script(at.host, "").unreachable:
            return _unreachable(at)
        size = at.options
        return [
            Inventory(
                node=at.host,
                hypervisor_type="simulated",
                hypervisor_version=1000000,
                vcpus=int(size.get("vcpus", 64)),
                ram_mib=int(size.get("ram_mib", 262144)),
                disk_gib=int(size.get("disk_gib", 8000)),
                traits=frozenset(size.get("traits", "").split()),
                address="127.0.0.1",
                resource_class=size.get("resource_class"),
            )
        ]

    async def spawn(self, at: At, guest: Guest, token: str) -> Outcome:
        seen = self._guests.seen(guest.uuid, at.host)
        if seen is not None and not seen.kept:
            if guest.is_running and seen.power is not Power.RUNNING:
                self._guests.set_power(guest.uuid, at.host, Power.RUNNING)
            return Done(_ROOT)
        power = Power.RUNNING if guest.is_running else Power.SHUTDOWN
        outcome = self._try(
            at, guest, "spawn", token, lambda: self._guests.make(guest.uuid, at.host, power)
        )
        if isinstance(outcome, Failed):  # as elsewhere, what fails half-way leaves a disk
            self._guests.make(guest.uuid, at.host, Power.SHUTDOWN)
            self._guests.keep_disk(guest.uuid, at.host)
        return Done(_ROOT) if isinstance(outcome, Done) else outcome

    async def destroy(self, at: At, guest: Guest, token: str) -> Outcome:
        if self._guests.seen(guest.uuid, at.host) is None:
            return Done()
        return self._try(
            at, guest, "destroy", token, lambda: self._guests.remove(guest.uuid, at.host)
        )

    async def leave(self, at: At, guest: Guest, to: At, token: str) -> Outcome:
        return await self.destroy(at, guest, token)

    async def rebuild(self, at: At, guest: Guest, token: str) -> Outcome:
        power = Power.RUNNING if guest.is_running else Power.SHUTDOWN
        return self._try(
            at, guest, "rebuild", token, lambda: self._guests.make(guest.uuid, at.host, power)
        )

    async def state(self, at: At, guest: Guest) -> Power | None:
        if self._script(at, guest).unreachable:
            return Power.NOSTATE
        seen = self._guests.seen(guest.uuid, at.host)
        return None if seen is None else seen.power

    async def states(self, at: At) -> Mapping[str, Power] | None:
        if self._guests.script(at.host, "").unreachable:
            return None
        return self._guests.of_host(at.host)

    # Power

    def _set(self, at: At, guest: Guest, call: str, token: str, power: Power) -> Outcome:
        if (
            self._guests.seen(guest.uuid, at.host) is None
            and not self._script(at, guest).unreachable
        ):
            return Failed(f"host {at.host} has no guest {guest.name}", elsewhere=False)
        return self._try(
            at, guest, call, token, lambda: self._guests.set_power(guest.uuid, at.host, power)
        )

    async def on(self, at: At, guest: Guest, token: str) -> Outcome:
        return self._set(at, guest, "on", token, Power.RUNNING)

    async def off(self, at: At, guest: Guest, token: str) -> Outcome:
        if await self.state(at, guest) is None:
            return Done()  # as elsewhere: what is not there is off
        return self._set(at, guest, "off", token, Power.SHUTDOWN)

    async def reset(self, at: At, guest: Guest, token: str) -> Outcome:
        return self._set(at, guest, "reset", token, Power.RUNNING)

    async def signal(self, at: At, guest: Guest, left_s: float, token: str) -> Outcome:
        script = self._script(at, guest)
        if script.unreachable:
            return _unreachable(at)
        self._guests.signal(guest.uuid, at.host, script)
        return Done()

    async def pause(self, at: At, guest: Guest, token: str) -> Outcome:
        return self._set(at, guest, "pause", token, Power.PAUSED)

    async def unpause(self, at: At, guest: Guest, token: str) -> Outcome:
        return self._set(at, guest, "unpause", token, Power.RUNNING)

    async def suspend(self, at: At, guest: Guest, token: str) -> Outcome:
        return self._set(at, guest, "suspend", token, Power.SUSPENDED)

    async def resume(self, at: At, guest: Guest, token: str) -> Outcome:
        return self._set(at, guest, "resume", token, Power.RUNNING)

    async def rescue(self, at: At, guest: Guest, image: str | None, token: str) -> Outcome:
        outcome = self._set(at, guest, "rescue", token, Power.RUNNING)
        if isinstance(outcome, Done):
            self._guests.remember(guest.uuid, at.host, _hashed(guest.admin_password or ""))
        return outcome

    async def unrescue(self, at: At, guest: Guest, token: str) -> Outcome:
        return self._set(at, guest, "unrescue", token, Power.RUNNING)

    # To another size or host

    async def prepare(self, at: At, guest: Guest, to: At, token: str) -> Outcome:
        return self._try(
            at, guest, "prepare", token, lambda: self._guests.keep_disk(guest.uuid, at.host)
        )

    async def finish(self, at: At, guest: Guest, source: At, token: str) -> Outcome:
        power = Power.RUNNING if guest.is_running else Power.SHUTDOWN
        return self._try(
            at, guest, "finish", token, lambda: self._guests.make(guest.uuid, at.host, power)
        )

    async def confirm(self, at: At, guest: Guest, token: str) -> Outcome:
        seen = self._guests.seen(guest.uuid, at.host)
        if seen is None or not seen.kept:
            return Done()  # it stayed on its host, and only its size changed
        return self._try(
            at, guest, "confirm", token, lambda: self._guests.remove(guest.uuid, at.host)
        )

    async def revert(self, at: At, guest: Guest, leaving: At, token: str) -> Outcome:
        power = Power.RUNNING if guest.is_running else Power.SHUTDOWN
        if self._guests.script(leaving.host, guest.uuid).unreachable:
            return _unreachable(leaving)

        def effect() -> None:
            if leaving.host != at.host:
                self._guests.remove(guest.uuid, leaving.host)
            self._guests.make(guest.uuid, at.host, power)

        return self._try(at, guest, "revert", token, effect)

    async def live_migrate(self, at: At, guest: Guest, to: At, token: str) -> Outcome:
        seen = self._guests.seen(guest.uuid, at.host)
        if seen is None:
            there = self._guests.seen(guest.uuid, to.host)
            return Done() if there is not None else Failed("the guest is on neither host")

        def effect() -> None:
            self._guests.make(guest.uuid, to.host, seen.power)
            self._guests.remove(guest.uuid, at.host)

        return self._try(at, guest, "live_migrate", token, effect)

    async def abort(self, at: At, guest: Guest, to: At, token: str) -> Outcome:
        """Nothing of a migration is there before it ends."""
        seen = self._guests.seen(guest.uuid, at.host)
        if self._guests.script(to.host, "").unreachable:
            does = Power.RUNNING if guest.is_running else Power.PAUSED
            is_here = seen is not None and seen.power is does
            return Done({"arrived": False, "left": True}) if is_here else _unreachable(to)
        return Done({"arrived": seen is None})

    async def force(self, at: At, guest: Guest, token: str) -> Outcome:
        self._guests.hasten(f"{token}/live_migrate")
        return Done()

    async def progress(self, at: At, guest: Guest) -> MigrationProgress | None:
        left = self._guests.left_of(guest.uuid, "live_migrate")
        if left is None:
            return None
        total = guest.ram_mib << 20
        remaining = total if left > 0 else 0
        return MigrationProgress((total, total - remaining, remaining))

    async def diagnostics(self, at: At, guest: Guest) -> Usage | Failed:
        seen = self._guests.seen(guest.uuid, at.host)
        if seen is None:
            return Failed(f"host {at.host} has no guest of this server")
        ran_s = max(0.0, self._guests.clock() - seen.since) if seen.power is Power.RUNNING else 0.0
        state = {Power.RUNNING: "running", Power.PAUSED: "paused"}.get(seen.power, "shutdown")
        # Clients know a fixed list of drivers: that of the hosts that these stand for is on it.
        return Usage(
            state, "libvirt", "simulated", uptime_s=int(ran_s),
            cpu_times_ns=(int(ran_s * 1e9),) * guest.vcpus, memory_max_mib=guest.ram_mib,
            memory_used_mib=guest.ram_mib // 2 if ran_s else 0,
            disks=(DiskUsage("vda", 0, 0, 0, 0, 0),),
            nics=tuple(NicUsage(f"tap{n}", nic.mac, (0,) * 4, (0,) * 4)
                       for n, nic in enumerate(guest.nics)),
        )  # fmt: skip

    # The rest

    async def fetch(self, at: At, image: str, token: str) -> Outcome:
        script = self._guests.script(at.host, "")
        if script.unreachable:
            return _unreachable(at)
        why = script.failure("fetch")
        return Done() if why is None else Failed(why)

    async def prune(self, at: At, keep_s: float, now: float) -> list[str]:
        return []  # it keeps nothing

    async def snapshot(self, at: At, guest: Guest, image: str, token: str) -> Outcome:
        outcome = self._try(at, guest, "snapshot", token, lambda: None)
        if not isinstance(outcome, Done):
            return outcome
        outcome = await self._files.store(image, self._disk(guest, image), "raw")
        if not isinstance(outcome, Wait):
            self._disks.pop(image).cleanup()
        return outcome

    def _disk(self, guest: Guest, image: str) -> Path:
        """A file of the disk, that is read until it is stored, however often that is asked."""
        is_new = image not in self._disks
        if is_new:
            self._disks[image] = tempfile.TemporaryDirectory()
        path = Path(self._disks[image].name, "disk")
        if is_new:
            path.write_bytes(hashlib.sha256(guest.uuid.encode()).digest() * 16)
        return path

    async def log(self, at: At, guest: Guest, lines: int | None) -> str:
        text = _LOG.format(ram=guest.ram_mib * 1024, vcpus=guest.vcpus, hostname=guest.hostname)
        if lines is None or lines < 0:
            return text
        return "\n".join(text.split("\n")[-lines:]) if lines else ""

    async def attach(self, at: At, guest: Guest, nic: Nic, token: str) -> Outcome:
        return self._try(at, guest, "attach", token, lambda: None)

    async def detach(self, at: At, guest: Guest, nic: Nic, token: str) -> Outcome:
        return self._try(at, guest, "detach", token, lambda: None)

    async def set_password(self, at: At, guest: Guest, password: str, token: str) -> Outcome:
        return self._try(
            at, guest, "set_password", token,
            lambda: self._guests.remember(guest.uuid, at.host, _hashed(password)),
        )  # fmt: skip

    async def crash_dump(self, at: At, guest: Guest, token: str) -> Outcome:
        return self._try(at, guest, "crash_dump", token, lambda: None)

    async def watch(self, at: At, tell: Tell) -> None:
        queue: asyncio.Queue[tuple[str, Power]] = asyncio.Queue()

        def heard(server: str, host: str, power: Power) -> None:
            if host == at.host:
                queue.put_nowait((server, power))

        self._guests.listeners.append(heard)
        try:
            while True:
                await tell(*await queue.get())
        finally:
            self._guests.listeners.remove(heard)


def _hashed(password: str) -> str:
    return hashlib.sha256(password.encode()).hexdigest()


def _unreachable(at: At) -> Wait:
    return Wait(f"host {at.host} does not answer", _UNREACHABLE_S)


def simulated_driver(guests: Guests, files: ImageFiles) -> Driver:
    """The driver over these guests."""
    part = _Simulated(guests, files)
    return Driver(
        DriverCard("simulated", ABILITIES, _OPTIONS),
        life=part, power=part, pause=part, suspend=part, rescue=part, resize=part,
        live_migrate=part, snapshot=part, console_log=part, interfaces=part, password=part,
        crash_dump=part, diagnostics=part, cache=part, watch=part, close=part.close,
    )  # fmt: skip
