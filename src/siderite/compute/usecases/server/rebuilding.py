"""A server gets a new disk; one that is PENDING gets another try at being placed."""

from collections.abc import Callable
from typing import Any

import msgspec

from siderite.compute.domain.server import Server
from siderite.compute.domain.server_machine import V
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.project import keypairs
from siderite.compute.usecases.project import quota
from siderite.compute.usecases.server import acting
from siderite.compute.usecases.server import find
from siderite.compute.usecases.server.acting import Ask
from siderite.compute.usecases.server.kinds import KINDS
from siderite.core.transition import Cause
from siderite.core.transition import Change
from siderite.core.who import Who

KEEPS = "preserve_ephemeral"
"""Of a rebuild's work: whether the further disk keeps what is on it; a driver's ability too."""


class Rebuild(msgspec.Struct, frozen=True):
    """What changes with the rebuild: fields of the server, and of the request it keeps."""

    changes: dict[str, Any]
    kept: dict[str, Any]
    sets_key: bool = False
    key_name: str | None = None
    is_hard: bool = False
    keeps_ephemeral: bool = False
    sets_password: bool = True
    """Whether its user asked for the password; else one that was made for it is as good."""


async def rebuild(
    ctx: Context, uuid: str, wish: Rebuild, check: Callable[[Server], None], *, who: Who,
    cause: Cause,
) -> Server:  # fmt: skip
    """Have a server made anew from an image."""

    async def decide(change: Change) -> Server:
        server = await find.server(ctx, uuid, who)
        acting.check_lock(server, who)
        hard = Ask("rebuild", {KEEPS: wish.keeps_ephemeral}, is_hard=wish.is_hard)
        if acting.hurries(server, hard):
            check(server)
            _check_ephemeral(ctx, server, wish)
            return await acting.hurry(ctx, change, server, hard, await _changes(ctx, server, wish))
        acting.check_state(server, "rebuild", "rebuild")
        # One that is PENDING was never made: it gets another try at being placed.
        kind = "build" if server.vm_state == V.PENDING else "rebuild"
        acting.check_place(ctx, server, KINDS[kind])
        check(server)
        _check_ephemeral(ctx, server, wish)
        if kind == "build":
            change.put(await quota.still(ctx, server))
        changes = await _changes(ctx, server, wish)
        args = {KEEPS: True} if wish.keeps_ephemeral else {}
        ask = Ask(kind, args, lambda *_: (changes, {}, []), wish.is_hard)
        return acting.begin(ctx, change, server, ask)

    return await ctx.door.attempt(cause, uuid, decide)


def _check_ephemeral(ctx: Context, server: Server, wish: Rebuild) -> None:
    card = ctx.cards.get(server.driver or "")
    if not wish.keeps_ephemeral or not server.flavor.ephemeral_gib or card is None:
        return
    if not card.can(KEEPS):
        raise acting.Unsupported(f"Driver {card.name} cannot keep the ephemeral disk in a rebuild.")


async def _changes(ctx: Context, server: Server, wish: Rebuild) -> dict[str, Any]:
    quota.check_files(wish.kept.get("personality", []))
    await quota.check_metadata(ctx, server.project_id, wish.changes.get("metadata", {}))
    changes = {**wish.changes, **await _key(ctx, server, wish)}
    kept = {**wish.kept, **changes.pop("kept", {})}
    if server.vm_state == V.PENDING and not wish.sets_password:
        kept.pop("admin_password", None)  # it is made as it was asked for
    changes["request"] = msgspec.structs.replace(server.request, **kept)
    return changes


async def _key(ctx: Context, server: Server, wish: Rebuild) -> dict[str, Any]:
    if not wish.sets_key:
        return {}
    if wish.key_name is None:
        return {"key_name": None, "kept": {"public_key": None}}
    key = await keypairs.public_key(ctx, server.user_id, wish.key_name)
    return {"key_name": wish.key_name, "kept": {"public_key": key}}
