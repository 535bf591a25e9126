"""Images that hosts are to have before a server needs them: work for each image on each host."""

from collections.abc import Sequence

import msgspec

from siderite.compute.domain import record_facts as facts
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.fleet import aggregates
from siderite.core import work
from siderite.core.errors import Conflict
from siderite.core.log import get_logger
from siderite.core.transition import Cause
from siderite.core.work import Work

KIND = "cache_image"
PATIENCE_S = 24 * 3600.0
"""For so long it is tried: a host may be away, an image large."""
_AT_ONCE = 500
"""So many pieces of work go into one commit."""
log = get_logger("images")


class Wanted(msgspec.Struct, frozen=True):
    """An image that a host is to have; which of how many that were asked for together."""

    aggregate: str
    image: str
    host: str
    index: int
    total: int


async def ask(ctx: Context, number: str, images: Sequence[str], *, cause: Cause) -> None:
    """Have the hosts of an aggregate fetch these images. What is on its way goes on."""
    known, aggregate = await aggregates.one(ctx, number)
    if not aggregate.hosts:
        raise Conflict(f"Aggregate {known} has no hosts; add some first.")
    pairs = [(host, image) for host in aggregate.hosts for image in images]
    wanted = [
        Wanted(aggregate.uuid, image, host, index, len(pairs))
        for index, (host, image) in enumerate(pairs, start=1)
    ]
    for first in range(0, len(wanted), _AT_ONCE):
        change = ctx.door.change(cause)
        if not first:
            change.tell(facts.caching(aggregate, known))
        for one in wanted[first : first + _AT_ONCE]:
            change.work(
                work.add(
                    f"image:{one.image}@{one.host}", "cache", KIND,
                    job=msgspec.json.encode(one).decode(), now=change.now,
                    deadline=change.now + PATIENCE_S, request_id=cause.request_id,
                    reason=f"host {one.host} is to have image {one.image}",
                )
            )  # fmt: skip
        await ctx.door.commit(change)


async def ended(ctx: Context, held: Work, wanted: Wanted, why_not: str | None) -> None:
    """The host has it; or it will not, for this reason."""
    change = ctx.door.change(Cause(held.request_id))
    change.put(work.done(held))
    for known, aggregate in await aggregates.every(ctx):
        if aggregate.uuid == wanted.aggregate:  # unless it is gone meanwhile
            done, place = (wanted.host, wanted.image), (wanted.index, wanted.total)
            change.tell(facts.cached(aggregate, known, done, place, has_it=why_not is None))
    await ctx.door.commit(change)
    if why_not is None:
        log.info("cached an image ahead", host=wanted.host, image=wanted.image)
    else:
        log.warning("cannot cache an image", host=wanted.host, image=wanted.image, error=why_not)
