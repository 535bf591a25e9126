"""Doing a thing to many machines, and waiting for its end with something to look at."""

import sys
import time
from collections import Counter
from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from siderite.cli.cloud import Away
from siderite.cli.cloud import Late
from siderite.cli.cloud import Refused

_PAUSE_S = 0.5
_NAMED = 5


@dataclass(frozen=True, slots=True)
class Sight:
    """A machine at one moment: the state it is in, whether that is the end, and what went wrong."""

    state: str
    is_over: bool = False
    problem: str | None = None


def each(names: Sequence[str], do: Callable[[str], Any]) -> tuple[list[tuple[str, Any]], int]:
    """What came of it for each that was not refused, and the exit code: the first refusal's."""
    done, code = [], 0
    for name in names:
        try:
            done.append((name, do(name)))
        except Away:
            raise
        except Refused as why:
            print(f"siderite: {name}: {why}", file=sys.stderr)
            code = code or why.exit_code
    return done, code


def until_over(
    machines: Sequence[tuple[str, Any]], look: Callable[[Any], Sight], timeout_s: float
) -> int:
    """Wait for all of them; 0, or the code of the first that went wrong, or 5 for those late."""
    show = _Bar(len(machines)) if sys.stderr.isatty() else _Lines()
    deadline = time.monotonic() + timeout_s
    open_ = dict(machines)
    states: dict[str, str] = {}
    code = 0
    try:
        with show:
            while open_:
                for name, machine in list(open_.items()):
                    sight = look(machine)
                    if states.get(name) != sight.state:
                        states[name] = sight.state
                        show.moved(name, sight.state)
                    if sight.is_over:
                        del open_[name]
                        code = code or (1 if sight.problem else 0)
                        show.ended(name, sight)
                show.now(Counter(states[name] for name in open_))
                if open_ and time.monotonic() >= deadline:
                    break
                if open_:
                    time.sleep(min(_PAUSE_S, max(0.0, deadline - time.monotonic())))
    except KeyboardInterrupt:
        some = ", ".join(list(open_)[:_NAMED]) + (" …" if len(open_) > _NAMED else "")
        print(f"siderite: no longer watched, but it goes on: {some}.", file=sys.stderr)
        raise
    for name in open_:
        late = Late(f"{name} is still {states[name]} after {timeout_s:g} seconds")
        print(f"siderite: {late}; it goes on.", file=sys.stderr)
        code = code or late.exit_code
    return code


class _Lines:
    """For logs: a line per change."""

    def __enter__(self) -> "_Lines":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def moved(self, name: str, state: str) -> None:
        print(f"{name}: {state}", file=sys.stderr)

    def ended(self, name: str, sight: Sight) -> None:
        if sight.problem:
            print(f"siderite: {name}: {sight.problem}", file=sys.stderr)

    def now(self, counts: Counter[str]) -> None:
        pass


class _Bar(_Lines):
    """For eyes: how many are done, and in which states the others are."""

    def __init__(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn
        from rich.progress import MofNCompleteColumn
        from rich.progress import Progress
        from rich.progress import TextColumn
        from rich.progress import TimeElapsedColumn

        self._progress = Progress(
            BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            TextColumn("{task.description}", markup=False),
            console=Console(stderr=True),
        )  # fmt: skip
        self._task = self._progress.add_task("", total=total)

    def __enter__(self) -> "_Bar":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def moved(self, name: str, state: str) -> None:
        """The bar tells of all at once."""

    def ended(self, name: str, sight: Sight) -> None:
        self._progress.advance(self._task)
        if sight.problem:
            self._progress.console.print(
                f"siderite: {name}: {sight.problem}", markup=False, highlight=False
            )

    def now(self, counts: Counter[str]) -> None:
        said = ", ".join(f"{count} {state}" for state, count in counts.most_common(4))
        self._progress.update(self._task, description=said)
