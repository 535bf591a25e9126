"""What only one of several starting processes may do at a time: migrating, and the first start."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def in_turn(store: Any, number: int) -> AsyncIterator[Any]:
    """Wait until no other process is in here with the same number. On PostgreSQL it gives the
    connection whose transaction holds the lock; an embedded database has one process anyway.
    """
    if store.dialect == "sqlite":
        yield None
        return
    async with store.connector.alone() as connection, connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", number)
        yield connection
