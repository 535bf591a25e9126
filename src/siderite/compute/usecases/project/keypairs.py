"""Keypairs: imported or made for a user, listed, forgotten."""

from siderite.compute import record_store as rows
from siderite.compute.domain import record_facts as facts
from siderite.compute.domain.keypair import Keypair
from siderite.compute.domain.keypair import fingerprint
from siderite.compute.record_store import KEYPAIRS
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.project.quotas import limits_of
from siderite.core.errors import Conflict
from siderite.core.errors import Forbidden
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.ids import new_uuid
from siderite.core.store import Duplicate
from siderite.core.times import iso
from siderite.core.transition import Cause
from siderite.core.transition import Change


async def public_key(ctx: Context, user: str, name: str) -> str:
    """The key that a request's body names: one that is not there is a wrong body."""
    found = await rows.keypair(ctx.door.store, user, name)
    if found is None:
        raise Invalid("Invalid key_name provided. `keypair list` shows those that you have.")
    return found[1].public_key


async def find(ctx: Context, user: str, name: str) -> tuple[int, Keypair]:
    """A user's key, and its number."""
    found = await rows.keypair(ctx.door.store, user, name)
    if found is None:
        raise NotFound(
            f"Keypair {name[:255]} not found for user {user}. `keypair list` shows those there are."
        )
    return found


async def page(ctx: Context, user: str, marker: str | None, limit: int | None) -> list[Keypair]:
    """A user's keys by name."""
    if marker is not None and await rows.keypair(ctx.door.store, user, marker) is None:
        raise Invalid(f"marker [{marker[:255]}] not found. Ask from the start.")
    return await rows.keypairs(ctx.door.store, user, after=marker, limit=limit)


async def may_add(ctx: Context, user: str, project: str | None, name: str) -> None:
    """Refuse a key too many, and a name that is taken, before one is made."""
    limit = (await limits_of(ctx, project or "")).key_pairs
    if 0 <= limit <= await rows.count(ctx.door.store, "keypairs", "user_id", user):
        raise Forbidden(f"Quota exceeded, too many key pairs: {limit} are allowed; delete one.")
    if await rows.keypair(ctx.door.store, user, name) is not None:
        raise _taken(name)


async def add(
    ctx: Context, user: str, name: str, *, kind: str, public_key: str, is_made: bool, cause: Cause
) -> Keypair:
    """A user's new key; `is_made` if the service made it, else it was imported."""

    async def decide(change: Change) -> Keypair:
        await may_add(ctx, user, cause.project, name)  # others may have been added meanwhile
        key = Keypair(
            uuid=new_uuid(), created_at=iso(change.now), user_id=user, name=name, kind=kind,
            public_key=public_key, fingerprint=fingerprint(public_key, kind),
        )  # fmt: skip
        change.put(KEYPAIRS.insert(key))
        change.tell(*facts.keypair("create" if is_made else "import", key))
        return key

    try:
        return await ctx.door.attempt(cause, f"keypairs:{user}", decide)
    except Duplicate as clash:
        raise _taken(name) from clash


async def remove(ctx: Context, user: str, name: str, *, cause: Cause) -> None:
    """Forget a key; servers that have it keep it."""

    async def decide(change: Change) -> None:
        _, key = await find(ctx, user, name)
        change.put(KEYPAIRS.remove(key))
        change.tell(*facts.keypair("delete", key))

    await ctx.door.attempt(cause, f"keypairs:{user}", decide)


def _taken(name: str) -> Conflict:
    return Conflict(f"Key pair '{name}' already exists. Choose another name, or delete it.")
