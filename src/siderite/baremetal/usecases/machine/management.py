"""What a client asks of a machine and waits for: boot device, lights, media, sensors, NMI.

The node is read, the machine is asked, and nothing is recorded: the machine itself knows.
"""

from collections.abc import Sequence

from siderite.baremetal.domain.hardware import BootDevice
from siderite.baremetal.domain.hardware import BootSetting
from siderite.baremetal.domain.hardware import Indicator
from siderite.baremetal.domain.hardware import Light
from siderite.baremetal.domain.hardware import MediaDevice
from siderite.baremetal.domain.hardware import Medium
from siderite.baremetal.domain.hardware import Sensor
from siderite.baremetal.domain.node import Node
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.life.refusals import check_idle
from siderite.baremetal.usecases.node import find
from siderite.baremetal.usecases.node.find import Guard
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.who import Who


async def boot_devices(ctx: Context, ident: str, who: Who, guard: Guard) -> Sequence[BootDevice]:
    """What the machine can start from."""
    return await ctx.hardware.boot_devices(await find.node(ctx, ident, who, guard))


async def boot_device(ctx: Context, ident: str, who: Who, guard: Guard) -> BootSetting:
    """What the machine starts from."""
    return await ctx.hardware.boot_device(await find.node(ctx, ident, who, guard))


async def set_boot_device(
    ctx: Context, ident: str, device: BootDevice, *, persistent: bool, who: Who, guard: Guard
) -> None:
    """Have the machine start from something else."""
    node = await find.node(ctx, ident, who, guard)
    check_idle(node)
    supported = await ctx.hardware.boot_devices(node)
    if device not in supported:
        raise Invalid(
            f"Invalid boot device {device} specified: node {node.uuid} can start from"
            f" {', '.join(supported)}."
        )
    await ctx.hardware.set_boot_device(node, device, persistent=persistent)


async def inject_nmi(ctx: Context, ident: str, who: Who, guard: Guard) -> None:
    """Have the operating system dump its core."""
    node = await find.node(ctx, ident, who, guard)
    check_idle(node)
    await ctx.hardware.inject_nmi(node)


async def indicators(
    ctx: Context, ident: str, who: Who, guard: Guard
) -> tuple[Node, Sequence[Indicator]]:
    """The machine's lights."""
    node = await find.node(ctx, ident, who, guard)
    return node, await ctx.hardware.indicators(node)


async def indicator(ctx: Context, ident: str, light: str, who: Who, guard: Guard) -> Light:
    """What a light shows, by its `name@component`."""
    node = await find.node(ctx, ident, who, guard)
    found = await _indicator(ctx, node, light)
    return await ctx.hardware.indicator(node, found.component, found.name)


async def set_indicator(
    ctx: Context, ident: str, light: str, to: str, *, who: Who, guard: Guard
) -> None:
    """Have a light show something else."""
    node = await find.node(ctx, ident, who, guard)
    found = await _indicator(ctx, node, light)
    if found.readonly:
        raise Invalid(f"Indicator {light} of node {node.uuid} can only be read.")
    if to not in found.states:
        raise Invalid(f"Indicator {light} can be {', '.join(found.states)}, not {to[:80]!r}.")
    await ctx.hardware.set_indicator(node, found.component, found.name, Light(to))


async def _indicator(ctx: Context, node: Node, light: str) -> Indicator:
    known = await ctx.hardware.indicators(node)
    for found in known:
        if light == f"{found.name}@{found.component}":
            return found
    names = ", ".join(f"{found.name}@{found.component}" for found in known)
    raise NotFound(f"Node {node.uuid} has no indicator {light[:80]!r}; it has: {names or 'none'}.")


async def sensors(ctx: Context, ident: str, who: Who, guard: Guard) -> Sequence[Sensor]:
    """The machine's readings."""
    return await ctx.hardware.sensors(await find.node(ctx, ident, who, guard))


async def media(ctx: Context, ident: str, who: Who, guard: Guard) -> Sequence[Medium]:
    """The machine's virtual media."""
    return await ctx.hardware.media(await find.node(ctx, ident, who, guard))


async def insert(
    ctx: Context, ident: str, device: MediaDevice, image_url: str, *, who: Who, guard: Guard
) -> None:
    """Put an image into the machine."""
    node = await find.node(ctx, ident, who, guard)
    check_idle(node)
    await ctx.hardware.insert(node, device, image_url)


async def eject(
    ctx: Context, ident: str, devices: Sequence[MediaDevice], *, who: Who, guard: Guard
) -> None:
    """Take images out of the machine: of these kinds, or all."""
    node = await find.node(ctx, ident, who, guard)
    check_idle(node)
    for device in devices or [medium.device_type for medium in await ctx.hardware.media(node)]:
        await ctx.hardware.eject(node, device)
