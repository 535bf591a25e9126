"""A look at the emptiest nodes that may do, in place of one at all of them.

Which nodes may do at all, as far as that stands in columns, and which are the emptiest, the
database knows by an index. The first few of them are held against all that is wanted; where none
of those will do, some more are, and who still finds none there looks at all: that takes long where
there are thousands of hosts, but then there is something to be said of each.
"""

from collections.abc import Sequence

import msgspec

from siderite.compute import room_store
from siderite.compute.domain import narrowing
from siderite.compute.domain.aggregate import Atlas
from siderite.compute.domain.narrowing import Names
from siderite.compute.domain.placement import Placement
from siderite.compute.domain.placement import Wanted
from siderite.compute.domain.placement import place
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.placement import kept_room
from siderite.compute.usecases.placement.kept_room import Kept
from siderite.compute.usecases.placement.located import located

_SOME, _MORE, _NAMED = 16, 64, 256


class Shortlist(msgspec.Struct, frozen=True):
    """For one server, by what is kept and where hosts are now."""

    ctx: Context
    server: str
    kept: Sequence[Kept]
    atlas: Atlas

    async def best(self, wanted: Wanted, *, enough: int) -> Placement | None:
        """The best place, and so many if there are; None if there is none, or it cannot be told
        without a look at all nodes.
        """
        for wish in narrowing.by_preference(wanted):
            found = await self._among_some(wish, enough)
            if found is None or found.ranked:
                return found
        return None

    async def _among_some(self, wish: Wanted, enough: int) -> Placement | None:
        """The same, of one wish; with no place in it if there is surely none."""
        now, patience_s = self.ctx.door.clock(), self.ctx.settings.host_patience_s
        for names, limit in _looks(wish, narrowing.names(wish, self.atlas)):
            found = await room_store.roomiest(
                self.ctx.door.store, wish, names, heard_since=now - patience_s, limit=limit
            )
            there = kept_room.less(self.kept, self.server, located(self.atlas, found))
            placement = place(wish, there, now=now, patience_s=patience_s)
            if narrowing.is_settled(wish, found, limit, placement, enough):
                return placement
        return None


def _looks(wish: Wanted, names: Names) -> Sequence[tuple[Names, int]]:
    """Among whom to look, and at how many."""
    if wish.node is not None or names.are_few:
        return ((names.at_a_glance, _NAMED),)
    return (names.at_a_glance, _SOME), (names, _MORE)
