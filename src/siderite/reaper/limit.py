"""How many servers may go for those of one project within an hour.

It holds for all reapers together, whenever they were started: what goes is marked first, and the
marks are counted then. Of two that do so at the same time at least one counts both.
"""

import contextlib
from datetime import UTC
from datetime import datetime
from datetime import timedelta
from typing import Any

from siderite.reaper.api import Api
from siderite.reaper.api import Refused
from siderite.reaper.choose import Choice
from siderite.reaper.shown import mark_of

HOUR_S = 3600.0
NEW_S = 120.0
"""So long a mark counts on a server that is still there."""
GOES_FOR = "preempted_for"


async def may_free(api: Api, limit: int, server: dict[str, Any], choice: Choice) -> bool:
    """Whether so many more may go for this server's project; 0 is no limit."""
    if not limit or not choice.victims:
        return True
    mark = mark_of(server["tenant_id"])
    mine = {victim.uuid for victim in choice.victims}
    for uuid in mine:
        # One that can not be marked in its state counts now, and not later.
        with contextlib.suppress(Refused):
            await api.ask("POST", f"/servers/{uuid}/metadata", {"metadata": {GOES_FOR: mark}})
    since = datetime.now(UTC) - timedelta(seconds=HOUR_S)
    path = f"/servers/detail?all_tenants=1&changes-since={since:%Y-%m-%dT%H:%M:%SZ}"
    recent = await api.pages(path, "servers")
    others = [one for one in recent if one["id"] not in mine and _goes(one, mark)]
    if len(others) + len(mine) <= limit:
        return True
    for uuid in mine:
        with contextlib.suppress(Refused):
            await api.ask("DELETE", f"/servers/{uuid}/metadata/{GOES_FOR}")
    return False


def _goes(one: dict[str, Any], mark: str) -> bool:
    """Whether a server went for the project of this mark, or is about to. A reaper that died in
    between may have left a mark on one that stays.
    """
    is_marked = one["metadata"].get(GOES_FOR) == mark
    now = datetime.now(UTC)
    is_new = now - datetime.fromisoformat(one["updated"]) < timedelta(seconds=NEW_S)
    return is_marked and (
        is_new or one["status"] == "DELETED" or one["OS-EXT-STS:task_state"] == "deleting"
    )
