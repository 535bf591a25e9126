"""Many rows in one statement: as one JSON argument, so that the statement's text stays the same
however many there are.
"""

from collections.abc import Sequence

import msgspec

from siderite.core.store import Value

_encode = msgspec.json.Encoder().encode


def unpacked(dialect: str, *types: str) -> str:
    """A query for the rows of an argument made by `packed`, its columns of these types."""
    if dialect == "sqlite":
        columns = ", ".join(f"json_extract(value, '$[{n}]')" for n in range(len(types)))
        return f"SELECT {columns} FROM json_each(?) WHERE true"
    columns = ", ".join(f"(value ->> {n})::{kind}" for n, kind in enumerate(types))
    return f"SELECT {columns} FROM jsonb_array_elements(?::jsonb) WHERE true"


def packed(rows: Sequence[Sequence[Value]]) -> str:
    """Rows as one argument."""
    return _encode(rows).decode()
