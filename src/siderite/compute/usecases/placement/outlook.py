"""Which of many servers that wait would find a place, by one look at hosts and what is kept there.

All of them are held against the same moment, those first that came first, and each takes what it
would get from those after it: room that appears meanwhile is found by the next look, which begins
with the oldest again. Hosts are read once for each kind, and all of them are weighed once for each
wish: nodes only become fuller in a look, so that those who wish the same are given the best of what
is left, and nothing if nothing is. It is only a forecast: `pending.wake` looks anew.
"""

import asyncio
from collections.abc import Mapping
from collections.abc import Sequence
from heapq import heapify
from heapq import heappop
from heapq import heapreplace

import msgspec
from msgspec.structs import replace

from siderite.compute.domain.host import Amount
from siderite.compute.domain.host import Hypervisor
from siderite.compute.domain.placement import RESERVED
from siderite.compute.domain.placement import Wanted
from siderite.compute.domain.placement import place
from siderite.compute.domain.placement import weight
from siderite.compute.domain.server import Server
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.fleet import aggregates
from siderite.compute.usecases.placement import kept_room
from siderite.compute.usecases.placement import placing
from siderite.compute.usecases.placement.kept_room import Kept
from siderite.compute.usecases.project import quota
from siderite.core.errors import Forbidden

_Nodes = dict[str, Hypervisor]
_Ranks = list[tuple[float, int, str]]
"""The best first: minus a node's weight, its number and its UUID. What has become fuller since
stands there as it was.
"""


class Outlook(msgspec.Struct):
    """One look."""

    ctx: Context
    kept: Sequence[Kept]
    has_reserved: bool
    """Whether there are hosts for some projects only."""
    _rooms: Mapping[str, Amount] = msgspec.field(default_factory=dict)
    _there: dict[str | None, _Nodes] = msgspec.field(default_factory=dict)
    _ranks: dict[str, _Ranks] = msgspec.field(default_factory=dict)
    _may_build: dict[str, bool] = msgspec.field(default_factory=dict)
    """By project: whether its quota lets those go on that it has."""

    def __post_init__(self) -> None:
        self._rooms = kept_room.rooms(self.kept, "")

    async def takes(self, server: Server) -> bool:
        """Whether there is a place for a server, which is its own from then on."""
        wanted = await placing.first_wish(self.ctx, server)
        nodes = await self._nodes(wanted.resource_class)
        if any(one.server == server.uuid for one in self.kept):
            ranks = await self._weighed(wanted, nodes, kept_room.rooms(self.kept, server.uuid))
            best = nodes[ranks[0][2]] if ranks else None
        else:
            best = await self._best(wanted, nodes)
        if best is None or not await self._may_be_built(server):
            return False
        nodes[best.uuid] = _with(best, server)
        return True

    async def _nodes(self, kind: str | None) -> _Nodes:
        if kind not in self._there:
            found = await placing.candidates(self.ctx, kind)
            self._there[kind] = {at.uuid: at for at in found}
        return self._there[kind]

    async def _best(self, wanted: Wanted, nodes: _Nodes) -> Hypervisor | None:
        """The best node of those that will still do."""
        wish = repr(wanted if self.has_reserved else replace(wanted, project=""))
        if wish not in self._ranks:
            self._ranks[wish] = await self._weighed(wanted, nodes, self._rooms)
        ranks = self._ranks[wish]
        while ranks:
            uuid = ranks[0][2]
            now = self._ranked(wanted, [nodes[uuid]], self._rooms)
            if not now:
                heappop(ranks)
            elif now == ranks[:1]:
                return nodes[uuid]
            else:
                heapreplace(ranks, now[0])
        return None

    async def _weighed(self, wanted: Wanted, nodes: _Nodes, rooms: Mapping[str, Amount]) -> _Ranks:
        """All that will do. There may be many: others have their turn before it."""
        await asyncio.sleep(0)
        found = self._ranked(wanted, list(nodes.values()), rooms)
        heapify(found)
        return found

    def _ranked(
        self, wanted: Wanted, some: list[Hypervisor], rooms: Mapping[str, Amount]
    ) -> _Ranks:
        now, patience_s = self.ctx.door.clock(), self.ctx.settings.host_patience_s
        there = kept_room.without(rooms, some)
        ranked = place(wanted, there, now=now, patience_s=patience_s).ranked
        return [(-weight(wanted, at), at.id, at.uuid) for at in ranked]

    async def _may_be_built(self, server: Server) -> bool:
        """One beyond its quota takes nothing from those after it."""
        project = server.project_id
        if project not in self._may_build:
            try:
                await quota.still(self.ctx, server)
            except Forbidden:
                self._may_build[project] = False
            else:
                self._may_build[project] = True
        return self._may_build[project]


async def look(ctx: Context) -> Outlook:
    """As things are now."""
    places = (await aggregates.atlas(ctx)).places
    has_reserved = any(RESERVED in place.aggregate_metadata for place in places)
    return Outlook(ctx, await kept_room.kept(ctx), has_reserved)


def _with(at: Hypervisor, server: Server) -> Hypervisor:
    more = server.amount
    return replace(
        at,
        vcpus_used=at.vcpus_used + more.vcpus,
        ram_used=at.ram_used + more.ram_mib,
        disk_used=at.disk_used + more.disk_gib,
        servers=at.servers + 1,
    )
