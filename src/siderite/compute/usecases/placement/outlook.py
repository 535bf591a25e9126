"""Which of many servers that wait would find a place, by one look at hosts and what is kept there.

All of them are held against the same moment, those first that came first, and each takes what it
would get from those after it: room that appears meanwhile is found by the next look, which begins
with the oldest again. Hosts are read once for each kind, and a wish that was in vain is not weighed
twice, so that a long queue costs little. It is only a forecast: `pending.wake` looks anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace

from siderite.compute.domain.host import Hypervisor
from siderite.compute.domain.placement import place
from siderite.compute.domain.server import Server
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.placement import kept_room
from siderite.compute.usecases.placement import placing
from siderite.compute.usecases.placement.kept_room import Kept
from siderite.compute.usecases.project import quota
from siderite.core.errors import Forbidden


@dataclass
class Outlook:
    """One look."""

    ctx: Context
    kept: Sequence[Kept]
    _there: dict[str | None, list[Hypervisor]] = field(default_factory=dict)
    _in_vain: set[str] = field(default_factory=set)
    _may_build: dict[str, bool] = field(default_factory=dict)
    """By project: whether its quota lets those go on that it has."""

    async def takes(self, server: Server) -> bool:
        """Whether there is a place for a server, which is its own from then on."""
        wanted = await placing.first_wish(self.ctx, server)
        wish = repr(wanted)
        is_kept_for = any(one.server == server.uuid for one in self.kept)
        if wish in self._in_vain and not is_kept_for:
            return False
        kind = wanted.resource_class
        if kind not in self._there:
            self._there[kind] = await placing.candidates(self.ctx, kind)
        there = kept_room.less(self.kept, server.uuid, self._there[kind])
        patience_s = self.ctx.settings.host_patience_s
        ranked = place(wanted, there, now=self.ctx.door.clock(), patience_s=patience_s).ranked
        if not ranked:
            self._in_vain.add(wish)
            return False
        if not await self._may_be_built(server):
            return False
        self._there[kind] = [
            _with(at, server) if at.uuid == ranked[0].uuid else at for at in self._there[kind]
        ]
        return True

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
    return Outlook(ctx, await kept_room.kept(ctx))


def _with(at: Hypervisor, server: Server) -> Hypervisor:
    more = server.amount
    return replace(
        at,
        vcpus_used=at.vcpus_used + more.vcpus,
        ram_used=at.ram_used + more.ram_mib,
        disk_used=at.disk_used + more.disk_gib,
        servers=at.servers + 1,
    )
