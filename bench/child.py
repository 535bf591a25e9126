"""A process of ours: started in a session of its own, waited for until it answers, ended for sure.

Used for the service, the peer and the static app. Reads /proc for the memory of the whole session.
"""

import http.client
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bench.address import Address


class DidNotStart(Exception):
    """A process ended, or gave no 200 in time; the message has the end of its log."""


@dataclass(frozen=True, slots=True)
class Child:
    """A running process; `ready_after_s` is the time from its start to the first 200. `others`
    belong to it, and end with it.
    """

    process: subprocess.Popen[bytes]
    ready_after_s: float
    others: "tuple[Child, ...]" = ()

    def stop(self, *, patience_s: float = 20.0) -> None:
        """Ask it to end; after the patience, end what is left of its session."""
        for other in self.others:
            other.stop(patience_s=patience_s)
        with suppress(ProcessLookupError):
            self.stand_still(still=False)
        self.process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(patience_s)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stand_still(self, *, still: bool) -> None:
        """Take all processor time from it, or give it back. It is so on return."""
        for other in self.others:
            other.stand_still(still=still)
        os.killpg(self.process.pid, signal.SIGSTOP if still else signal.SIGCONT)
        if still:
            self._await_stop()

    def _await_stop(self) -> None:
        """It goes on with what it does at the moment for a while; its end is left for `poll()`."""
        with suppress(ChildProcessError):  # it was told already
            os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resident_mb(self) -> float:
        """Resident memory of the process and those it started, in MB of 10**6 bytes."""
        mine = sum(_resident_kib(pid) for pid in _family(self.process.pid)) * 1024 / 1e6
        return mine + sum(other.resident_mb() for other in self.others)


def start(
    command: Sequence[str],
    ask: Address,
    path: str,
    *,
    log: Path,
    env: Mapping[str, str] | None = None,
    patience_s: float = 60.0,
) -> Child:
    """Start a command and wait until `path` answers 200."""
    begin = time.perf_counter()
    with log.open("ab") as out:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=None if env is None else os.environ | env,
            start_new_session=True,
        )
    while not _answers(ask, path):
        waited = time.perf_counter() - begin
        if process.poll() is not None or waited > patience_s:
            Child(process, waited).stop(patience_s=1)
            tail = log.read_text(errors="replace")[-2000:]
            raise DidNotStart(
                f"{command[0]} gave no 200 at {path} in {waited:.1f} s; its log:\n{tail}"
            )
        time.sleep(0.005)
    return Child(process, time.perf_counter() - begin)


def _answers(ask: Address, path: str) -> bool:
    connection = http.client.HTTPConnection(ask.host, ask.port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def _family(session: int) -> list[int]:
    """The processes of a session: what a command that was started in its own has become."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name, in brackets, may hold spaces; after it: state, parent, group, session.
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended since
        if int(fields[3]) == session:
            found.append(int(stat.parent.name))
    return found


def _resident_kib(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0
