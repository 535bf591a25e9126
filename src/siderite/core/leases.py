"""Who has which job: jobs are claimed, their leases renewed, and let go of.

Called by the worker; what is done with a job meanwhile is in `work`.
"""

import asyncio
from collections.abc import Sequence

from siderite.core.ids import random_hex
from siderite.core.store import Duplicate
from siderite.core.store import Op
from siderite.core.store import Store
from siderite.core.store import Value
from siderite.core.work import COLUMNS
from siderite.core.work import FAR
from siderite.core.work import Work

GRACE_S = 2.0
"""How long a worker that cannot renew its lease stops before its end, and others wait after it: so
much may what they know of the database's time differ before a machine has two drivers at once.
"""

LATE_S = 30.0
"""A job that was left alone for longer was so because nobody could work: all were down, the
database was away, the computer slept or its clock was set. That does not count against it.
"""
RESPITE_S = 120.0
"""What such a job has left at least: so that whoever could not call us meanwhile still can."""

_LEFT_ALONE = "COALESCE(lease_until, due)"
_CLAIM = f"""
UPDATE work SET owner = ?, lease_until = ?, fence = fence + ?, deadline = CASE
  WHEN {_LEFT_ALONE} > ? OR deadline >= {FAR}%s THEN deadline
  WHEN deadline - {_LEFT_ALONE} < {RESPITE_S} THEN ?
  ELSE deadline - {_LEFT_ALONE} + ? END
WHERE id IN (
  SELECT w.id FROM work w
  WHERE w.due <= ? AND (w.owner IS NULL OR w.lease_until < ?)%s
    AND NOT EXISTS (SELECT 1 FROM work x WHERE x.machine = w.machine AND x.id <> w.id
      AND (x.owner IS NOT NULL OR (w.owner IS NULL AND x.due <= ? AND x.id < w.id)))
  ORDER BY w.due LIMIT ?%s
) RETURNING {COLUMNS}, id
"""
_LOCKED = {"sqlite": "", "postgresql": " FOR UPDATE OF w SKIP LOCKED"}
_NEXT = "SELECT min(due) FROM work WHERE owner IS NULL"
_CLAIM_AND_NEXT = """
WITH claimed AS (%s)
SELECT claimed.*, (SELECT due FROM work WHERE owner IS NULL
  AND id <> ALL (ARRAY(SELECT id FROM claimed)) ORDER BY due LIMIT 1)
FROM (VALUES (0)) AS one LEFT JOIN claimed ON true
"""


def _step() -> int:
    """By how much a claim raises fences: by chance, so that a claim which a database lost when it
    went back to an earlier moment is not mistaken for one that was made after it.
    """
    return 1 + int(random_hex()[:8], 16)


async def claim(
    store: Store,
    owner: str,
    *,
    now: float,
    lease_s: float,
    limit: int,
    pools: Sequence[str] = (),
    waited_s: float = 0.0,
    takes_over: bool = True,
) -> tuple[list[Work], float | None]:
    """Take up to `limit` due jobs, oldest first, one per machine; and say when the next of those
    without a lease is due.

    A job whose worker died comes before all others of its machine, which wait until it has no lease
    any more. `pools` are the groups that the worker serves; none is all. A job past its deadline is
    anybody's: somebody must say that it failed. One of ours that was left alone for long gets that
    time back. `waited_s` is for how long jobs must have been due: younger ones are left to others.
    `takes_over` is whether leases that seem to have ended count as such: not just after the time
    has jumped.
    """
    ours = foreign = ""
    if pools:
        marks = ", ".join("?" * len(pools))
        ours = f" AND (w.pool IS NULL OR w.pool IN ({marks}) OR w.deadline < ?)"
        foreign = f" OR pool NOT IN ({marks})"
    sql = _CLAIM % (foreign, ours, _LOCKED[store.dialect])
    mine: tuple[Value, ...] = (*pools, now) if pools else ()
    due_by = now - waited_s
    args: list[Value] = [owner, now + lease_s, _step()]
    args += [now - LATE_S, *pools, now + RESPITE_S, now]
    args += [due_by, now - GRACE_S if takes_over else 0.0, *mine, due_by, limit]
    try:
        if store.dialect == "postgresql":
            rows = await store.write(_CLAIM_AND_NEXT % sql, args)
            claimed = [Work(*row[:-2]) for row in rows if row[0] is not None]  # type: ignore[arg-type]
            return claimed, rows[0][-1]  # type: ignore[return-value]
        rows = await store.write(sql, args)
    except Duplicate:
        rows = []  # another worker took another lane of one of the machines just now
    claimed = [Work(*row[:-1]) for row in rows]  # type: ignore[arg-type]
    return claimed, None if len(claimed) == limit else await next_due(store)


_RENEW = """
UPDATE work SET lease_until = ? WHERE owner = ? AND lease_until >= ?
RETURNING fence, machine, true
"""
_RENEW_FREE = """
WITH free AS (
  SELECT id FROM work WHERE owner = ? AND lease_until >= ? AND lease_until <> ?
  FOR UPDATE SKIP LOCKED
), renewed AS (
  UPDATE work SET lease_until = ? WHERE id IN (SELECT id FROM free) RETURNING id
)
SELECT fence, machine, lease_until = ? OR id IN (SELECT id FROM renewed) FROM work
WHERE owner = ? AND lease_until >= ?
"""
"""Commits have several rows locked, too, in an order of their own: so nothing is waited for while
others are held.
"""
_AGAIN_S = 0.01


async def renew(store: Store, owner: str, *, now: float, lease_s: float) -> dict[int, str]:
    """Extend the leases of this worker; the fences of those it still has, with their machines. Any
    that ended meanwhile is anybody's: it has to be claimed.
    """
    until, alive = now + lease_s, now - GRACE_S
    args: tuple[Value, ...] = (until, owner, alive)
    sql = _RENEW
    if store.dialect == "postgresql":
        sql, args = _RENEW_FREE, (owner, alive, until, until, until, owner, alive)
    left: set[Value] | None = None
    while True:
        rows = await store.write(sql, args)
        locked = {row[0] for row in rows if not row[2]}
        left = locked if left is None else left & locked
        if not left:
            return {int(row[0]): str(row[1]) for row in rows}  # type: ignore[arg-type]
        await asyncio.sleep(_AGAIN_S)


_RELEASE = """
UPDATE work SET due = CASE WHEN due > ? THEN due WHEN lease_until < ? THEN lease_until ELSE ? END,
  owner = NULL, lease_until = NULL WHERE owner IS NOT NULL
"""
"""Somebody was at it till now, or till the lease ended."""


def release(owner: str, machine: str, now: float) -> Op:
    """Let go of this worker's lease on a machine that it does not act on."""
    return Op(f"{_RELEASE} AND owner = ? AND machine = ?", (now, now, now, owner, machine))


def is_clash(why: Duplicate) -> bool:
    """Whether a commit failed because another job of the same machine has a lease."""
    return why.column in ("work.machine", "work.one_lease")


async def forget(store: Store, now: float, owner: str | None = None) -> None:
    """Let go of one worker's leases, or of all (an embedded database has one process only)."""
    if owner is None:
        await store.commit([Op(_RELEASE, (now, now, now))])
    else:
        await store.commit([Op(f"{_RELEASE} AND owner = ?", (now, now, now, owner))])


async def next_due(store: Store) -> float | None:
    """When the next job without a lease is due."""
    rows = await store.fetch(_NEXT)
    return rows[0][0]  # type: ignore[return-value]
