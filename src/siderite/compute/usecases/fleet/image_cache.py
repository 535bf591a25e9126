"""Images that hosts are to have before a server needs them: work that goes from host to host."""

from collections.abc import Sequence

import msgspec

from siderite.compute.domain import record_facts as facts
from siderite.compute.domain.record_facts import Cached
from siderite.compute.record_store import AGGREGATES
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.fleet.aggregates import Numbered
from siderite.core import work
from siderite.core.errors import Invalid
from siderite.core.ids import new_uuid
from siderite.core.log import get_logger
from siderite.core.transition import Cause
from siderite.core.work import Work

KIND = "cache_image"
PATIENCE_S = 24 * 3600.0
"""For so long it is tried: a host may be away, an image large."""
log = get_logger("images")


class Wanted(msgspec.Struct, frozen=True):
    """Images that hosts are to have: those that are left, the next one first, of how many."""

    aggregate: str
    number: int
    images: list[str]
    hosts: list[str]
    total: int

    @property
    def reason(self) -> str:
        """Why there is work."""
        return f"host {self.hosts[0]} is to have images ahead of servers"

    def job(self) -> str:
        """As work keeps it."""
        return msgspec.json.encode(self).decode()

    def last(self) -> "Wanted":
        """The next host is away: the others go before it."""
        away, *others = self.hosts
        return msgspec.structs.replace(self, hosts=[*others, away])


async def ask(ctx: Context, found: Numbered, images: Sequence[str], *, cause: Cause) -> None:
    """Have the hosts of an aggregate fetch these images, one host after the other: what servers
    need at once is not to wait for it.
    """
    known, aggregate = found
    hosts = list(aggregate.hosts)
    if not hosts:
        raise Invalid(f"Aggregate {known} has no hosts; add some first.")
    wanted = Wanted(aggregate.uuid, known, list(images), hosts, len(hosts))
    change = ctx.door.change(cause)
    change.tell(facts.caching("start", aggregate, known))
    change.work(
        work.add(
            f"images:{new_uuid()}", "cache", KIND, job=wanted.job(), now=change.now,
            deadline=change.now + PATIENCE_S, reason=wanted.reason, request_id=cause.request_id,
        )
    )  # fmt: skip
    await ctx.door.commit(change)


async def done(
    ctx: Context, held: Work, wanted: Wanted, found: Sequence[Cached], left: Sequence[str]
) -> None:
    """Some hosts have what they could get; the work goes on with those that are left."""
    change = ctx.door.change(Cause(held.request_id))
    aggregate = await AGGREGATES.get(ctx.door.store, wanted.aggregate)
    if aggregate is not None:  # it may be gone meanwhile; the images are of use all the same
        first = wanted.total - len(wanted.hosts) + 1
        for index, one in enumerate(found, start=first):
            place = (index, wanted.total)
            change.tell(facts.cached(aggregate, wanted.number, one, place))
        if not left:
            change.tell(facts.caching("end", aggregate, wanted.number))
    if left:
        rest = msgspec.structs.replace(wanted, hosts=list(left))
        change.put(work.park(held, due=change.now, reason=rest.reason, job=rest.job()))
    else:
        change.put(work.done(held))
    await ctx.door.commit(change)
    for one in found:
        log.info("sent images ahead", host=one.host, images=one.images, failed=one.failed)
