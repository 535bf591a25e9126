"""Whether what began also ended: operations counted from the log alone.

An operation is an event type without its last word (`baremetal.node.power_set`), of one resource.
It is open from `start` to `end` or `error`; `success` in between is a sign of progress. One that
has shown none for too long is overdue. What was open when its resource was deleted, or began anew,
is abandoned.
"""

from collections.abc import Callable
from collections.abc import Sequence

import msgspec

from siderite.core import metrics
from siderite.core import shape
from siderite.core.clock import now as wall_clock
from siderite.core.eventlog import Head
from siderite.core.store import Op
from siderite.core.store import Store
from siderite.core.store import Value
from siderite.core.times import iso
from siderite.events import place
from siderite.events.rows import packed
from siderite.events.rows import unpacked

NAME = "monitor"
_COUNTS = ("started", "ended", "failed", "succeeded", "abandoned")
_BY_STATUS = {"start": 0, "end": 1, "error": 2, "success": 3}
_ABANDONED = 4

Key = tuple[str, str]
"""Resource and operation."""


class _Tally(msgspec.Struct):
    """What a batch of facts changes."""

    open: dict[str, dict[str, list[Value]]] = msgspec.field(default_factory=dict)
    """Those under way, by resource and operation: resource, operation, resource type, seq, began,
    seen, request id.
    """
    counts: dict[str, list[int]] = msgspec.field(default_factory=dict)
    touched: set[Key] = msgspec.field(default_factory=set)

    def know(self, row: Sequence[Value]) -> None:
        """What was under way before."""
        self.open.setdefault(str(row[0]), {})[str(row[1])] = list(row)

    def count(self, operation: str, what: int) -> None:
        self.counts.setdefault(operation, [0] * len(_COUNTS))[what] += 1

    def take(self, entry: Head) -> None:
        operation, _, status = entry.event_type.rpartition(".")
        if status not in _BY_STATUS:
            return
        self.count(operation, _BY_STATUS[status])
        key = (entry.resource, operation)
        under_way = self.open.setdefault(entry.resource, {})
        if status == "start":
            if operation in under_way:
                self.count(operation, _ABANDONED)
            self.touched.add(key)
            under_way[operation] = [
                *key, entry.resource_type, entry.seq, entry.at, entry.at, entry.request_id,
            ]  # fmt: skip
        elif status == "success":
            if operation in under_way:
                self.touched.add(key)
                under_way[operation][5] = entry.at
        else:
            if under_way.pop(operation, None) is not None:
                self.touched.add(key)
            if operation.endswith(".delete") and status == "end":
                for other in under_way:
                    self.count(other, _ABANDONED)
                    self.touched.add((entry.resource, other))
                under_way.clear()

    def ops(self, dialect: str) -> list[Op]:
        """Always the same statements, however much there is."""
        left, gone = list[list[Value]](), list[Key]()
        for resource, operation in sorted(self.touched):
            row = self.open[resource].get(operation)
            if row is None:
                gone.append((resource, operation))
            else:
                left.append(row)
        counts: list[list[Value]] = [
            [operation, *numbers] for operation, numbers in sorted(self.counts.items())
        ]
        return [
            Op(_COUNT[dialect], (packed(counts),)),
            Op(_CLOSE[dialect], (packed(gone),)),
            Op(_OPEN[dialect], (packed(left),)),
        ]


_DIALECTS = ("sqlite", "postgresql")
_COUNT = {
    dialect: f"INSERT INTO event_operations (operation, {', '.join(_COUNTS)}) "
    + unpacked(dialect, "text", *["bigint"] * len(_COUNTS))
    + " ON CONFLICT (operation) DO UPDATE SET "
    + ", ".join(f"{name} = event_operations.{name} + excluded.{name}" for name in _COUNTS)
    for dialect in _DIALECTS
}
_CLOSE = {
    dialect: "DELETE FROM event_open WHERE (resource, operation) IN"
    f" ({unpacked(dialect, 'text', 'text')})"
    for dialect in _DIALECTS
}
_OPEN = {
    dialect: "INSERT INTO event_open"
    " (resource, operation, resource_type, seq, began, seen, request_id) "
    + unpacked(dialect, "text", "text", "text", "bigint", "float8", "float8", "text")
    + " ON CONFLICT (resource, operation) DO UPDATE SET seq = excluded.seq,"
    " began = excluded.began, seen = excluded.seen, request_id = excluded.request_id"
    for dialect in _DIALECTS
}
_OPEN_OF = {
    dialect: "SELECT resource, operation, resource_type, seq, began, seen, request_id"
    f" FROM event_open WHERE resource IN ({unpacked(dialect, 'text')})"
    for dialect in _DIALECTS
}


def shift(back_s: float) -> Op:
    """The clock was set back by so much: what is under way is as old as it was."""
    return Op("UPDATE event_open SET began = began - ?, seen = seen - ?", (back_s, back_s))


class Monitor:
    """Keeps the tally, and answers from it."""

    def __init__(
        self, store: Store, *, overdue_s: float, clock: Callable[[], float] = wall_clock
    ) -> None:
        self._store = store
        self._overdue_s = overdue_s
        self._clock = clock

    async def deal(self, entries: Sequence[Head]) -> list[Op]:
        """Take facts into account."""
        dialect = self._store.dialect
        resources = sorted({entry.resource for entry in entries})
        rows = await self._store.fetch(_OPEN_OF[dialect], (packed([(r,) for r in resources]),))
        tally = _Tally()
        for row in rows:
            tally.know(row)
        for entry in entries:
            tally.take(entry)
        return tally.ops(dialect)

    async def report(self) -> dict[str, object]:
        """Per operation, how many began, ended, failed, are open, and for how long."""
        now = self._clock()
        # Read first: what is counted then is no older than it says.
        at = await place.seq_of(self._store, NAME)
        rows = await self._store.fetch(
            f"SELECT o.operation, {', '.join('o.' + name for name in _COUNTS)}, count(e.seq),"
            " coalesce(sum(CASE WHEN e.seen < ? THEN 1 ELSE 0 END), 0), min(e.began)"
            " FROM event_operations o LEFT JOIN event_open e ON e.operation = o.operation"
            f" GROUP BY o.operation, {', '.join('o.' + name for name in _COUNTS)}"
            " ORDER BY o.operation",
            (now - self._overdue_s,),
        )
        return _report(at, self._overdue_s, rows, now)

    async def under_way(
        self, *, overdue: bool, operation: str | None, limit: int
    ) -> list[dict[str, object]]:
        """Operations that are open, those without news for longest first."""
        now = self._clock()
        where, args = "seen < ?", list[Value]([now - self._overdue_s if overdue else now + 1e9])
        if operation is not None:
            where += " AND operation = ?"
            args.append(operation)
        rows = await self._store.fetch(
            "SELECT resource, operation, resource_type, seq, began, seen, request_id"
            f" FROM event_open WHERE {where} ORDER BY seen, seq LIMIT ?",
            (*args, limit),
        )
        return [_shown(row, now, self._overdue_s) for row in rows]

    async def measure(self) -> None:
        """Give the figures to Prometheus."""
        report = await self.report()
        for row in report["operations"]:  # type: ignore[attr-defined]  # a list, see above
            metrics.operation(
                row["operation"], {name: row[name] for name in (*_COUNTS, "open", "overdue")}
            )


def _report(
    at: int, overdue_s: float, rows: Sequence[Sequence[Value]], now: float
) -> dict[str, object]:
    operations = [
        {
            "operation": row[0],
            **dict(zip(_COUNTS, row[1:6], strict=True)),
            "open": row[6],
            "overdue": int(row[7] or 0),
            "longest_open_s": None if row[8] is None else round(now - float(row[8]), 3),
        }
        for row in rows
    ]
    return {"current_to": at, "overdue_after_s": overdue_s, "operations": operations}


def form() -> shape.Json:
    """The form of the report."""
    counted = ("", *(1,) * 7)
    return shape.wire(_report(1, 1.5, [(*counted, 1.5), (*counted, None)], 2.0))


def open_form() -> shape.Json:
    """The form of the list of operations under way."""
    rows = [("", "", "", 1, 1.5, 1.5, request) for request in ("", None)]
    return shape.wire({"open": [_shown(row, 2.0, 1.5) for row in rows]})


def _shown(row: Sequence[Value], now: float, overdue_s: float) -> dict[str, object]:
    resource, operation, kind, seq, began, seen, request_id = row
    return {
        "operation": operation,
        "resource": {"type": kind, "id": resource},
        "seq": seq,
        "since": iso(float(began or 0)),
        "open_s": round(now - float(began or 0), 3),
        "quiet_s": round(now - float(seen or 0), 3),
        "is_overdue": float(seen or 0) < now - overdue_s,
        "request_id": request_id,
    }
