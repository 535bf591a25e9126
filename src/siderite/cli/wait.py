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
from siderite.cli.show import plain

_PAUSE_S = 0.5
_NAMED = 5


@dataclass(frozen=True, slots=True)
class Sight:
    """A machine at one moment: the state it is in, whether that is the end, and what went wrong."""

    state: str
    is_over: bool = False
    problem: str | None = None


def each(names: Sequence[str], do: Callable[[str], Any]) -> tuple[list[tuple[str, Any]], int]:
    """What came of it for each that was not refused, and the exit code: the first refusal's. If the
    service goes away, it is said how far it came: whoever asks again may leave those out.
    """
    done, code = [], 0
    for at, name in enumerate(names):
        try:
            done.append((name, do(name)))
        except Away:
            if at:
                far = f"{at} of {len(names)} were asked, up to {names[at - 1]}"
                print(f"siderite: {far}; {name} may have been, no other was.", file=sys.stderr)
            raise
        except Refused as why:
            print(f"siderite: {name}: {why}", file=sys.stderr)
            code = code or why.exit_code
    return done, code


def until_over(
    machines: Sequence[tuple[str, Any]], look: Callable[[Any], Sight], timeout_s: float
) -> int:
    """Wait for all of them; 0, or the code of the first that went wrong, or 5 for those late.

    A service that is away is asked again: what it was asked to do goes on when it is back.
    """
    watch = _Watch(machines, look, _Bar(len(machines)) if sys.stderr.isatty() else _Lines())
    deadline = time.monotonic() + timeout_s
    try:
        with watch.show:
            while watch.looks_on():
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    break
                time.sleep(min(_PAUSE_S, left_s))
    except KeyboardInterrupt:
        names = [name for name, _ in watch.open.values()]
        some = ", ".join(names[:_NAMED]) + (" …" if len(names) > _NAMED else "")
        print(f"siderite: no longer watched, but it goes on: {some}.", file=sys.stderr)
        raise
    code = watch.code
    for at, (name, _) in watch.open.items():
        state = (
            f"is still {watch.states[at]} after" if at in watch.states else "was not seen within"
        )
        late = Late(f"{name} {state} {timeout_s:g} seconds")
        print(f"siderite: {late}; it goes on.", file=sys.stderr)
        code = code or late.exit_code
    return code


class _Watch:
    """Those that are not over, by their place in the list: two may have one name."""

    def __init__(
        self, machines: Sequence[tuple[str, Any]], look: Callable[[Any], Sight], show: "_Lines"
    ) -> None:
        self.open = dict(enumerate(machines))
        self.states: dict[int, str] = {}
        self.code = 0
        self.show = show
        self._look = look
        self._is_away = False

    def looks_on(self) -> bool:
        """Look at each of them once; whether some are left."""
        for at, (name, machine) in list(self.open.items()):
            try:
                sight = self._look(machine)
            except Away as away:
                if not self._is_away:
                    self.show.told(f"{str(away).partition(';')[0].rstrip('.')}; trying again.")
                self._is_away = True
                break
            except Refused as why:  # it is gone, say: no reason to leave the others
                self._ended(at, name, str(why), why.exit_code)
                continue
            self._is_away = False
            if self.states.get(at) != sight.state:
                self.states[at] = sight.state
                self.show.moved(name, sight.state)
            if sight.is_over:
                self._ended(at, name, sight.problem, 1)
        self.show.now(Counter(self.states.values()))
        return bool(self.open)

    def _ended(self, at: int, name: str, problem: str | None, code: int) -> None:
        del self.open[at]
        self.show.ended()
        if problem:
            self.show.told(f"{name}: {problem}")
            self.code = self.code or code


class _Lines:
    """For logs: a line per change."""

    def __enter__(self) -> "_Lines":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def moved(self, name: str, state: str) -> None:
        print(plain(f"{name}: {state}"), file=sys.stderr)

    def ended(self) -> None:
        pass

    def told(self, text: str) -> None:
        print(plain(f"siderite: {text}"), file=sys.stderr)

    def now(self, counts: Counter[str]) -> None:
        pass


class _Bar(_Lines):
    """For eyes: how many are done, and in which states all of them are."""

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

    def ended(self) -> None:
        self._progress.advance(self._task)

    def told(self, text: str) -> None:
        self._progress.console.print(plain(f"siderite: {text}"), markup=False, highlight=False)

    def now(self, counts: Counter[str]) -> None:
        said = ", ".join(f"{count} {state}" for state, count in counts.most_common(4))
        self._progress.update(self._task, description=said)
