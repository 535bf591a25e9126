"""How many nodes there are in each state."""

from siderite.baremetal.usecases.context import Context
from siderite.core.clock import now
from siderite.core.metrics import Headcount
from siderite.core.store import indexed
from siderite.core.times import seconds

_COUNT = """
SELECT provision_state, COALESCE(power_state, 'unknown'), maintenance, count(*),
  min(COALESCE(provision_updated_at, created_at))
FROM nodes {index} GROUP BY provision_state, power_state, maintenance
"""


async def count(ctx: Context) -> list[Headcount]:
    """By state, power and maintenance."""
    store = ctx.door.store
    # Without being told, SQLite reads whole rows in the order of their states.
    index = indexed(store, "nodes_slim")
    at = now()
    return [
        (str(state), str(power), bool(held), _number(many), at - seconds(str(since)))
        for state, power, held, many, since in await store.scan(_COUNT.format(index=index))
    ]


def _number(value: object) -> int:
    return int(str(value))
