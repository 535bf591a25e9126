"""Durable work: rows in the same database, written in the commit that makes them due.

A row is a job for one machine in one lane. A worker takes a lease on it; at most one row of a
machine is leased at a time. Each claim changes `fence`, and whatever the worker commits names the
fence it was given: if the lease was lost meanwhile, by time or by a newer request, the commit is
lost too. Nobody waits without a reason and a deadline: both stand in the row.

What a newer request puts in the place of a leased job, or drops, cannot be claimed until the holder
has let go: it may be talking to the machine at this moment.

A job that is due at once may be leased by a worker of the process that makes it, in the commit that
makes it (`Due.leased`): nobody has to look for it then.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from siderite.core.ids import random_hex
from siderite.core.store import Op
from siderite.core.store import Store
from siderite.core.store import Value

FAR = 1e12
"""A time that does not come: work that waits for an outside decision only."""


class Work(msgspec.Struct, frozen=True):
    """A row: its machine and lane are its name."""

    machine: str
    lane: str
    kind: str
    job: str
    due: float
    deadline: float
    reason: str | None
    attempts: int
    fence: int
    created_at: float
    request_id: str | None
    owner: str | None = None
    pool: str | None = None
    known: Any = None
    """The machine as the commit left it that made this job, for a worker of the same process; what
    it decides on that is checked when it commits.
    """

    @property
    def is_leased(self) -> bool:
        """Whether a worker has it."""
        return self.owner is not None


class Due(Op, frozen=True):
    """An op that leaves a job without a lease, due at a time; `job` is the job if it is new."""

    at: float = 0.0
    job: Work | None = None

    def leased(self, owner: str, until: float) -> tuple[Op, Work]:
        """The same new job with a lease on it from the start, and the job as its owner has it."""
        assert self.job is not None  # noqa: S101 - only new jobs are given out so
        job = msgspec.structs.replace(self.job, owner=owner)
        return _insert(job, until), job


COLUMNS = (
    "machine, lane, kind, job, due, deadline, reason, attempts, fence, created_at,"
    " request_id, owner, pool"
)

_ADD = """
INSERT INTO work (machine, lane, kind, job, due, deadline, reason, created_at, request_id, fence,
  owner, lease_until, pool)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (machine, lane) DO UPDATE SET kind = excluded.kind, job = excluded.job,
  due = excluded.due, deadline = excluded.deadline, reason = excluded.reason, attempts = 0,
  fence = excluded.fence, created_at = excluded.created_at, request_id = excluded.request_id,
  pool = excluded.pool
"""
_ADD_LEASED = f"""{_ADD.rstrip()}, owner = excluded.owner, lease_until = excluded.lease_until
WHERE work.owner IS NULL
"""


def _insert(job: Work, lease_until: float | None) -> Op:
    args = (
        job.machine, job.lane, job.kind, job.job, job.due, job.deadline, job.reason,
        job.created_at, job.request_id, job.fence, job.owner, lease_until,
        job.pool,
    )  # fmt: skip
    return Op(_ADD if lease_until is None else _ADD_LEASED, args, 1)


def _new_fence() -> int:
    """One that no row has had: claims then count on from it."""
    return int(random_hex()[:16], 16) >> 2


def add(
    machine: str,
    lane: str,
    kind: str,
    *,
    job: str,
    now: float,
    deadline: float,
    due: float | None = None,
    reason: str | None = None,
    request_id: str | None = None,
    pool: str | None = None,
    known: Any = None,
) -> Due:
    """A new job, in the place of any that the lane had; whoever holds that one is fenced off.

    `pool` names the group of workers that may take it; None is any. `known` is the machine with
    this change.
    """
    at = now if due is None else due
    new = Work(
        machine, lane, kind, job, at, deadline, reason, 0, _new_fence(), now, request_id,
        pool=pool, known=known,
    )  # fmt: skip
    op = _insert(new, None)
    return Due(op.sql, op.args, op.rows, at, new)


def keep(
    work: Work, *, job: str, kind: str | None = None, deadline: float | None = None,
    reason: str | None = None,
) -> Op:  # fmt: skip
    """The job has moved on; the lease stays. So do its kind and deadline, unless they are given."""
    until = work.deadline if deadline is None else deadline
    return Op(
        "UPDATE work SET kind = ?, job = ?, deadline = ?, reason = ?, attempts = 0"
        " WHERE machine = ? AND lane = ? AND fence = ?",
        (kind or work.kind, job, until, reason, work.machine, work.lane, work.fence),
        1,
    )


def park(
    work: Work, *, due: float, reason: str | None, kind: str | None = None,
    job: str | None = None, deadline: float | None = None,
) -> Due:  # fmt: skip
    """Let go of the lease until `due`, for this reason; the rest stays, unless it is given."""
    until = work.deadline if deadline is None else deadline
    at = min(due, until)
    # As it was claimed is not as it is: it may have moved on meanwhile (`keep`).
    return Due(
        "UPDATE work SET kind = ?, job = COALESCE(?, job), due = ?, deadline = ?, reason = ?,"
        " attempts = 0, owner = NULL, lease_until = NULL"
        " WHERE machine = ? AND lane = ? AND fence = ?",
        (kind or work.kind, job, at, until, reason, work.machine, work.lane, work.fence),
        1,
        at,
    )


def again(work: Work, *, due: float, reason: str) -> Op:
    """Let go of the lease after a mishap; the job stays as far as it was committed. At its deadline
    it is due once, not again and again.
    """
    return Op(
        "UPDATE work SET"
        " due = CASE WHEN deadline < ? AND due < deadline THEN deadline ELSE ? END, reason = ?,"
        " attempts = ?, owner = NULL, lease_until = NULL"
        " WHERE machine = ? AND lane = ? AND fence = ?",
        (due, due, reason, work.attempts + 1, work.machine, work.lane, work.fence),
        1,
    )


def moved_on(work: Work, *, kind: str, deadline: float) -> Work:
    """The work as it stands after `keep`, for whoever holds it."""
    return msgspec.structs.replace(work, kind=kind, deadline=deadline)


def done(work: Work) -> Op:
    """The job is finished."""
    return Op(
        "DELETE FROM work WHERE machine = ? AND lane = ? AND fence = ?",
        (work.machine, work.lane, work.fence),
        1,
    )


GONE = "gone"
"""The kind of a job that was dropped while somebody held it."""


def drop(machine: str, lane: str | None = None) -> tuple[Op, Op]:
    """Forget whatever the lane has, or all of the machine's; whoever holds it is fenced off, and
    its lease stays till then.

    What is left of it is done with by whoever claims it.
    """
    which, args = ("", (machine,)) if lane is None else (" AND lane = ?", (machine, lane))
    # It may be claimed or parked at this moment: both would miss it if both asked for its owner.
    gone = "UPDATE work SET kind = ?, job = '{}', due = 0, reason = NULL, fence = fence + 1"
    every = Op(f"{gone} WHERE machine = ?{which}", (GONE, *args))
    free = Op(f"DELETE FROM work WHERE machine = ?{which} AND owner IS NULL", args)
    return every, free


def wake(machine: str, lane: str, now: float) -> Due:
    """Something called back: look at the parked job now."""
    return Due(
        "UPDATE work SET due = ? WHERE machine = ? AND lane = ? AND owner IS NULL",
        (now, machine, lane),
        None,
        now,
    )


def hasten(machine: str, now: float) -> Due:
    """What jobs of the machine waited for may be there now: those that would look again later look
    at once. Those that only wait for a call, until their deadline, do not.
    """
    return Due(
        "UPDATE work SET due = ? WHERE machine = ? AND owner IS NULL"
        " AND due > ? AND due < deadline",
        (now, machine, now),
        None,
        now,
    )


def regroup(machine: str, pool: str | None, now: float) -> Due:
    """The machine is another group's: so are its jobs, from when nobody has them."""
    return Due("UPDATE work SET pool = ? WHERE machine = ?", (pool, machine), None, now)


def regroup_all(
    before: str, after: str | None, which: str, args: Sequence[Value], now: float
) -> Due:
    """The same for many: the jobs of a group whose `machine` meets a condition."""
    sql = f"UPDATE work SET pool = ? WHERE pool = ? AND ({which})"
    return Due(sql, (after, before, *args), None, now)


def pass_on(work: Work, pool: str, *, job: str, now: float, reason: str) -> Due:
    """Let go of the lease: the job, as far as it is, is for workers of this group."""
    return Due(
        "UPDATE work SET pool = ?, job = ?, due = ?, reason = ?, attempts = 0, owner = NULL,"
        " lease_until = NULL WHERE machine = ? AND lane = ? AND fence = ?",
        (pool, job, now, reason, work.machine, work.lane, work.fence),
        1,
        now,
    )


_RING = """
INSERT INTO work (machine, lane, kind, job, due, deadline, reason, created_at, request_id, fence,
  pool)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (machine, lane) DO UPDATE SET job = excluded.job
"""


def ring(
    machine: str, lane: str, kind: str, *, now: float, reason: str, request_id: str | None = None
) -> Due:
    """There is something for a job that finds out itself what there is to do: it is made if it is
    not there; if it is, whoever holds it goes on, and `done_unless_rung` tells them of it.
    """
    bell = _new_fence()
    args = (machine, lane, kind, str(bell), now, FAR, reason, now, request_id, bell, None)
    return Due(_RING, args, 1, now)


def still_ours(work: Work) -> Op:
    """The lease holds, or the commit is lost."""
    return Op(
        "UPDATE work SET attempts = 0 WHERE machine = ? AND lane = ? AND fence = ?",
        (work.machine, work.lane, work.fence),
        1,
    )


def done_unless_rung(work: Work) -> Op:
    """The job found nothing more to do, and nobody has rung since it was claimed."""
    return Op(
        "DELETE FROM work WHERE machine = ? AND lane = ? AND fence = ? AND job = ?",
        (work.machine, work.lane, work.fence, work.job),
        1,
    )


def shift(back_s: float) -> Op:
    """The clock was set back by so much: all there is comes as much earlier, so that what is left
    of its time stays the same.
    """
    return Op(
        "UPDATE work SET created_at = created_at - ?, lease_until = lease_until - ?,"
        f" due = CASE WHEN due >= {FAR} THEN due ELSE due - ? END,"
        f" deadline = CASE WHEN deadline >= {FAR} THEN deadline ELSE deadline - ? END",
        (back_s, back_s, back_s, back_s),
    )


async def of_machine(store: Store, machine: str) -> list[Work]:
    """The jobs of one machine."""
    rows = await store.fetch(
        f"SELECT {COLUMNS} FROM work WHERE machine = ? ORDER BY id",
        (machine,),
    )
    return [Work(*row) for row in rows]  # type: ignore[arg-type]


async def is_held(store: Store, held: Work) -> bool:
    """Whether the lease on a job is still the one that its worker was given."""
    return any(job.fence == held.fence for job in await of_machine(store, held.machine))


async def depth(store: Store) -> tuple[int, int]:
    """How many jobs there are, and how many of them are leased."""
    rows = await store.fetch("SELECT count(*), count(owner) FROM work")
    return int(rows[0][0]), int(rows[0][1])  # type: ignore[arg-type]


async def unclaimed(store: Store, now: float) -> int:
    """How many jobs are due that no worker has, or none that lives."""
    rows = await store.fetch(
        "SELECT count(*) FROM work WHERE due <= ? AND (owner IS NULL OR lease_until < ?)",
        (now, now),
    )
    return int(rows[0][0])  # type: ignore[arg-type]
