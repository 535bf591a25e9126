"""When each node's power is read next: a row per node that is watched, removed with it."""

from collections.abc import Sequence

import msgspec

from siderite.baremetal.usecases.context import Context
from siderite.core.store import Op
from siderite.core.store import Value
from siderite.core.work import FAR


class Plan(msgspec.Struct, frozen=True):
    """When a node is read next, and how many readings have failed in a row."""

    node: str
    due: float
    pause: float
    failures: int
    was: float
    """The pause before the reading: if it is another by now, something happened to the node's power
    meanwhile, and it is read again as that wants it.
    """


def begin(node: str, at: float) -> Op:
    """A new node is watched from a time on."""
    return Op(
        "INSERT INTO power_watch (node, due, pause, failures) VALUES (?, ?, 0, 0)"
        # A node that is there already is the node's own clash to tell of.
        " ON CONFLICT (node) DO UPDATE SET node = excluded.node",
        (node, at),
        1,
    )


def end(node: str) -> Op:
    """A node is gone."""
    return Op("DELETE FROM power_watch WHERE node = ?", (node,))


def look_soon(node: str, now: float) -> Op:
    """Something happened to the node's power, or it is known for the first time: have it read soon,
    and then for a while often.
    """
    return Op(
        "INSERT INTO power_watch (node, due, pause, failures) VALUES (?, ?, ?, 0)"
        " ON CONFLICT (node) DO UPDATE SET failures = 0, pause = excluded.pause, due ="
        " CASE WHEN power_watch.due < excluded.due THEN power_watch.due ELSE excluded.due END",
        # No pause at all, but another one than before: a reading under way began before this.
        (node, now, -now),
        1,
    )


def shift(back_s: float) -> Op:
    """The clock was set back by so much: all are read when they would have been."""
    return Op(
        f"UPDATE power_watch SET due = due - ? WHERE due < {FAR}",  # noqa: S608 - a number
        (back_s,),
    )


_DUE = "SELECT node FROM power_watch WHERE due <= ? ORDER BY due LIMIT ?"
_DUE_OF_GROUP = (
    "SELECT w.node FROM power_watch w JOIN nodes n ON n.uuid = w.node"
    " WHERE w.due <= ? AND n.conductor_group = ? ORDER BY w.due LIMIT ?"
)


async def due(ctx: Context, now: float, limit: int, group: str | None = None) -> list[str]:
    """The nodes that are to be read now, longest due first; of one conductor group, or of all."""
    if group is None:
        rows = await ctx.door.store.fetch(_DUE, (now, limit))
    else:
        rows = await ctx.door.store.fetch(_DUE_OF_GROUP, (now, group, limit))
    return [str(row[0]) for row in rows]


_ONE = f"(?, {', '.join(['CAST(? AS DOUBLE PRECISION)'] * 3)}, CAST(? AS BIGINT))"


def schedule(plans: Sequence[Plan]) -> Op:
    """When these nodes are read next, in one statement."""
    values = ", ".join([_ONE] * len(plans))
    sql = (
        "UPDATE power_watch SET due = v.column2, pause = v.column3, failures = v.column5"  # noqa: S608 - marks only
        f" FROM (VALUES {values}) AS v"
        " WHERE power_watch.node = v.column1 AND power_watch.pause = v.column4"
    )
    args: list[Value] = []
    for plan in plans:
        args += (plan.node, plan.due, plan.pause, plan.was, plan.failures)
    return Op(sql, tuple(args))
