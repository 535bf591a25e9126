"""Pages of the detailed list of servers, with what a page showed a moment ago kept for the next.

Whoever waits for servers, or shows them, asks for the same page again and again, and few servers
have changed in between. So a page is first read as versions alone; text is read, cut and given its
links only for servers, or versions of them, that are not kept for this kind of reader.
"""

from collections.abc import Mapping
from collections.abc import Sequence

import msgspec

from siderite.compute.usecases.context import Context
from siderite.compute.usecases.server import listing
from siderite.compute.web import views
from siderite.compute.web.server import server_list
from siderite.compute.web.server.server_list import Ask
from siderite.compute.web.views import Reader
from siderite.core.store import Line

MOST = 4000
"""So many items are kept in all, of some two thousand bytes each."""
_FEW = 4
"""If more than one in so many is missing, the page is rather read anew."""


class _Shelf(msgspec.Struct):
    """Items for one kind of reader, by uuid and version; `statuses` is what they tell of hosts."""

    statuses: Mapping[str, str]
    items: dict[Line, str] = msgspec.field(default_factory=dict)


class Pages:
    """What is kept, a shelf for each kind of reader; the one that was not used for longest goes
    first.
    """

    def __init__(self) -> None:
        self._shelves: dict[Reader, _Shelf] = {}

    async def of(
        self, ctx: Context, ask: Ask, who: Reader, statuses: Mapping[str, str]
    ) -> tuple[Sequence[Line], Sequence[str]]:
        """A page: its rows, which begin with the uuid, and its items as JSON."""
        rows = await server_list.rows(ctx, ask, "uuid, version")
        items = self._shelf(who, statuses).items
        found = [items.get(tuple(row)) for row in rows]
        missing = [str(row[0]) for row, item in zip(rows, found, strict=True) if item is None]
        if len(missing) * _FEW > len(rows):
            rows = await server_list.rows(ctx, ask, "uuid, version, body")
            return rows, list(_put(items, rows, who, statuses).values())
        fresh = {}
        if missing:
            fresh = _put(items, await listing.texts(ctx, missing), who, statuses)
        return rows, [
            item or fresh[row[0]]
            for row, item in zip(rows, found, strict=True)
            if item or row[0] in fresh
        ]

    def _shelf(self, who: Reader, statuses: Mapping[str, str]) -> _Shelf:
        shelf = self._shelves.pop(who, None)
        if shelf is None or shelf.statuses != statuses or len(shelf.items) > MOST:
            shelf = _Shelf(statuses)
        kept = len(shelf.items) + sum(len(other.items) for other in self._shelves.values())
        while kept > MOST:
            kept -= len(self._shelves.pop(next(iter(self._shelves))).items)
        self._shelves[who] = shelf
        return shelf


def _put(
    items: dict[Line, str], rows: Sequence[Line], who: Reader, statuses: Mapping[str, str]
) -> dict[object, str]:
    """Keep the items of rows of uuid, version and text; by uuid, in the order of the rows."""
    found: dict[object, str] = {}
    for uuid, version, body in rows:
        key = (uuid, version)
        item = items.get(key)
        if item is None:
            item = items[key] = views.listed(str(body), who, statuses)
        found[uuid] = item
    return found
