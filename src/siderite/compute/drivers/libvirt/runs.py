"""Runs of driver calls by their token: a long one goes on while the worker looks after others.

A call that is not finished soon answers `Wait`; asked again with the same token it tells how that
run is going. Other processes do not know of it: whoever asked keeps the lease of its work until the
run has ended or was called off. After a crash nothing is remembered here, and the run begins anew:
every one of them looks at what is on the host first.
"""

import asyncio
import time
from collections.abc import Awaitable
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.outcome import Outcome
from siderite.compute.domain.outcome import Wait
from siderite.compute.drivers.libvirt.hosts import Host
from siderite.compute.drivers.libvirt.trouble import HostError
from siderite.compute.drivers.libvirt.trouble import Refused
from siderite.compute.drivers.libvirt.trouble import Unreachable

PATIENCE_S = 2.0
AGAIN_IN_S = 0.5
CALL_OFF_S = 30.0
"""How long one waits for a run that was called off: not all that a host does can be stopped."""

Key = tuple[str, str, str]


class Run:
    """One run; `doing` is what the operator reads while it goes on."""

    task: "asyncio.Task[Outcome]"

    def __init__(self, doing: str) -> None:
        self.doing = doing
        self.is_called_off = False
        self.interrupt: Callable[[], Awaitable[None]] | None = None
        """Ends a call to the host that would take its time."""
        self.is_apart = False
        """What it does just now, it does to no guest, and it looks before it goes on to one."""

    @property
    def is_over(self) -> bool:
        """Whether it has ended, one way or another."""
        return self.task.done()

    def check(self) -> None:
        """Refused, if it was asked to end before its time."""
        if self.is_called_off:
            raise Refused("it was called off", elsewhere=False)


class Runs:
    """The runs of this process."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._runs: dict[Key, Run] = {}

    async def outcome(
        self, host: Host, token: str, doing: str, work: Callable[[Run], Awaitable[Outcome]]
    ) -> Outcome:
        """Begin the run, or tell how it is going. Whoever stops waiting for the first answer calls
        it off.
        """
        key = (host.name, token, doing)
        run = self._runs.get(key)
        if run is not None and run.is_called_off:
            await asyncio.wait({run.task}, timeout=self._patience_s)
            if not run.is_over:
                return Wait(f"host {host.name} ends what was called off: {run.doing}", AGAIN_IN_S)
            run = None
        is_new = run is None
        if run is None:
            run = self._runs[key] = Run(doing)
            run.task = asyncio.create_task(_guarded(host, run, work))
        try:
            await asyncio.wait({run.task}, timeout=self._patience_s)
        except asyncio.CancelledError:
            if is_new:
                await self.call_off(run)
            raise
        if not run.is_over:
            reason = f"host {host.name}: {run.doing}"
            return Wait(reason, AGAIN_IN_S, partial(self.call_off, run))
        self._forget(run)
        return run.task.result()

    def under_way(self, host: Host, token: str, doing: str) -> Run | None:
        """The run with this token, if this process has one."""
        return self._runs.get((host.name, token, doing))

    def others(self, run: Run, name: str) -> list[Run]:
        """What else this process does to a domain."""
        return [
            other
            for (_, _, doing), other in self._runs.items()
            if other is not run and doing.endswith(f"domain {name}")
        ]

    async def call_off(self, run: Run) -> None:
        """Have a run end soon, and wait for that, also if one is told not to wait: nobody else may
        begin before.
        """
        run.is_called_off = True
        deadline = time.monotonic() + CALL_OFF_S
        while not run.is_over and not run.is_apart and time.monotonic() < deadline:
            with suppress(asyncio.CancelledError, Unreachable, Refused, HostError):
                if run.interrupt is not None:
                    await run.interrupt()
                await asyncio.wait({run.task}, timeout=AGAIN_IN_S)
        if run.is_over:
            self._forget(run)

    def _forget(self, run: Run) -> None:
        self._runs = {key: known for key, known in self._runs.items() if known is not run}

    def close(self) -> None:
        """Give up on what is under way; whoever comes next begins it anew."""
        for run in self._runs.values():
            run.task.cancel()
        self._runs.clear()


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
