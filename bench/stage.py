"""A running subject with its fleet, and the limits that its figures are held against.

Workloads ask it for what they need; nodes are put in only when the first workload wants them.
"""

import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from bench import static
from bench.address import Address
from bench.capture import Answer
from bench.child import Child
from bench.commits import Commits
from bench.fleet import Fleet
from bench.plan import Plan
from bench.subject import Running
from bench.subject import Subject


class Stage:
    """One subject, from its start to its end. Without `commits`, no limits are measured. `scratch`
    is an empty PostgreSQL database for what is measured in this process; `fresh` makes another.
    """

    def __init__(
        self,
        subject: Subject,
        plan: Plan,
        *,
        place: Path,
        commits: Commits | None,
        scratch: str | None = None,
        fresh: Callable[[str], str] | None = None,
    ) -> None:
        self.scratch = scratch
        self.fresh = fresh
        self.plan = plan
        self.commits = commits
        self._subject = subject
        self.place = place
        self._running: Running | None = None
        self._fleet: Fleet | None = None
        # Keeps the nodes of two runs against one address apart.
        self._run = secrets.token_hex(3)
        self._made = 0
        self.first_start_s: float | None = None

    def __enter__(self) -> Self:
        running = self._subject.start()
        self._running = running
        self.first_start_s = running.child.ready_after_s if running.child else None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.child is not None:
            self.child.stop()

    @property
    def title(self) -> str:
        """What the table calls the subject."""
        return self._subject.title

    @property
    def address(self) -> Address:
        """Where the subject listens now."""
        assert self._running is not None, "a stage is used inside `with`"
        return self._running.address

    @property
    def child(self) -> Child | None:
        """The subject's process, if it is ours."""
        return self._running.child if self._running else None

    @property
    def fleet(self) -> Fleet:
        """The nodes that are there before anything is measured."""
        if self._fleet is None:
            assert self._running is not None, "a stage is used inside `with`"
            fleet = self.new_fleet(self.plan.nodes)
            self._subject.stock(self._running, fleet)
            self._fleet = fleet
        return self._fleet

    def new_fleet(self, size: int) -> Fleet:
        """Names for nodes that nobody has made yet."""
        self._made += 1
        return Fleet(f"{self._run}-{self._made}", size)

    def restart(self) -> float:
        """End the subject and start it again; the time to its first 200."""
        assert self.child is not None, "only a subject of our own is restarted"
        self.child.stop()
        self._running = self._subject.start()
        return self.child.ready_after_s

    def stand_still(self, *, still: bool) -> None:
        """Take all processor time from the subject, or give it back."""
        if self.child is not None:
            with suppress(ProcessLookupError):  # it is gone, which is told elsewhere
                self.child.stand_still(still=still)

    def static(self, answers: list[Answer]) -> tuple[Child, Address]:
        """An app that gives these answers of the subject, at an address with the same headers."""
        child, where = static.start(answers, self.place)
        return child, replace(self.address, host=where.host, port=where.port)
