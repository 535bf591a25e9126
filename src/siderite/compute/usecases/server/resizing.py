"""Another size or host is asked for."""

from typing import Any

import msgspec

from siderite.compute.domain.flavor import Flavor
from siderite.compute.domain.server import Server
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.fleet import hosts
from siderite.compute.usecases.project import flavors
from siderite.compute.usecases.project import quota
from siderite.compute.usecases.server import acting
from siderite.compute.usecases.server import find
from siderite.compute.usecases.server.acting import Ask
from siderite.compute.usecases.server.kinds import KINDS
from siderite.core.errors import Invalid
from siderite.core.errors import SideriteError
from siderite.core.transition import Cause
from siderite.core.transition import Change
from siderite.core.who import Who


async def resize(
    ctx: Context, uuid: str, ref: str, *, who: Who, cause: Cause, is_hard: bool,
    fields: dict[str, Any],
) -> Server:  # fmt: skip
    """Have a server resized; its project's quota counts the new size from now on."""

    async def decide(change: Change) -> Server:
        server = await find.server(ctx, uuid, who)
        acting.check_lock(server, who)
        new = await flavors.for_server(ctx, ref, who)
        size = msgspec.to_builtins(msgspec.structs.replace(new, projects=[]))
        changes = {**fields, "counted": (new.vcpus, new.ram_mib)}
        wish = Ask("resize", {"flavor": size}, lambda *_: (changes, {}, []), is_hard)
        if acting.hurries(server, wish):
            return await acting.hurry(ctx, change, server, wish)
        acting.check_state(server, "resize", "resize")
        _check_size(server, new)
        acting.check_place(ctx, server, KINDS["resize"])
        await acting.check_up(ctx, server, KINDS["resize"])
        change.put(await quota.grow(ctx, server, new))
        return acting.begin(ctx, change, server, wish)

    return await ctx.door.attempt(cause, uuid, decide)


def _check_size(server: Server, new: Flavor) -> None:
    if new.uuid == server.flavor.uuid:
        raise Invalid("When resizing, instances must change flavor! Choose another one.")
    old = server.flavor
    if new.resource_class is not None or old.resource_class is not None:
        raise Invalid("A bare metal server cannot be resized; rebuild or replace it.")
    if new.disk_gib < old.disk_gib or new.ephemeral_gib < old.ephemeral_gib:
        raise Invalid(
            "Resize to a smaller disk is not possible; choose a flavor with a larger one."
        )


async def check_host(
    ctx: Context, name: str | None, *, missing: type[SideriteError] = Invalid
) -> None:
    """A host that is asked for must be there."""
    if name is not None and await hosts.named(ctx, name) is None:
        raise find.missing_host(name, missing)
