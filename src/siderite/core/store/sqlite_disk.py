"""What the SQLite store leaves to threads, as it waits for the disk: commits, and the checkpoints
that copy what was committed from the log beside the file (WAL) into the file.

A checkpoint of a busy second's pages takes as long as tens of commits. So a thread of its own makes
them while commits go on. What is committed meanwhile is left over, and as long as anything is, the
log grows: when it is long, the thread that commits copies this little rest, and it begins anew.
"""

import asyncio
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread

Over = Callable[[BaseException | None], None]

REST_S = 0.5
"""Between two checkpoints: pages that are written again and again are copied once."""
LONG = 8000
"""Pages in the log, from which on it shall begin anew."""
_CHECKPOINT = "PRAGMA wal_checkpoint(PASSIVE)"


class Disk:
    """Commits what was written by a connection."""

    def __init__(self, writer: sqlite3.Connection, log: "Log | None") -> None:
        self._commit = writer.commit
        self._log = log
        self._orders: SimpleQueue[tuple[asyncio.AbstractEventLoop, Over] | None] = SimpleQueue()
        # A pool of them costs twice as much for each commit.
        self._thread: Thread | None = None

    def commit(self, over: Over) -> None:
        """Commit; `over` is called in the loop with what went wrong, if something did."""
        if self._thread is None:
            self._thread = Thread(target=self._run, name="sqlite-commit", daemon=True)
            self._thread.start()
        self._orders.put((asyncio.get_running_loop(), over))

    def close(self) -> None:
        """Nothing is to be committed any more."""
        if self._thread is not None:
            self._orders.put(None)
            self._thread.join()
        if self._log is not None:
            self._log.close()

    def _run(self) -> None:
        while (order := self._orders.get()) is not None:
            loop, over = order
            why: BaseException | None = None
            try:
                self._commit()
            except BaseException as error:
                why = error
            if self._log is not None:
                self._log.see_to()  # before the next transaction begins
            loop.call_soon_threadsafe(over, why)


class Log:
    """The log beside the file of a connection that writes; `connect` opens the file once more."""

    def __init__(
        self, writer: sqlite3.Connection, connect: Callable[[], sqlite3.Connection]
    ) -> None:
        self._writer = writer
        self._connect = connect
        self._wishes: SimpleQueue[bool] = SimpleQueue()  # for a checkpoint; False is the end
        self._thread: Thread | None = None
        self._is_busy = False
        self._copied_at = time.monotonic()
        self._is_long = False

    def see_to(self) -> None:
        """Have it copied once in a while; copy the rest of a long one, so that it begins anew.

        Called by the thread that commits, after each commit.
        """
        if self._is_busy:
            return
        if self._is_long:
            self._is_long = False
            with suppress(sqlite3.Error):
                self._writer.execute(_CHECKPOINT)
        elif time.monotonic() - self._copied_at > REST_S:
            self._is_busy = True
            self._wishes.put(True)
            if self._thread is None:
                self._thread = Thread(target=self._run, name="sqlite-checkpoint", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Nothing is committed any more."""
        if self._thread is not None:
            self._wishes.put(False)
            self._thread.join()

    def _run(self) -> None:
        # Should there be no connection, commits copy by themselves (wal_autocheckpoint).
        with suppress(sqlite3.Error), closing(self._connect()) as connection:
            while self._wishes.get():
                # Who has no room for it hears so from a commit, when the log has none either.
                with suppress(sqlite3.Error):
                    _, pages, _ = connection.execute(_CHECKPOINT).fetchone()
                    self._is_long = pages > LONG
                self._copied_at = time.monotonic()
                self._is_busy = False
