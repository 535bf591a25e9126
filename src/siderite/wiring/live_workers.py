"""Which conductor groups have somebody who works for them: the bare metal room keeps the list."""

from siderite.baremetal.usecases import conductors
from siderite.baremetal.usecases.context import Context

_REMEMBERED_S = 2.0


class LiveWorkers:
    """The `Workers` of the compute room."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._looked_at = 0.0
        self._groups: set[str] = set()
        self._has_one_for_all = False

    async def serve(self, group: str) -> bool:
        now = self._ctx.door.clock()
        if not 0 <= now - self._looked_at < _REMEMBERED_S:
            alive = [one for one in await conductors.all_of_them(self._ctx) if one.alive]
            self._groups = {name for one in alive for name in one.conductor_group.split(", ")}
            self._has_one_for_all = any(not one.conductor_group for one in alive)
            self._looked_at = now
        return self._has_one_for_all or group in self._groups
