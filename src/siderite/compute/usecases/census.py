"""How many servers there are in each state."""

from siderite.compute.domain.power import Power
from siderite.compute.usecases.context import Context
from siderite.core.clock import now
from siderite.core.metrics import Headcount
from siderite.core.store import indexed
from siderite.core.times import seconds

_COUNT = """
SELECT vm_state, power_state, count(*), min(changed_at)
FROM servers {index} WHERE deleted = 0 GROUP BY vm_state, power_state
"""


async def count(ctx: Context) -> list[Headcount]:
    """By state and power."""
    store = ctx.door.store
    # Without being told, SQLite reads whole rows in the order of their states.
    index = indexed(store, "servers_slim")
    at = now()
    return [
        (str(state), Power(_number(power)).word, False, _number(many), at - seconds(str(since)))
        for state, power, many, since in await store.scan(_COUNT.format(index=index))
    ]


def _number(value: object) -> int:
    return int(str(value))
