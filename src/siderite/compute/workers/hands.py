"""What a step of work has at hand: the server's driver, host and guest."""

import asyncio
from dataclasses import dataclass
from dataclasses import field

from siderite.compute.domain.flavor import Flavor
from siderite.compute.domain.host import Host
from siderite.compute.domain.image import ImageSource
from siderite.compute.domain.network import Network
from siderite.compute.domain.network import Port
from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.server import Server
from siderite.compute.domain.server_machine import V
from siderite.compute.drivers.contract import At
from siderite.compute.drivers.contract import Driver
from siderite.compute.drivers.contract import Drivers
from siderite.compute.drivers.contract import Guest
from siderite.compute.drivers.contract import Nic
from siderite.compute.usecases import hosts
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.progress import Run

_REMEMBERED_S = 5.0


@dataclass(frozen=True, slots=True)
class Asking:
    """Hosts are asked by one at a time; when each was asked last, by its name."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    at: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hands:
    """The parts that every step may need."""

    ctx: Context
    drivers: Drivers
    images: ImageSource
    known: dict[str, tuple[float, Host]] = field(default_factory=dict)
    asking: Asking = field(default_factory=Asking)

    async def host(self, name: str) -> Host | None:
        """A host by its name, remembered for a moment: it may be removed and added elsewhere."""
        now = self.ctx.door.clock()
        seen, known = self.known.get(name, (0.0, None))
        if known is not None and now - seen < _REMEMBERED_S:
            return known
        found = await hosts.named(self.ctx, name)
        if found is None:
            self.known.pop(name, None)
        else:
            self.known[name] = (now, found)
        return found


@dataclass(frozen=True, slots=True)
class Place:
    """Where a step acts: the driver and the host's address."""

    driver: Driver
    at: At


async def place_of(hands: Hands, name: str | None) -> Place | Failed:
    """The driver and address of a host."""
    host = None if name is None else await hands.host(name)
    if host is None:
        return Failed(f"host {name} is not known (any more)")
    driver = hands.drivers.get(host.driver)
    if driver is None:
        return Failed(f"driver {host.driver} of host {name} is not there (any more)")
    return Place(driver, At(host.name, host.uri, host.options))


def guest_of(
    hands: Hands,
    server: Server,
    *,
    flavor: Flavor | None = None,
    node: str | None = None,
    image: str | None = None,
    is_running: bool | None = None,
) -> Guest:
    """The server as drivers see it, in its own size, node and image or in others."""
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
        extra_specs=size.extra_specs,
        image=image or server.image_id,
        image_properties={} if server.image is None else server.image.properties,
        nics=tuple(nic_of(hands.ctx.network(port.network), port) for port in server.ports),
        metadata=server.metadata,
        user_data=request.user_data,
        public_key=request.public_key,
        key_name=server.key_name,
        admin_password=request.admin_password,
        availability_zone=server.availability_zone,
        launch_index=server.launch_index,
        files=tuple((file["path"], file["contents"]) for file in request.personality),
        config_drive=True,
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
