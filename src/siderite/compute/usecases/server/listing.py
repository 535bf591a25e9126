"""Pages of servers: conditions, several sort keys, by keyset."""

from collections.abc import Sequence

import msgspec

from siderite.compute.store import SERVER_NUMBERS
from siderite.compute.usecases.context import Context
from siderite.core.errors import Invalid
from siderite.core.ids import is_uuid
from siderite.core.store import Line
from siderite.core.store import Value
from siderite.core.store.table import Where


class Sort(msgspec.Struct, frozen=True):
    """One key of the order."""

    column: str
    descending: bool
    pends_as_error: bool = False
    """To readers who know no PENDING it is an error, in the order too."""

    @property
    def expression(self) -> str:
        if self.column == "id":
            return "id"
        if self.pends_as_error and self.column == "vm_state":
            return "CASE vm_state WHEN 'pending' THEN 'error' ELSE vm_state END"
        return f"COALESCE({self.column}, {'0' if self.column in SERVER_NUMBERS else repr('')})"


async def page(
    ctx: Context,
    what: str,
    where: Sequence[Where],
    sort: Sequence[Sort],
    *,
    marker: str | None,
    limit: int,
) -> Sequence[Line]:
    """Columns of a page of servers; `marker` is the last one of the page before."""
    conditions = list(where)
    order = [*sort, Sort("id", sort[-1].descending if sort else True)]
    if marker is not None:
        conditions.append(await _beyond(ctx, order, marker, where))
    clause = " AND ".join(condition.sql for condition in conditions) or "1 = 1"
    args = [arg for condition in conditions for arg in condition.args]
    by = _by(order)
    is_narrowed = any(condition.finds != "all" for condition in where)
    if not sort and not is_narrowed:
        sql = f"SELECT {what} FROM servers WHERE {clause} ORDER BY {by} LIMIT {limit}"  # noqa: S608
        return await ctx.door.store.fetch(sql, args)
    # What is sought is found in a slim index before whole rows are read, or in that of states. A
    # plus keeps SQLite from using another one, which is in this order but knows no conditions.
    has_states = any(condition.finds == "many" and len(condition.args) > 1 for condition in where)
    is_misled = is_narrowed and (sort or has_states) and ctx.door.store.dialect == "sqlite"
    # Regular expressions are tried in a thread: over many servers they hold nobody up.
    store = ctx.door.store
    look = store.scan if any(condition.slow for condition in where) else store.fetch
    return await look(
        f"SELECT {what} FROM servers WHERE id IN (SELECT id FROM servers WHERE {clause}"  # noqa: S608
        f" ORDER BY {'+' if is_misled else ''}{by} LIMIT {limit}) ORDER BY {by}",
        args,
    )


def _by(order: Sequence[Sort]) -> str:
    return ", ".join(f"{key.expression} {'DESC' if key.descending else 'ASC'}" for key in order)


async def texts(ctx: Context, uuids: Sequence[str]) -> Sequence[Line]:
    """Uuid, version and stored text of these servers, as far as they are there."""
    # A statement is prepared for each length: so only some lengths.
    marks = ", ".join("?" * (1 << (len(uuids) - 1).bit_length()))
    args = [*uuids, *[uuids[-1]] * (marks.count("?") - len(uuids))]
    return await ctx.door.store.fetch(
        f"SELECT uuid, version, body FROM servers WHERE uuid IN ({marks})",  # noqa: S608 - marks
        args,
    )


async def _beyond(
    ctx: Context, order: Sequence[Sort], marker: str, where: Sequence[Where]
) -> Where:
    """What comes after the marker in this order."""
    visible = [condition for condition in where if condition.sql.startswith("project_id")]
    clause = "".join(f" AND {condition.sql}" for condition in visible)
    args: list[Value] = [arg for condition in visible for arg in condition.args]
    columns = ", ".join(key.expression for key in order)
    found = ()  # type: Sequence[Line]
    if is_uuid(marker):
        found = await ctx.door.store.fetch(
            f"SELECT {columns} FROM servers WHERE uuid = ?{clause}",  # noqa: S608
            (marker.lower(), *args),
        )
    if not found:
        raise Invalid(f"marker [{marker[:80]}] not found. Ask from the start.")
    # The first says the same as the others, in a way that an index can follow.
    first = f"{order[0].expression} {'<' if order[0].descending else '>'}= ?"
    parts, values = [], [found[0][0]]
    for at, key in enumerate(order):
        same = [f"{before.expression} = ?" for before in order[:at]]
        parts.append(" AND ".join([*same, f"{key.expression} {'<' if key.descending else '>'} ?"]))
        values += [*found[0][:at], found[0][at]]
    return Where(f"{first} AND ({' OR '.join(f'({part})' for part in parts)})", tuple(values))


async def host_statuses(ctx: Context) -> dict[str, str]:
    """How each host is, in the words of the API."""
    rows = await ctx.door.store.fetch("SELECT name, disabled, forced_down, seen_at FROM hosts")
    now = ctx.door.clock()
    found = {}
    for name, disabled, forced_down, seen_at in rows:
        status = "UP"
        if forced_down:
            status = "DOWN"
        elif disabled:
            status = "MAINTENANCE"
        elif now - float(seen_at or 0) > ctx.settings.host_patience_s:
            status = "UNKNOWN"
        found[str(name)] = status
    return found
