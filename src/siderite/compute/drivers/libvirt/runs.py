"""Runs of driver calls by their token: a long one goes on while the worker looks after others.

A call that is not finished soon answers `Wait`; asked again with the same token it tells how that
run is going. After a crash nothing is remembered here, and the run begins anew: every one of them
looks at what is on the host first.
"""

import asyncio
from collections.abc import Awaitable
from collections.abc import Callable

from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.outcome import Outcome
from siderite.compute.domain.outcome import Wait
from siderite.compute.drivers.libvirt.hosts import Host
from siderite.compute.drivers.libvirt.trouble import HostError
from siderite.compute.drivers.libvirt.trouble import Refused
from siderite.compute.drivers.libvirt.trouble import Unreachable

PATIENCE_S = 2.0
AGAIN_IN_S = 0.5


class Run:
    """One run; `doing` is what the operator reads while it goes on."""

    def __init__(self, doing: str) -> None:
        self.doing = doing
        self.is_called_off = False
        """Asked to end before its time; whoever can, looks at it."""


class Runs:
    """The runs of this process."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._tasks: dict[tuple[str, str, str], tuple[Run, asyncio.Task[Outcome]]] = {}

    async def outcome(
        self, host: Host, token: str, doing: str, work: Callable[[Run], Awaitable[Outcome]]
    ) -> Outcome:
        """Begin the run, or tell how it is going."""
        key = (host.name, token, doing)
        known = self._tasks.get(key)
        if known is None:
            run = Run(doing)
            known = self._tasks[key] = (run, asyncio.create_task(_guarded(host, run, work)))
        run, task = known
        done, _ = await asyncio.wait({task}, timeout=self._patience_s)
        if not done:
            return Wait(f"host {host.name}: {run.doing}", AGAIN_IN_S)
        self._tasks.pop(key, None)
        return task.result()

    def under_way(
        self, host: Host, token: str, doing: str
    ) -> tuple[Run, "asyncio.Task[Outcome]"] | None:
        """The run with this token, if this process has one."""
        return self._tasks.get((host.name, token, doing))

    def others(self, run: Run, name: str) -> list[tuple[Run, "asyncio.Task[Outcome]"]]:
        """What else this process does to a domain."""
        return [
            (other, task)
            for (_, _, doing), (other, task) in self._tasks.items()
            if other is not run and doing.endswith(f"domain {name}")
        ]

    def close(self) -> None:
        """Give up on what is under way; whoever comes next begins it anew."""
        for _, task in self._tasks.values():
            task.cancel()
        self._tasks.clear()


async def _guarded(host: Host, run: Run, work: Callable[[Run], Awaitable[Outcome]]) -> Outcome:
    """Expected troubles become outcomes."""
    try:
        return await work(run)
    except Unreachable as why:
        return Wait(why.reason, why.again_in)
    except Refused as why:
        return Failed(why.reason, elsewhere=why.elsewhere)
    except HostError as why:
        return why.outcome
    except OSError as why:
        return Failed(f"host {host.name}, {run.doing}: {why.strerror or why}.")
