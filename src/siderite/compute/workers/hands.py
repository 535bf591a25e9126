"""What a step of work has at hand: the server's driver, host and guest."""

import asyncio
from typing import Any

import msgspec

from siderite.compute.domain.flavor import Flavor
from siderite.compute.domain.host import Host
from siderite.compute.domain.image import ImageSource
from siderite.compute.domain.network import Network
from siderite.compute.domain.network import Port
from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.outcome import Wait
from siderite.compute.domain.power import Power
from siderite.compute.domain.server import Server
from siderite.compute.domain.server_machine import V
from siderite.compute.drivers.contract import At
from siderite.compute.drivers.contract import Driver
from siderite.compute.drivers.contract import Drivers
from siderite.compute.drivers.contract import Guest
from siderite.compute.drivers.contract import Nic
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.fleet import hosts
from siderite.compute.usecases.server.progress import Run

_REMEMBERED_S = 5.0
_APART_S = 10.0
_TWO = 2


class Asking(msgspec.Struct, frozen=True):
    """Hosts are asked by one at a time; when each was asked last, by its name."""

    turn: asyncio.Lock = msgspec.field(default_factory=asyncio.Lock)
    at: dict[str, float] = msgspec.field(default_factory=dict)


class Hands(msgspec.Struct, frozen=True):
    """The parts that every step may need."""

    ctx: Context
    drivers: Drivers
    images: ImageSource
    known: dict[str, tuple[float, Host]] = msgspec.field(default_factory=dict)
    asking: Asking = msgspec.field(default_factory=Asking)
    groups: frozenset[str] | None = None
    """The conductor groups whose hosts this process acts on, besides those of none; None is all."""

    def serves(self, host: Host) -> bool:
        """Whether this process acts on a host."""
        group = host.conductor_group
        return not group or self.groups is None or group in self.groups

    async def host(self, name: str) -> Host | None:
        """A host by its name, remembered for a moment: it may be removed and added elsewhere. One
        of a group is not, where that matters: it may be another's now.
        """
        now = self.ctx.door.clock()
        seen, known = self.known.get(name, (0.0, None))
        if known is not None and 0 <= now - seen < _REMEMBERED_S:
            return known
        found = await hosts.named(self.ctx, name)
        if found is None:
            self.known.pop(name, None)
        elif self.groups is None or not found.conductor_group:
            self.known[name] = (now, found)
        return found

    async def is_forced_down(self, name: str) -> bool:
        """Whether an administrator has forced a host down, as of now: who goes by what is
        remembered leaves a guest on a host that is up.
        """
        found = await hosts.named(self.ctx, name)
        return found is not None and found.forced_down


class Place(msgspec.Struct, frozen=True):
    """Where a step acts: the driver and the host's address."""

    driver: Driver
    at: At


class NotOurs(Exception):
    """A host that workers of another conductor group act on. `done` is what the step has done so
    far on others, for the job's `args`.
    """

    def __init__(self, host: Host, **done: Any) -> None:
        super().__init__(
            f"host {host.name} is for workers of the conductor group {host.conductor_group}"
        )
        self.host = host
        self.done = done


async def place_of(hands: Hands, name: str | None) -> Place | Failed:
    """The driver and address of a host; `NotOurs` if it is for other workers."""
    host = None if name is None else await hands.host(name)
    if host is None:
        return Failed(f"host {name} is not known (any more)")
    if not hands.serves(host):
        raise NotOurs(host)
    driver = hands.drivers.get(host.driver)
    if driver is None:
        return Failed(f"driver {host.driver} of host {name} is not there (any more)")
    return Place(driver, At(host.name, host.uri, host.options))


async def is_lost(hands: Hands, place: Place, guest: Guest) -> bool:
    """Whether an administrator has forced a host down, and it does not tell what the guest does
    there: what is to be removed there is removed when it is back, which may be never.
    """
    if not await hands.is_forced_down(place.at.host):
        return False
    return await place.driver.life.state(place.at, guest) is Power.NOSTATE


async def is_at_home(hands: Hands, server: Server) -> bool:
    """Whether a guest that was to move alive is known to run where it came from, so that what there
    may be of it at the other end is of no use.
    """
    home = await place_of(hands, server.host)
    if isinstance(home, Failed):
        return False
    power = await home.driver.life.state(home.at, guest_of(hands, server))
    return power in (Power.RUNNING, Power.PAUSED)


async def apart(hands: Hands, *names: str | None) -> Wait | None:
    """Whether these hosts, on which one process has to act, have come to be of different conductor
    groups: that waits until they are of one, or a worker of both takes it.
    """
    found = [await hands.host(name) for name in names if name is not None]
    there = {host.conductor_group: host for host in found if host and host.conductor_group}
    if len(there) < _TWO or all(hands.serves(host) for host in there.values()):
        return None
    told = " and ".join(f"{host.name} ({group})" for group, host in sorted(there.items()))
    return Wait(f"{told} are of different conductor groups: give them the same one", _APART_S)


def guest_of(
    hands: Hands,
    server: Server,
    *,
    flavor: Flavor | None = None,
    node: str | None = None,
    zone: str | None = None,
    image: str | None = None,
    is_running: bool | None = None,
) -> Guest:
    """The server as drivers see it, in its own size, node, zone and image or in others."""
    size = flavor or server.flavor
    request = server.request
    running = server.vm_state != V.STOPPED if is_running is None else is_running
    return Guest(
        uuid=server.uuid,
        name=server.instance_name,
        display_name=server.name,
        hostname=server.hostname,
        project=server.project_id,
        node=node or server.node or "",
        vcpus=size.vcpus,
        ram_mib=size.ram_mib,
        disk_gib=size.disk_gib,
        ephemeral_gib=size.ephemeral_gib,
        swap_mib=size.swap_mib,
        image=image or server.image_id,
        image_properties={} if server.image is None else server.image.properties,
        nics=tuple(nic_of(hands.ctx.network(port.network), port) for port in server.ports),
        metadata=server.metadata,
        user_data=request.user_data,
        public_key=request.public_key,
        key_name=server.key_name,
        admin_password=request.admin_password,
        availability_zone=zone or server.availability_zone,
        launch_index=server.launch_index,
        files=tuple((file["path"], file["contents"]) for file in request.personality),
        is_running=running,
    )


def nic_of(network: Network | None, port: Port) -> Nic:
    """A port as drivers see it."""
    if network is None:
        return Nic(port.id, port.network, "user", "", port.mac, port.address, 24, tag=port.tag)
    return Nic(
        port.id, network.name, network.kind, network.target, port.mac, port.address,
        network.range.prefixlen, network.gateway, port.tag,
    )  # fmt: skip


def is_late(hands: Hands, run: Run) -> bool:
    """Whether the work's time is over."""
    return hands.ctx.door.clock() >= run.held.deadline
