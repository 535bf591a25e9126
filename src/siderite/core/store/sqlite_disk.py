"""The SQLite store and its disk: commits, and the checkpoints that copy what was committed from the
log beside the file (WAL) into the file.

To hand a commit to a thread, and its end back, takes longer than most disks do for a small one. So
small commits are made at once where the disk has been quick of late; all others by a thread, while
requests are answered.

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
QUICK_S = 0.002
"""What a commit takes on the average, up to which the loop may wait for it."""
RECENT = 10
"""How many commits the average is of, more or less."""
_CHECKPOINT = "PRAGMA wal_checkpoint(PASSIVE)"


class Disk:
    """Commits what was written by a connection."""

    def __init__(self, writer: sqlite3.Connection, log: "Log | None") -> None:
        self._commit = writer.commit
        self._log = log
        self._orders: SimpleQueue[tuple[asyncio.AbstractEventLoop, Over] | None] = SimpleQueue()
        # A pool of them costs twice as much for each commit.
        self._thread: Thread | None = None
        self._takes_s = RECENT * QUICK_S  # on the average; slow, until it has shown what it is

    @property
    def is_quick(self) -> bool:
        """Whether a small commit is best waited for."""
        return self._takes_s < QUICK_S and not (self._log is not None and self._log.is_long)

    def commit_now(self) -> BaseException | None:
        """Commit; what went wrong, if something did."""
        why: BaseException | None = None
        began = time.perf_counter()
        try:
            self._commit()
        except BaseException as error:
            why = error
        self._takes_s += (time.perf_counter() - began - self._takes_s) / RECENT
        if self._log is not None:
            self._log.see_to()  # before the next transaction begins
        return why

    def commit(self, over: Over) -> None:
        """Have it done by a thread; `over` is called in the loop with what went wrong."""
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
            loop.call_soon_threadsafe(over, self.commit_now())


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
        self.is_long = False
        """Whether the next commit copies the rest, which may take a moment."""

    def see_to(self) -> None:
        """Have it copied once in a while; copy the rest of a long one, so that it begins anew.

        Called after each commit, by whoever made it.
        """
        if self._is_busy:
            return
        if self.is_long:
            self.is_long = False
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
                    self.is_long = pages > LONG
                self._copied_at = time.monotonic()
                self._is_busy = False
