"""One statement in the place of many that differ only in their arguments (PostgreSQL).

To begin and end a statement, and to open the table's indexes for it, costs PostgreSQL more than
what most of ours do. So commits of one shape that go together are put as one: their arguments
become arrays, which it joins with. Reads of one shape are asked as one question in the same way.

Called by the store for what a `Batch` has gathered. What cannot be put so is left as it is: `Many`
is made of inserts of values, and of updates and deletes without a subquery. As rows are touched by
all commits at once here, and not by one after the other, no two of them may name the same; a count
of those that were touched shows what a name does not.

PostgreSQL may join with a small table by reading all of it, and keeps that plan until it next looks
at the table's size by itself (autovacuum does within a minute or two). Till then a table that grows
fast is read once for many commits; alone, each of them would have it read.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from asyncpg.protocol import protocol

from siderite.core.store import Value

# The library asks of each element of an array whether it is an array itself, which takes longer
# than to send it: by abstract classes. Our arrays are lists, and nothing in them is.
for abstract in ("IterableABC", "SizedABC"):
    setattr(protocol, abstract, list)

Shape = tuple[tuple[str, int | None], ...]
"""The statements of a commit, and how many rows each must touch."""
Args = Sequence[Value]
Column = list[Value]

_UPDATE = re.compile(r"\s*UPDATE (\w+) SET (.+) WHERE (.+?)\s*", re.DOTALL)
_DELETE = re.compile(r"\s*DELETE FROM (\w+) WHERE (.+?)\s*", re.DOTALL)
_INSERT = re.compile(
    r"\s*INSERT INTO (\w+)\s+\(([^()]+)\)\s+VALUES ((?:\([^()]+\)(?:, )?)+)\s*(ON CONFLICT .+)?",
    re.DOTALL,
)
_SUBQUERY = re.compile(r"\b(SELECT|FROM|USING|RETURNING)\b", re.IGNORECASE)
_EQUAL = re.compile(r"\w+ = \?|\w+ IS (NOT )?NULL")
"""Conditions by which a row can meet those of one set of arguments only."""
_CONFLICT = re.compile(r"ON CONFLICT \(([\w, ]+)\)")
_VALUES, _COMMA = re.compile(r"\(([^()]+)\)"), re.compile(r",\s*")
_LIMIT = re.compile(r"\b(LIMIT|OFFSET) \?", re.IGNORECASE)
_COUNT = "$1::bigint"
"""How many commits they are."""
ARRAYS = "<arrays>"


@dataclass(frozen=True, slots=True)
class _Part:
    """One statement of the shape, for many: `ARRAYS` stands for its arguments, of which it takes
    `width` at a time, `times` times in each commit.
    """

    table: str
    sql: str
    check: str
    width: int
    times: int = 1
    #: Which argument names the row, where one does.
    name: int | None = None


class Many:
    """A shape of commits, for any number of them at once."""

    def __init__(self, parts: Sequence[_Part], types: Sequence[str]) -> None:
        self._parts = parts
        self._names: dict[str, list[int]] = {}  # by table
        ctes, checks, at, array = [], [], 0, 2
        for number, part in enumerate(parts):
            kinds = types[at : at + part.width]
            given = ", ".join(f"${n}::{kind}[]" for n, kind in enumerate(kinds, array))
            ctes.append(f"op{number} AS ({part.sql.replace(ARRAYS, given)})")
            if part.check:
                checks.append(part.check.format(op=f"op{number}"))
            if part.name is not None:
                self._names.setdefault(part.table, []).append(at + part.name)
            at += part.width * part.times
            array += part.width
        answer = "0"
        if checks:
            answer = f"CASE WHEN {' AND '.join(checks)} THEN 0 ELSE siderite_lost() END"
        # The number of commits is used in any case: else it would have no type.
        self.sql = f"WITH {', '.join(ctes)} SELECT {answer} WHERE {_COUNT} > 0"

    def args(self, several: Sequence[Args]) -> list[int | Column] | None:
        """The arguments for these commits; None if two of them name the same row."""
        for places in self._names.values():
            named: set[Value] = set()
            for args in several:
                ours = {args[place] for place in places}
                if not named.isdisjoint(ours):
                    return None
                named |= ours
        found: list[int | Column] = [len(several)]
        at = 0
        for part in self._parts:
            end = at + part.width * part.times
            found += (
                [arg for args in several for arg in args[at + n : end : part.width]]
                for n in range(part.width)
            )
            at = end
        return found


def parts_of(shape: Shape) -> list[_Part] | None:
    """The shape's statements as they are for many; None if one of them cannot be put so."""
    found = [_part(sql, rows) for sql, rows in shape]
    parts = [part for part in found if part is not None]
    return parts if len(parts) == len(found) else None


def _part(sql: str, rows: int | None) -> _Part | None:
    if insert := _INSERT.fullmatch(sql):
        return _insert(insert, rows)
    if rows not in (None, 1) or "?" not in sql:
        return None
    if (update := _UPDATE.fullmatch(sql)) and not _SUBQUERY.search(sql):
        table, sets, condition = update.groups()
        return _where(table, f"UPDATE {table} SET {sets} FROM", sets, condition, rows)
    if (delete := _DELETE.fullmatch(sql)) and not _SUBQUERY.search(delete[2]):
        return _where(delete[1], f"DELETE FROM {delete[1]} USING", "", delete[2], rows)
    return None


def _where(table: str, verb: str, sets: str, condition: str, rows: int | None) -> _Part | None:
    """A statement that finds its rows by a condition, whose arguments follow those of `sets`."""
    before, width = sets.count("?"), sets.count("?") + condition.count("?")
    names_one = before < width and all(map(_EQUAL.fullmatch, condition.split(" AND ")))
    if rows is None and not names_one:
        return None
    check = f"(SELECT count(*) = {_COUNT} AND count(DISTINCT nth) = {_COUNT} FROM {{op}})"
    return _Part(
        table=table,
        sql=_named(f"{verb} {_given(width)} WHERE {condition} RETURNING given.nth"),
        check="" if rows is None else check,
        width=width,
        name=before if names_one else None,
    )


def _insert(found: re.Match[str], rows: int | None) -> _Part | None:
    table, columns, values, conflict = found.groups(default="")
    each = _VALUES.findall(values)
    if len(set(each)) > 1 or "?" in conflict or "?" not in each[0] or _SUBQUERY.search(conflict):
        return None
    if conflict and len(each) > 1:
        return None
    width = each[0].count("?")
    chosen = f"SELECT {_named(each[0])} FROM {_given(width)} ORDER BY given.nth"
    return _Part(
        table=table,
        sql=f"INSERT INTO {table} ({columns}) {chosen} {conflict} RETURNING 1",
        check="" if rows is None else f"(SELECT count(*) FROM {{op}}) = {rows} * {_COUNT}",
        width=width,
        times=len(each),
        name=_conflicting(columns, each[0], conflict),
    )


def _conflicting(columns: str, values: str, conflict: str) -> int | None:
    """Which argument is for a column by which a row is known that is there already."""
    known = _CONFLICT.match(conflict)
    pairs = zip(_COMMA.split(columns), _COMMA.split(values), strict=True)
    marked = [column for column, value in pairs if value == "?"]
    by = [n for n, column in enumerate(marked) if known and column in _COMMA.split(known[1])]
    return by[0] if by else None


def _given(width: int) -> str:
    names = ", ".join(f"a{n}" for n in range(width))
    return f"unnest({ARRAYS}) WITH ORDINALITY AS given({names}, nth)"


def _named(sql: str) -> str:
    """`?` marks as the names of columns."""
    parts = sql.split("?")
    return parts[0] + "".join(f"given.a{n}{part}" for n, part in enumerate(parts[1:]))


def can_be_asked(sql: str) -> bool:
    """Whether a query can be put for many sets of arguments: a limit is one for all."""
    return _LIMIT.search(sql) is None


def question(sql: str, types: Sequence[str]) -> str:
    """A query for many sets of arguments, each given as a column: every row begins with the number
    of the set, from 1, that it is for.
    """
    arrays = ", ".join(f"${n}::{one}[]" for n, one in enumerate(types, 1))
    # The offset keeps it a query of its own, which follows the same index for each set.
    return (
        f"SELECT given.nth, rows.* FROM {_given(len(types)).replace(ARRAYS, arrays)}"
        f" CROSS JOIN LATERAL ({_named(sql)} OFFSET 0) AS rows"
    )
