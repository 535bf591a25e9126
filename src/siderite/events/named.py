"""Which resource a reader means: by its id, or by the name that it has now.

Ids are asked for in the log itself, so that what is gone is found there too. Not all are UUIDs:
those of flavors are what their maker chose. Names come from the index, which is a moment late.
"""

from siderite.core import eventlog
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.eventlog import Wanted
from siderite.core.ids import is_uuid
from siderite.core.store import Store
from siderite.events.search import Search

_SHOWN = 3


async def resource(store: Store, search: Search, said: str, *, project: str | None) -> str:
    """Its id, among what may be seen: all, or a project's own."""
    if is_uuid(said):
        return said.lower()
    end = await eventlog.newest(store)
    if await eventlog.tail(store, Wanted(resource=said, project=project), last=1, end=end):
        return said
    found = await search.named(said, project)
    if not found:
        raise NotFound(
            f"There is no resource with the id or the name {said[:80]!r}; of one that is gone, or"
            " was made just now, give the UUID."
        )
    if len(found) > 1:
        some = ", ".join(f"{kind} {uuid}" for kind, uuid in found[:_SHOWN])
        raise Invalid(f"Several resources are called {said[:80]!r}: give a UUID, as of {some}.")
    return found[0][1]
