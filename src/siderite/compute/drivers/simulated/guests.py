"""The simulated guests themselves, in a small database of their own.

It outlives a crash of the service as real guests would, but not a crash of the operating system (it
does not wait for the disk). What takes time ends by its time, whoever asks.
"""

import random
from collections.abc import Callable

import msgspec

from siderite.compute.domain.power import Power
from siderite.compute.drivers.simulated.scripts import Script
from siderite.core.clock import now as wall_clock
from siderite.core.simulation import Scripts
from siderite.core.simulation import open_file

_SCHEMA = """
CREATE TABLE IF NOT EXISTS guests (server TEXT, host TEXT, power INTEGER, since REAL,
  down_at REAL, signals INTEGER, memory TEXT, made REAL, kept INTEGER,
  PRIMARY KEY (server, host));
CREATE INDEX IF NOT EXISTS guests_host ON guests (host);
CREATE TABLE IF NOT EXISTS runs (token TEXT PRIMARY KEY, server TEXT, call TEXT, ends REAL);
"""

_SHIFT = (
    "UPDATE guests SET since = since - :s, down_at = down_at - :s, made = made - :s",
    "UPDATE runs SET ends = ends - :s",
)

_LOOK_S = 1.0
"""How often scripts that another process may have set are read."""


class Seen(msgspec.Struct, frozen=True):
    """A guest as it is now."""

    power: Power
    since: float
    signals: int
    memory: str
    kept: bool
    """Only its disk is there, for a way back."""


class Guests:
    """All simulated guests there are."""

    def __init__(
        self,
        path: str = ":memory:",
        *,
        shared: bool = False,
        clock: Callable[[], float] = wall_clock,
    ) -> None:
        self._shared = shared  # other processes act on the same guests
        self._db = open_file(path, _SCHEMA, alone=False)
        self.clock = clock
        self.scripts = Scripts(self._db, Script)
        self._looked = clock()
        self.listeners: list[Callable[[str, str, Power], None]] = []
        """Called with server, host and power when a guest changes by itself."""

    def shift(self, back_s: float) -> None:
        """The clock was set back by so much: guests go on as if it had not been."""
        for sql in _SHIFT:
            self._db.execute(sql, {"s": back_s})

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    # How they behave

    def script(self, host: str, server: str) -> Script:
        """The script that holds for a guest on a host: those of all, its host and itself."""
        if self._shared and self.clock() >= self._looked + _LOOK_S:
            self._looked = self.clock()
            self.scripts.load()
        return self.scripts.of(f"host:{host}", f"server:{server}")

    def chance(self) -> float:
        """Where in a range of latencies a run falls."""
        return random.random()  # noqa: S311 - no secret

    # What takes time

    def left(self, token: str, server: str, call: str, latency_s: float) -> float:
        """Begin the run of this token, or tell how many seconds it still takes; 0 is ended."""
        if latency_s <= 0:
            return 0.0
        now = self.clock()
        row = self._db.execute("SELECT ends FROM runs WHERE token = ?", (token,)).fetchone()
        if row is not None:
            return max(0.0, float(row[0]) - now)
        self._db.execute(
            "INSERT OR IGNORE INTO runs VALUES (?, ?, ?, ?)", (token, server, call, now + latency_s)
        )
        return latency_s

    def hasten(self, token: str) -> None:
        """A run ends now."""
        self._db.execute("UPDATE runs SET ends = ? WHERE token = ?", (self.clock(), token))

    def left_of(self, server: str, call: str) -> float | None:
        """How many seconds the last run of a call takes; None if there is none."""
        row = self._db.execute(
            "SELECT ends FROM runs WHERE server = ? AND call = ? ORDER BY ends DESC", (server, call)
        ).fetchone()
        return None if row is None else max(0.0, float(row[0]) - self.clock())

    # What they are

    def seen(self, server: str, host: str) -> Seen | None:
        """A guest on a host, if it is there."""
        row = self._db.execute(
            "SELECT power, since, down_at, signals, memory, kept FROM guests"
            " WHERE server = ? AND host = ?",
            (server, host),
        ).fetchone()
        if row is None:
            return None
        power = Power(row[0])
        if power is Power.RUNNING and row[2] is not None and row[2] <= self.clock():
            power = Power.SHUTDOWN
        return Seen(power, row[1], row[3], row[4], bool(row[5]))

    def of_host(self, host: str) -> dict[str, Power]:
        """Every guest of a host."""
        now = self.clock()
        rows = self._db.execute(
            "SELECT server, power, down_at FROM guests WHERE host = ? AND kept = 0", (host,)
        )
        return {
            server: Power.SHUTDOWN
            if power == Power.RUNNING and down_at is not None and down_at <= now
            else Power(power)
            for server, power, down_at in rows
        }

    def where(self, server: str) -> list[str]:
        """The hosts that have a guest of this server."""
        rows = self._db.execute("SELECT host FROM guests WHERE server = ?", (server,))
        return [str(row[0]) for row in rows]

    def make(self, server: str, host: str, power: Power, memory: str = "") -> None:
        """A guest comes to be, or is made anew."""
        now = self.clock()
        self._db.execute(
            "INSERT OR REPLACE INTO guests VALUES (?, ?, ?, ?, NULL, 0, ?, ?, 0)",
            (server, host, int(power), now, memory, now),
        )

    def set_power(self, server: str, host: str, power: Power) -> None:
        """A guest is switched."""
        self._db.execute(
            "UPDATE guests SET power = ?, since = ?, down_at = NULL, signals = 0"
            " WHERE server = ? AND host = ?",
            (int(power), self.clock(), server, host),
        )

    def by_itself(self, server: str, power: Power) -> list[str]:
        """A guest changes by itself, or by hand behind our back; the hosts it is on."""
        found = self.where(server)
        for host in found:
            self.set_power(server, host, power)
            for listener in self.listeners:
                listener(server, host, power)
        return found

    def signal(self, server: str, host: str, script: Script) -> None:
        """A guest is asked to shut down; whether it hears and obeys, its script says."""
        now = self.clock()
        seen = self.seen(server, host)
        if seen is None:
            return
        down_at = None
        if script.guest != "ignores" and now - seen.since >= (script.ready_s or 0.0):
            down_at = now + (script.shutdown_s or 0.0)
        self._db.execute(
            "UPDATE guests SET signals = signals + 1, down_at = COALESCE(down_at, ?)"
            " WHERE server = ? AND host = ?",
            (down_at, server, host),
        )

    def keep_disk(self, server: str, host: str) -> None:
        """Only the disk stays, for a way back."""
        self._db.execute(
            "UPDATE guests SET kept = 1, power = ? WHERE server = ? AND host = ?",
            (int(Power.SHUTDOWN), server, host),
        )

    def remember(self, server: str, host: str, memory: str) -> None:
        """Write something down with a guest: its password, say."""
        self._db.execute(
            "UPDATE guests SET memory = ? WHERE server = ? AND host = ?", (memory, server, host)
        )

    def remove(self, server: str, host: str) -> None:
        """Nothing is left of it."""
        self._db.execute("DELETE FROM guests WHERE server = ? AND host = ?", (server, host))
