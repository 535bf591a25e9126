"""What a project may have: counted where servers are made, resized and deleted."""

from base64 import b64decode
from collections.abc import Mapping
from collections.abc import Sequence

from siderite.compute import store as rows
from siderite.compute.domain.flavor import Flavor
from siderite.compute.domain.server import Server
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.context import Limits
from siderite.compute.usecases.project.quotas import limits_of
from siderite.core.errors import Forbidden
from siderite.core.store import Op

_MORE = ". Delete or shrink some, or ask an administrator for more."
MAX_FILES = 5
MAX_FILE_BYTES = 10240


def _limit(value: int) -> int:
    return rows.UNLIMITED if value < 0 else value


async def check_metadata(ctx: Context, project: str, metadata: Mapping[str, str]) -> None:
    """Refuse more metadata than a server of the project may have."""
    check_items(await limits_of(ctx, project), metadata)


def check_items(limits: Limits, metadata: Mapping[str, str]) -> None:
    """The same, where the limits are known."""
    if 0 <= limits.metadata_items < len(metadata):
        raise Forbidden(
            f"Maximum number of metadata items exceeds {limits.metadata_items}. Delete some, or ask"
            " an administrator for more."
        )


def check_files(files: Sequence[Mapping[str, str]]) -> None:
    """Refuse more files, or larger ones, than a server may be made with."""
    if len(files) > MAX_FILES:
        raise Forbidden(f"A server is made with at most {MAX_FILES} files; use user_data.")
    for file in files:
        if len(b64decode(file["contents"])) > MAX_FILE_BYTES:
            raise Forbidden(
                f"File {file['path'][:80]!r} is over {MAX_FILE_BYTES} bytes; use user_data."
            )


async def how_many(ctx: Context, project: str, flavor: Flavor, *, least: int, most: int) -> int:
    """How many servers of a flavor a project may make now, of those it wants; Forbidden if that is
    fewer than the least.
    """
    limits = await limits_of(ctx, project)
    return await _fitting(ctx, project, flavor, limits, least=least, most=most)


async def _fitting(
    ctx: Context, project: str, flavor: Flavor, limits: Limits, *, least: int, most: int
) -> int:
    used = await rows.usage(ctx.door.store, project) or (0, 0, 0)
    checks = (
        ("instances", used[0], 1, _limit(limits.instances)),
        ("cores", used[1], flavor.vcpus, _limit(limits.cores)),
        ("ram", used[2], flavor.ram_mib, _limit(limits.ram_mib)),
    )
    room = most
    for name, has, each, limit in checks:
        if each == 0:
            continue
        fits = max(0, limit - has) // each
        if fits < least:
            raise Forbidden(
                f"Quota exceeded for {name}: Requested {least * each}, but already used {has} of"
                f" {limit} {name}{_MORE}"
            )
        room = min(room, fits)
    return room


async def take(ctx: Context, project: str, flavor: Flavor, count: int) -> Op:
    """The op that counts new servers, if the quota still allows them."""
    limits = await limits_of(ctx, project)
    await _fitting(ctx, project, flavor, limits, least=count, most=count)
    return rows.use(
        project, instances=count, cores=count * flavor.vcpus, ram_mib=count * flavor.ram_mib,
        limits=(_limit(limits.instances), _limit(limits.cores), _limit(limits.ram_mib)),
    )  # fmt: skip


async def still(ctx: Context, server: Server) -> Op:
    """The op that lets a server that is counted already go on, if its project still may have as
    much as it has.
    """
    limits = await limits_of(ctx, server.project_id)
    used = await rows.usage(ctx.door.store, server.project_id) or (0, 0, 0)
    most = (_limit(limits.instances), _limit(limits.cores), _limit(limits.ram_mib))
    for name, has, limit in zip(("instances", "cores", "ram"), used, most, strict=True):
        if has > limit:
            raise Forbidden(
                f"Quota exceeded for {name}: already used {has} of {limit} {name}{_MORE}"
            )
    return rows.use(server.project_id, instances=0, cores=0, ram_mib=0, limits=most)


async def grow(ctx: Context, server: Server, new: Flavor) -> Op:
    """The op that counts a server in a new size, if the quota allows it."""
    limits = await limits_of(ctx, server.project_id)
    used = await rows.usage(ctx.door.store, server.project_id) or (0, 0, 0)
    counted = server.counted_size
    cores, ram = new.vcpus - counted[0], new.ram_mib - counted[1]
    for name, has, more, limit in (
        ("cores", used[1], cores, _limit(limits.cores)),
        ("ram", used[2], ram, _limit(limits.ram_mib)),
    ):
        if more > 0 and has + more > limit:
            raise Forbidden(
                f"Quota exceeded for {name}: Requested {more}, but already used {has} of {limit}"
                f" {name}{_MORE}"
            )
    most = (
        rows.UNLIMITED,
        _limit(limits.cores) if cores > 0 else rows.UNLIMITED,
        _limit(limits.ram_mib) if ram > 0 else rows.UNLIMITED,
    )
    return rows.use(server.project_id, instances=0, cores=cores, ram_mib=ram, limits=most)


def becomes(server: Server, size: Flavor) -> Op:
    """The op that counts a server in another size than it was counted in, whether or not the quota
    allows it: so it is.
    """
    cores, ram_mib = server.counted_size
    return rows.use(
        server.project_id, instances=0, cores=size.vcpus - cores, ram_mib=size.ram_mib - ram_mib
    )


def give_back(server: Server) -> list[Op]:
    """The op that does not count a server any more, unless that is so already."""
    if server.uncounted:
        return []
    cores, ram_mib = server.counted_size
    return [rows.use(server.project_id, instances=-1, cores=-cores, ram_mib=-ram_mib)]


def count_again(server: Server) -> list[Op]:
    """The op that counts a server that was deleted and is there after all, unless it is counted,
    whether or not the quota allows it: so it is.
    """
    if not server.uncounted:
        return []
    cores, ram_mib = server.counted_size
    return [rows.use(server.project_id, instances=1, cores=cores, ram_mib=ram_mib)]
