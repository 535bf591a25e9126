"""The workloads that read servers: one, and a page with all their fields; wrk asks."""

import asyncio
from dataclasses import dataclass

from bench import load
from bench import reads
from bench.client import Client
from bench.figure import Measured
from bench.figure import Unit
from bench.servers import LISTED
from bench.servers import Site
from bench.servers import Watch
from bench.servers import create
from bench.servers import rests_in
from bench.servers import site
from bench.stage import Stage

_NAME = "listed"


@dataclass(frozen=True, slots=True)
class _Stock:
    """The servers that are there to be read."""

    uuids: tuple[str, ...]


_stocks: dict[str, _Stock] = {}


def _stock(stage: Stage) -> _Stock:
    root = stage.address.root
    if root not in _stocks:
        _stocks[root] = load.run(_make(site(stage)))
    return _stocks[root]


async def _make(place: Site) -> _Stock:
    uuids: list[str] = []
    async with Client(place.address) as client, Watch(place.address, _NAME) as watch:
        uuids = [await create(client, place, f"{_NAME}-{number}") for number in range(LISTED)]
        await asyncio.gather(*(watch.until(uuid, rests_in("ACTIVE")) for uuid in uuids))
    return _Stock(tuple(uuids))


def one_server(stage: Stage) -> Measured:
    """GET one server, over several connections; against the static app with the same bytes."""
    path = f"/servers/{_stock(stage).uuids[LISTED // 2]}"
    return reads.in_turns(
        stage, path, Unit.RATE, connections=stage.plan.readers, root=site(stage).address
    )


def detail_list(stage: Stage) -> Measured:
    """Time of a page of the detail list, over one connection; against the static app."""
    assert _stock(stage).uuids
    path = f"/servers/detail?limit={LISTED}"
    return reads.in_turns(
        stage, path, Unit.TIME, connections=1, root=site(stage).address, items="servers"
    )
