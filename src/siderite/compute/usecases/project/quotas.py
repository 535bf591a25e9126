"""How much each project may have: the defaults, and what was set for one."""

from collections.abc import Mapping

from msgspec.structs import asdict
from msgspec.structs import replace

from siderite.compute import record_store as rows
from siderite.compute.store import usage
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.context import Limits
from siderite.core.errors import Invalid
from siderite.core.transition import Cause

NAMES = {
    "instances": "instances", "cores": "cores", "ram": "ram_mib", "key_pairs": "key_pairs",
    "metadata_items": "metadata_items", "server_groups": "server_groups",
    "server_group_members": "server_group_members",
}  # fmt: skip
"""What the wire calls a limit, and what it is called here."""


async def limits_of(ctx: Context, project: str) -> Limits:
    """A project's limits as they were set, over the installation's defaults."""
    every, own = await rows.limits(ctx.door.store, project)
    defaults = ctx.settings.limits
    return replace(defaults, **{**every, **own}) if every or own else defaults


def shown(limits: Limits) -> dict[str, int]:
    """Limits by their names on the wire."""
    held = asdict(limits)
    return {name: held[own] for name, own in NAMES.items()}


async def limits(ctx: Context, project: str) -> dict[str, int]:
    """The same by their names on the wire."""
    return shown(await limits_of(ctx, project))


async def used(ctx: Context, project: str) -> dict[str, int]:
    """What a project has of each; keys are their users'."""
    store = ctx.door.store
    instances, cores, ram = await usage(store, project) or (0, 0, 0)
    return {
        "instances": instances,
        "cores": cores,
        "ram": ram,
        "key_pairs": 0,
        "metadata_items": 0,
        "server_groups": await rows.count(store, "server_groups", "project_id", project),
        "server_group_members": 0,
    }


async def update(
    ctx: Context, project: str, values: Mapping[str, int], *, force: bool, cause: Cause
) -> dict[str, int]:
    """Set limits of a project, or the defaults; all of them as they are then."""
    if project != rows.DEFAULTS and not force:
        has = await used(ctx, project)
        for name, value in values.items():
            if 0 <= value < has[name]:
                raise Invalid(
                    f"Quota limit {value} for {name} must be greater than or equal to already used"
                    f" and reserved {has[name]}; force it, or free some first."
                )
    change = ctx.door.change(cause)
    for name, value in values.items():
        change.put(rows.set_limit(project, NAMES[name], value))
    await ctx.door.commit(change)
    return await limits(ctx, project)


async def reset(ctx: Context, project: str, *, cause: Cause) -> None:
    """The defaults hold for the project again."""
    change = ctx.door.change(cause)
    change.put(rows.forget_limits(project))
    await ctx.door.commit(change)
