"""The one door: a machine's new state, the fact that announces it and the work that follows,
together.

`apply` fires the machine and puts all three into a `Change`; `Door.commit` makes the change true
in one commit or not at all. Nothing else writes a state column. A change that lost a race against
another is decided again from what is true now (`Door.attempt`).
"""

import asyncio
from collections.abc import Awaitable
from collections.abc import Callable
from typing import Any
from typing import Generic
from typing import Protocol
from typing import TypeVar

import msgspec

from siderite.core import eventlog
from siderite.core import leases
from siderite.core import metrics
from siderite.core import work
from siderite.core.clock import JUMP_S
from siderite.core.clock import now as wall_clock
from siderite.core.errors import Busy
from siderite.core.fact import Fact
from siderite.core.log import get_logger
from siderite.core.machine import Kind
from siderite.core.machine import Machine
from siderite.core.machine import Moved
from siderite.core.store import Duplicate
from siderite.core.store import Lost
from siderite.core.store import Op
from siderite.core.store import Store
from siderite.core.store.table import Resource
from siderite.core.store.table import Table
from siderite.core.turns import Turns
from siderite.core.work import Work

log = get_logger("transition")

R = TypeVar("R", bound=Resource)
T = TypeVar("T")

TRIES = 16
CANCELLED_S = 0.2
"""When listeners are told of a commit whose task was cancelled: by then it is likely through."""
WORK = "siderite_work"
"""The signal to other processes that something is due."""


class Cause(msgspec.Struct, frozen=True):
    """Who or what made a change: on every fact and log line that follows from it."""

    request_id: str | None = None
    user: str | None = None
    project: str | None = None


class Change(msgspec.Struct):
    """All that becomes true together."""

    cause: Cause
    now: float
    ops: list[Op] = msgspec.field(default_factory=list)
    facts: list[Fact] = msgspec.field(default_factory=list)
    moves: list[tuple[str, str, str, str, str]] = msgspec.field(default_factory=list)

    def put(self, *ops: Op) -> None:
        """Rows become so."""
        self.ops += ops

    def tell(self, *facts: Fact) -> None:
        """Facts are announced, in this order."""
        self.facts += facts

    def work(self, op: Op) -> None:
        """Work is made or woken."""
        self.ops.append(op)


class Rules(Protocol[R]):
    """What the door must know of a resource that is a machine."""

    machine: Machine
    table: Table[R]
    lane: str

    def state(self, value: R) -> tuple[str, str | None]:
        """Its present state and target."""
        ...

    def moved(self, before: R, moved: Moved, now: float, changes: dict[str, Any]) -> R:
        """The value after the move, with the other changes that go with it."""
        ...

    def announce(self, before: R, after: R, event: str) -> Fact:
        """The fact that says so."""
        ...

    def deadline(self, moved: Moved, value: R) -> float:
        """How many seconds the new state of this one may last."""
        ...

    def pool(self, value: R) -> str | None:
        """The group of workers that may act on it; None is any."""
        ...


class Applied(msgspec.Struct, Generic[R], frozen=True):
    """What `apply` did: the new value, and the state row it is in."""

    value: R
    moved: Moved


def apply(
    change: Change,
    rules: Rules[R],
    before: R,
    event: str,
    *,
    job: str = "{}",
    held: Work | None = None,
    kind: str | None = None,
    due_in: float = 0.0,
    reason: str | None = None,
    changes: dict[str, Any] | None = None,
) -> Applied[R]:
    """Fire `event` on `before`; the state, its fact and its work go into `change`.

    `held` is the work that the caller has a lease on, if it is a worker: it moves on, is parked or
    ends with the state. Without it, the lane gets new work or is emptied; `kind` names the work
    where the state itself does not (a wait state).
    """
    state, target = rules.state(before)
    moved = rules.machine.fire(state, event, target)
    after = rules.moved(before, moved, change.now, changes or {})
    change.put(rules.table.swap(before, after))
    change.tell(rules.announce(before, after, event))
    change.moves.append((rules.machine.name, before.uuid, state, event, moved.state.name))
    _follow(
        change,
        rules,
        after,
        moved,
        job=job,
        held=held,
        kind=kind,
        due_in=due_in,
        reason=reason,
    )
    return Applied(after, moved)


def _follow(
    change: Change,
    rules: Rules[R],
    value: R,
    moved: Moved,
    *,
    job: str,
    held: Work | None,
    kind: str | None,
    due_in: float,
    reason: str | None,
) -> None:
    """The work that a state means: active runs, waiting and held is parked, all else has none."""
    state, machine = moved.state, value.uuid
    if state.kind in (Kind.STABLE, Kind.FAILED):
        change.put(*(work.drop(machine, rules.lane) if held is None else [work.done(held)]))
        return
    deadline = work.FAR if state.kind is Kind.HOLD else change.now + rules.deadline(moved, value)
    due = change.now + (due_in if state.kind in (Kind.WAIT, Kind.HOLD) else 0.0)
    if state.kind is Kind.HOLD and not due_in:
        due = work.FAR
    name = state.work or kind or (held.kind if held is not None else state.name)
    if held is None:
        change.work(
            work.add(
                machine,
                rules.lane,
                name,
                job=job,
                now=change.now,
                due=due,
                deadline=deadline,
                reason=reason,
                request_id=change.cause.request_id,
                pool=rules.pool(value),
                known=value,
            )
        )
    elif state.kind is Kind.ACTIVE:
        change.put(work.keep(held, kind=name, job=job, deadline=deadline, reason=reason))
    else:
        change.put(work.park(held, kind=name, job=job, due=due, deadline=deadline, reason=reason))


class Hands(Protocol):
    """Whoever carries out work in this process."""

    @property
    def is_draining(self) -> bool:
        """Whether work should be let go of where it can rest."""
        ...

    def take(self, job: Work) -> tuple[str, float] | None:
        """Reserve a place for a new job, if there is one and no other job of its machine is under
        way: the lease's owner and end. Followed by `begin` or `let_go`.
        """
        ...

    def begin(self, job: Work, lease_until: float) -> None:
        """The job is committed, with its lease."""
        ...

    def let_go(self, machine: str) -> None:
        """It is not."""
        ...

    def due(self, at: float) -> None:
        """A job without a lease is due at this time."""
        ...

    async def wait_a_moment(self, machine: str) -> None:
        """Until the machine's last job is over, if that is a matter of milliseconds."""
        ...


class Door:
    """Commits changes, and wakes whoever carries on from there."""

    def __init__(self, store: Store, *, host: str, clock: Callable[[], float] = wall_clock) -> None:
        self.store = store
        self.host = host
        self.clock = clock
        self.turns = Turns()
        self.hands: Hands | None = None
        """None in a process that only answers requests."""
        self._listeners: tuple[Callable[[], None], ...] = ()

    def on_facts(self, listener: Callable[[], None]) -> None:
        """Call `listener` from now on after each commit that has facts; it must be quick."""
        self._listeners += (listener,)

    @property
    def is_draining(self) -> bool:
        """Whether work of this process should be let go of where it can rest."""
        return self.hands is not None and self.hands.is_draining

    async def wait_a_moment(self, machine: str) -> None:
        """Until what was asked of a machine is done, if that is a matter of milliseconds: who asked
        need not ask again how it is going.
        """
        if self.hands is not None:
            await self.hands.wait_a_moment(machine)

    def change(self, cause: Cause) -> Change:
        """An empty change, as of now."""
        return Change(cause, self.clock())

    async def commit(self, change: Change) -> None:
        """Make it all true, or raise `Lost` or `Duplicate` and none of it is."""
        ops = change.ops
        if not ops and not change.facts:
            return
        if change.facts:
            cause = change.cause
            ops = ops + eventlog.record(
                change.facts, at=change.now, host=self.host, request_id=cause.request_id,
                actor=cause.user, actor_project=cause.project,
            )  # fmt: skip
        try:
            await self._commit(ops, change.now)
        except asyncio.CancelledError:
            if change.facts:  # it may be on its way, and become true without us
                asyncio.get_running_loop().call_later(CANCELLED_S, self._tell)
            raise
        for machine, uuid, before, event, after in change.moves:
            metrics.transition(machine, event, after)
            log.debug(
                "moved",
                machine=machine,
                uuid=uuid,
                before=before,
                event=event,
                after=after,
                request_id=change.cause.request_id,
            )
        if change.facts:
            self._tell()

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()

    async def _commit(self, ops: list[Op], now: float) -> None:
        """Commit; what is due at once is handed to this process's worker on the way."""
        dues = [op for op in ops if isinstance(op, work.Due)]
        if not dues:
            await self.store.commit(ops)
            return
        hands, at = self.hands, min(op.at for op in dues)
        if hands is not None and len(dues) == 1 and dues[0].job is not None and at <= now:
            lease = hands.take(dues[0].job)
            if lease is not None and await self._commit_leased(hands, ops, dues[0], lease):
                return
        await self.store.commit(ops)
        if hands is not None:
            hands.due(at)
        if at <= now:
            self.store.signal(WORK)  # another process may have a hand free

    async def _commit_leased(
        self, hands: Hands, ops: list[Op], due: work.Due, lease: tuple[str, float]
    ) -> bool:
        """Commit with a lease on the new job; False if somebody has one of its machine."""
        leased, job = due.leased(*lease)
        try:
            await self.store.commit([leased if op is due else op for op in ops])
        except BaseException as why:
            hands.let_go(job.machine)
            if isinstance(why, Lost) or (isinstance(why, Duplicate) and leases.is_clash(why)):
                return False  # perhaps only the lease was not to be had
            raise
        hands.begin(job, lease[1])
        return True

    async def attempt(
        self,
        cause: Cause,
        machine: str,
        decide: Callable[[Change], Awaitable[T]],
        *,
        held: Work | None = None,
    ) -> T:
        """Decide on what is true and commit; if that was no longer true, decide again.

        `held` is the work that a worker has a lease on: `Lost` tells it when that is gone.
        """
        async with self.turns.of(machine):
            for tries in range(TRIES):
                change = self.change(cause)
                answer = await decide(change)
                if change.now > self.clock() + JUMP_S:
                    continue  # the clock was set back meanwhile: it would be due when that was
                try:
                    await self.commit(change)
                except Lost:
                    metrics.races_lost()
                    if held is not None and not await work.is_held(self.store, held):
                        raise
                    await asyncio.sleep(0.001 * tries)
                    continue
                return answer
        raise Busy("Too many requests change this machine at once; try again in a moment.")
