"""The simulated hardware itself: power, running steps and scripts, in a small database of its own.

It outlives a crash of the service as real machines would, but not a crash of the operating system
(it does not wait for the disk). A step that runs ends by its time, whoever asks; its ramdisk then
calls back.
"""

import asyncio
import heapq
import random
from collections.abc import Awaitable
from collections.abc import Callable
from typing import Any

import msgspec

from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.simulated.scripts import Script
from siderite.core.clock import now as wall_clock
from siderite.core.log import get_logger
from siderite.core.simulation import Scripts
from siderite.core.simulation import open_file
from siderite.core.worker import HELD

log = get_logger("simulated")

_SCHEMA = """
CREATE TABLE IF NOT EXISTS machines (node TEXT PRIMARY KEY, rack TEXT, power TEXT, since REAL)
  WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS runs (token TEXT, node TEXT, what TEXT, began REAL,
  ends REAL, calls INTEGER, asked INTEGER, last_asked REAL, ended INTEGER,
  PRIMARY KEY (node, token)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS bmcs (node TEXT PRIMARY KEY, memory TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS calls (at REAL, node TEXT, token TEXT, held INTEGER);
CREATE TABLE IF NOT EXISTS cuts (rack TEXT PRIMARY KEY, at REAL);
"""

_BEGIN = "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, 1, ?, ?) ON CONFLICT DO NOTHING"
# One that was cut off before its end never ends.
_ASK = """
UPDATE runs SET asked = asked + 1, last_asked = ?, ended = ended OR (ends <= ? AND began > ?)
WHERE node = ? AND token = ? RETURNING began, ends, ended
"""
_ANEW = "UPDATE runs SET began = ?, ends = ?, ended = ? WHERE node = ? AND token = ?"

_SHIFT = (
    "UPDATE machines SET since = since - :s",
    "UPDATE runs SET began = began - :s, ends = ends - :s, last_asked = last_asked - :s",
    "UPDATE cuts SET at = at - :s",
)

OFF, ON = "power off", "power on"
_LOOK_S = 1.0
_TIDY = 0.02
"""How often a new run is an occasion to forget old ones."""


class Run(msgspec.Struct, frozen=True):
    """One run of a step on a machine."""

    began: float
    ends: float
    ended: bool
    lost: bool = False
    """The machine lost its power since: nothing comes of this run."""


class Machines:
    """All simulated machines there are."""

    def __init__(
        self,
        path: str = ":memory:",
        *,
        shared: bool = False,
        clock: Callable[[], float] = wall_clock,
    ) -> None:
        self._shared = shared  # other processes act on the same machines
        self._db = open_file(path, _SCHEMA, alone=not shared)
        self.clock = clock
        self.scripts = Scripts(self._db, Script)
        self._cuts: dict[str, float] = {}
        self._calls: list[tuple[float, str, str]] = []
        self._next_call = asyncio.Event()
        self._load()

    def _load(self) -> None:
        self._looked = self.clock()
        self.scripts.load()
        self._cuts = dict(self._db.execute("SELECT rack, at FROM cuts"))
        self._calls = list(
            self._db.execute("SELECT ends, node, token FROM runs WHERE calls = 1 AND ended = 0")
        )
        heapq.heapify(self._calls)

    def shift(self, back_s: float) -> None:
        """The clock was set back by so much: machines go on as if it had not been."""
        for sql in _SHIFT:
            self._db.execute(sql, {"s": back_s})
        self._load()
        self._next_call.set()

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    # How they behave

    def script(self, at: Endpoint) -> Script:
        """The script that holds for a machine: those of all, its rack and itself."""
        return self.scripts.of(f"rack:{_rack(at)}", f"node:{at.node}")

    def cut_power(self, rack: str) -> None:
        """The rack loses power: every machine in it is off, whatever anybody's record says."""
        at = self.clock()
        self._cuts[rack] = at
        self._db.execute("INSERT OR REPLACE INTO cuts VALUES (?, ?)", (rack, at))

    # Power

    def power(self, at: Endpoint) -> str:
        """What the machine's power really is."""
        row = self._db.execute(
            "SELECT power, since FROM machines WHERE node = ?", (at.node,)
        ).fetchone()
        if row is None:
            return OFF
        cut = self._cuts.get(_rack(at))
        return OFF if cut is not None and cut >= row[1] else str(row[0])

    def set_power(self, at: Endpoint, power: str) -> None:
        """Somebody or something switches it."""
        self._db.execute(
            "INSERT OR REPLACE INTO machines VALUES (?, ?, ?, ?)",
            (at.node, _rack(at), power, self.clock()),
        )

    # What the BMC keeps

    def memory(self, node: str) -> dict[str, Any]:
        """What the BMC was told to keep."""
        row = self._db.execute("SELECT memory FROM bmcs WHERE node = ?", (node,)).fetchone()
        return {} if row is None else dict(msgspec.json.decode(row[0]))

    def remember(self, node: str, **what: Any) -> None:
        """Have the BMC keep this too."""
        text = msgspec.json.encode({**self.memory(node), **what}).decode()
        self._db.execute("INSERT OR REPLACE INTO bmcs VALUES (?, ?)", (node, text))

    def diary(self, node: str) -> list[tuple[float, str]]:
        """What ran on the machine last, oldest first."""
        rows = self._db.execute(
            "SELECT began, what FROM runs WHERE node = ? ORDER BY began DESC LIMIT 20", (node,)
        ).fetchall()
        return [(float(began), str(what)) for began, what in reversed(rows)]

    # Steps

    def run(self, at: Endpoint, what: str, token: str, latency_s: float, *, calls: bool) -> Run:
        """Begin the run of this token, or tell how it is going."""
        now = self.clock()
        cut = self._cuts.get(_rack(at), 0.0)
        ends, ended = now + latency_s, latency_s <= 0
        new = self._db.execute(_BEGIN, (token, at.node, what, now, ends, calls, now, ended))
        if not new.rowcount:
            asked = self._db.execute(_ASK, (now, now, cut, at.node, token)).fetchone()
            began, ends, ended = asked
            return Run(began, ends, bool(ended), lost=cut >= began and not ended)
        if self.chance() < _TIDY:
            self._forget_old(at.node)
        if calls:
            self._db.execute(
                "INSERT INTO machines VALUES (?, ?, ?, ?)"
                " ON CONFLICT (node) DO UPDATE SET rack = excluded.rack",
                (at.node, _rack(at), ON, now),  # a ramdisk runs on a machine that is on
            )
        if calls and not ended:
            heapq.heappush(self._calls, (ends, at.node, token))
            self._next_call.set()
        return Run(now, ends, ended)

    def run_anew(self, at: Endpoint, token: str, latency_s: float) -> Run:
        """Begin a run once more that was lost and that nothing calls back for."""
        now = self.clock()
        ends, ended = now + latency_s, latency_s <= 0
        self._db.execute(_ANEW, (now, ends, ended, at.node, token))
        return Run(now, ends, ended)

    def write_down(self, node: str, token: str) -> None:
        """Who told the machine to do something: the lease that the caller has on it."""
        self._db.execute(
            "INSERT INTO calls VALUES (?, ?, ?, ?)", (self.clock(), node, token, HELD.get())
        )

    def _forget_old(self, node: str) -> None:
        """Runs of earlier work have no reader any more; the last few are kept to look at."""
        rows = self._db.execute(
            "SELECT token FROM runs WHERE node = ? ORDER BY began DESC LIMIT -1 OFFSET 60", (node,)
        ).fetchall()
        self._db.executemany(
            "DELETE FROM runs WHERE node = ? AND token = ?", [(node, token) for (token,) in rows]
        )

    def forget(self, node: str, token: str) -> None:
        """The run is no longer wanted."""
        self._db.execute(
            "UPDATE runs SET ended = 1, calls = 0 WHERE node = ? AND token = ?", (node, token)
        )

    def chance(self) -> float:
        """Where in a range of latencies a run falls."""
        return random.random()  # noqa: S311 - no secret

    def _wants_to_call(self, node: str, token: str) -> bool:
        row = self._db.execute(
            "SELECT r.calls, r.ended, r.began, m.rack FROM runs r"
            " LEFT JOIN machines m ON m.node = r.node WHERE r.node = ? AND r.token = ?",
            (node, token),
        ).fetchone()
        if row is None or row[0] != 1 or row[1] != 0:
            return False
        return self._cuts.get(row[3] or "", 0.0) < float(row[2])

    async def call_back(self, call: Callable[[str], Awaitable[None]]) -> None:
        """Have each ramdisk whose step ended call back, for ever."""
        while True:
            self._next_call.clear()
            now = self.clock()
            while self._calls and self._calls[0][0] <= now:
                _, node, token = heapq.heappop(self._calls)
                if not self._wants_to_call(node, token):
                    continue
                try:
                    await call(node)
                except Exception as why:
                    log.debug("not the moment to call back", node=node, error=repr(why))
                    heapq.heappush(self._calls, (self.clock() + 0.2, node, token))
            pause = max(0.001, self._calls[0][0] - now) if self._calls else 3600.0
            if self._shared and now >= self._looked + _LOOK_S:
                self._load()  # what others did, and the calls of those who died
            pause = min(pause, _LOOK_S) if self._shared else pause
            try:
                async with asyncio.timeout(pause):
                    await self._next_call.wait()
            except TimeoutError:
                continue


def _rack(at: Endpoint) -> str:
    return str(at.driver_info.get("rack", ""))
