"""What a driver is: small Protocols. What a driver cannot do, it does not have.

A driver works on hosts (a row: name, driver, address) and on guests (all that it may need to know
of a server). Every call may be repeated: after a crash the worker asks again with the same token,
and the driver answers how that run is going, or finds that its effect is there. No call waits
longer than a round trip or so: a long thing answers `Wait(reason, again_in)` and is asked again.
`Failed` is for what cannot be done; whatever a driver raises is tried again until the deadline.

A host that does not answer is no failure: `Wait`. What it runs is then `Power.NOSTATE`, never off.
"""

from collections.abc import Awaitable
from collections.abc import Callable
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from siderite.compute.domain.driver_card import DriverCard
from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.outcome import Outcome
from siderite.compute.domain.outcome import Wait
from siderite.compute.domain.power import Power
from siderite.compute.domain.talk import MigrationProgress
from siderite.compute.domain.usage import Usage

CLIENT_PATIENCE_S = 20.0
"""How long a client waits for what is asked on its behalf; later it cannot be told what became of
it.
"""


class At(msgspec.Struct, frozen=True):
    """The host to act on. `options` are what was said when it was added."""

    host: str
    uri: str = ""
    options: Mapping[str, str] = msgspec.field(default_factory=dict)


class Nic(msgspec.Struct, frozen=True):
    """One network interface. `kind` is `user`, `network` (libvirt's) or `bridge`, and `target` the
    network's or bridge's name on the host; simulated hosts take any.
    """

    port: str
    network: str
    kind: str
    target: str
    mac: str
    address: str
    prefix: int
    gateway: str | None = None
    tag: str | None = None
    """What the guest knows it by."""


class Guest(msgspec.Struct, frozen=True):
    """All that a driver needs to know of a server; sizes as in its flavor."""

    uuid: str
    name: str
    """The domain's name: instance-0000002a."""
    display_name: str
    hostname: str
    project: str
    node: str
    """Which of the host's hypervisor nodes (bare metal: the node's UUID)."""
    vcpus: int
    ram_mib: int
    disk_gib: int
    ephemeral_gib: int = 0
    swap_mib: int = 0
    image: str | None = None
    image_properties: Mapping[str, str] = msgspec.field(default_factory=dict)
    nics: tuple[Nic, ...] = ()
    metadata: Mapping[str, str] = msgspec.field(default_factory=dict)
    user_data: str | None = None
    """Base64, as it was sent."""
    public_key: str | None = None
    key_name: str | None = None
    admin_password: str | None = None
    availability_zone: str = ""
    launch_index: int = 0
    """Which of those that were asked for together."""
    files: tuple[tuple[str, str], ...] = ()
    """Paths within the guest, and their contents in base64."""
    is_running: bool = True
    """Whether it should run when the call is done (spawn, resize, rebuild)."""
    keeps_ephemeral: bool = False
    """Whether a rebuild leaves its ephemeral disk as it is."""


class Inventory(msgspec.Struct, frozen=True):
    """What one hypervisor node offers. A virtual host has one; a bare metal host one per node,
    with `resource_class` set, and offers it whole.
    """

    node: str
    hypervisor_type: str
    hypervisor_version: int
    vcpus: int
    ram_mib: int
    disk_gib: int
    resource_class: str | None = None
    traits: frozenset[str] = frozenset()
    address: str = ""
    cpu_info: str = "{}"
    is_available: bool = True
    why_not: str | None = None


class ImageFiles(Protocol):
    """Where drivers get image files from, and put snapshots."""

    async def local(self, image: str) -> Path | Wait | Failed:
        """A readable file with the image's bytes on this machine; it must not be changed. An image
        from elsewhere is fetched into a cache first (`Wait` while it comes).
        """
        ...

    async def store(self, image: str, source: Path, disk_format: str) -> Outcome:
        """Make the file the contents of an image that waits for them; it is read, as long as the
        answer is `Wait`, and not kept.
        """
        ...


class Life(Protocol):
    """What every driver can do."""

    async def capacity(self, at: At) -> list[Inventory] | Wait | Failed:
        """What the host offers now."""
        ...

    async def spawn(self, at: At, guest: Guest, token: str) -> Outcome:
        """Make the guest from its image, and start it unless it should be off. `found` may have
        the server's `root_device_name`.
        """
        ...

    async def destroy(self, at: At, guest: Guest, token: str) -> Outcome:
        """Stop the guest at once and leave nothing of it; it need not be there."""
        ...

    async def leave(self, at: At, guest: Guest, to: At, token: str) -> Outcome:
        """The guest is on `to`: leave nothing of it on `at` but files that both hosts share."""
        ...

    async def rebuild(self, at: At, guest: Guest, token: str) -> Outcome:
        """Give the guest a new disk from its (new) image; it is off, and starts if it should."""
        ...

    async def state(self, at: At, guest: Guest) -> Power | None:
        """What it does now; None if the host has no such guest, NOSTATE if it cannot be told."""
        ...

    async def states(self, at: At) -> Mapping[str, Power] | None:
        """All guests of the host by their UUID, in one call; None if it cannot be told."""
        ...


class PowerSwitch(Protocol):
    """Power, step by step: the worker does the timing."""

    async def on(self, at: At, guest: Guest, token: str) -> Outcome:
        """Start it, if it does not run."""
        ...

    async def off(self, at: At, guest: Guest, token: str) -> Outcome:
        """Pull the plug."""
        ...

    async def signal(self, at: At, guest: Guest, left_s: float, token: str) -> Outcome:
        """Ask the guest to shut down (ACPI or its agent), once; Done when the signal is sent. How
        the guest takes it, `state` tells. It has `left_s` seconds before the plug is pulled.
        """
        ...

    async def reset(self, at: At, guest: Guest, token: str) -> Outcome:
        """Off and on at once, with its devices made anew."""
        ...


class Pause(Protocol):
    """Stop its processors, keep its memory."""

    async def pause(self, at: At, guest: Guest, token: str) -> Outcome: ...
    async def unpause(self, at: At, guest: Guest, token: str) -> Outcome: ...


class Suspend(Protocol):
    """Memory to disk and back."""

    async def suspend(self, at: At, guest: Guest, token: str) -> Outcome: ...
    async def resume(self, at: At, guest: Guest, token: str) -> Outcome: ...


class Rescue(Protocol):
    """Another system in place of its own, whose disk is attached second. It is off before."""

    async def rescue(self, at: At, guest: Guest, image: str | None, token: str) -> Outcome: ...
    async def unrescue(self, at: At, guest: Guest, token: str) -> Outcome: ...


GONE = "gone"


class Resize(Protocol):
    """To another size, host or both, with a way back. The guest is off before."""

    async def prepare(self, at: At, guest: Guest, to: At, token: str) -> Outcome:
        """Keep the guest's disk for a way back, and let `to` have it."""
        ...

    async def finish(self, at: At, guest: Guest, source: At, token: str) -> Outcome:
        """Make the guest on `at` in its new size, and start it if it should run."""
        ...

    async def confirm(self, at: At, guest: Guest, token: str) -> Outcome:
        """Delete what was kept on the source; `guest` as it is from now on."""
        ...

    async def revert(self, at: At, guest: Guest, leaving: At, token: str) -> Outcome:
        """Undo on `leaving` what `finish` made there, and bring back what was kept. `found` has
        `gone` as true if there was nothing to bring back: somebody has deleted it.
        """
        ...


class LiveMigrate(Protocol):
    """To another host while it runs."""

    async def live_migrate(self, at: At, guest: Guest, to: At, token: str) -> Outcome: ...

    async def abort(self, at: At, guest: Guest, to: At, token: str) -> Outcome:
        """End the migration of this token and leave nothing of it on `to`. Done when the guest is
        in one place; `found` has `arrived`: whether that is `to`, since it was faster. Done too
        if it runs on where it was, and `to` does not answer: then `found` has `left`, and what
        there may be of it is to be removed later.
        """
        ...

    async def force(self, at: At, guest: Guest, token: str) -> Outcome:
        """Have the migration of this token end soon, at the cost of a pause."""
        ...

    async def progress(self, at: At, guest: Guest) -> MigrationProgress | None:
        """How far it is; None if it cannot be told."""
        ...


class Snapshot(Protocol):
    """Its disk as an image."""

    async def snapshot(self, at: At, guest: Guest, image: str, token: str) -> Outcome:
        """Store the guest's disk as the contents of the image, which waits for them."""
        ...


class ConsoleLog(Protocol):
    """What the guest printed."""

    async def log(self, at: At, guest: Guest, lines: int | None) -> str: ...


class ConsoleAddress(msgspec.Struct, frozen=True):
    """Where a console listens: a TCP port as seen from this process, or from where a command leads
    whose input and output are then the connection.
    """

    host: str
    port: int
    command: tuple[str, ...] = ()


class Console(Protocol):
    """Its screen or serial line."""

    async def console(self, at: At, guest: Guest, kind: str) -> ConsoleAddress | Failed: ...


class Diagnostics(Protocol):
    """What a guest has used so far."""

    async def diagnostics(self, at: At, guest: Guest) -> Usage | Failed: ...


class Interfaces(Protocol):
    """Network interfaces that come and go while it lives. A client waits for it: a guest that does
    not let go of one is `Failed` well within its patience.
    """

    async def attach(self, at: At, guest: Guest, nic: Nic, token: str) -> Outcome: ...
    async def detach(self, at: At, guest: Guest, nic: Nic, token: str) -> Outcome: ...


class Password(Protocol):
    """The administrator's password inside the guest."""

    async def set_password(self, at: At, guest: Guest, password: str, token: str) -> Outcome: ...


class CrashDump(Protocol):
    """A non-maskable interrupt, so that the guest dumps itself."""

    async def crash_dump(self, at: At, guest: Guest, token: str) -> Outcome: ...


class Cache(Protocol):
    """Images that a host keeps for its guests."""

    async def fetch(self, at: At, image: str, token: str) -> Outcome:
        """Have the image there before a guest needs it."""
        ...

    async def prune(self, at: At, keep_s: float, now: float) -> list[str]:
        """Remove those that no guest has stood on for so many seconds, as seen by calls like this
        one; what was removed.
        """
        ...


class Stalls(Protocol):
    """Guests that stand still as their host's disk was full when they wrote."""

    async def stalled(self, at: At) -> list[str]:
        """Those that could go on, as there is room again, by their servers' UUIDs."""
        ...


Tell = Callable[[str, Power], Awaitable[None]]
"""A guest, by its server's UUID, is now in this power state."""


class Watch(Protocol):
    """Hears of guests that stop or start by themselves."""

    async def watch(self, at: At, tell: Tell) -> None:
        """Until cancelled. A hint only: whoever is told asks `state` before acting."""
        ...


class Driver(msgspec.Struct, frozen=True):
    """A kind of hypervisor: its card for others to read, and what it can do."""

    card: DriverCard
    life: Life
    power: PowerSwitch
    pause: Pause | None = None
    suspend: Suspend | None = None
    rescue: Rescue | None = None
    resize: Resize | None = None
    live_migrate: LiveMigrate | None = None
    snapshot: Snapshot | None = None
    console_log: ConsoleLog | None = None
    console: Console | None = None
    interfaces: Interfaces | None = None
    password: Password | None = None
    crash_dump: CrashDump | None = None
    diagnostics: Diagnostics | None = None
    cache: Cache | None = None
    stalls: Stalls | None = None
    watch: Watch | None = None
    close: Callable[[], None] | None = None
    knows_all: bool = False
    """Whether a guest that is missing from a host's `states` is certainly not there."""


Drivers = Mapping[str, Driver]
"""By the name that hosts have in their `driver` field."""
