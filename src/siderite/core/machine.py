"""A state machine is a table of rows, and firing it is a pure function.

The same table is the documentation, the console's diagram, the list of legal verbs and the subject
of the property tests. `Machine.fire` answers where an event leads; it changes nothing itself: that
is `core.transition`'s job, the one door.
"""

from collections.abc import Iterator
from enum import StrEnum

import msgspec
from msgspec.structs import replace

from siderite.core.errors import IllegalVerb

KEEP = "(keep)"
"""As a row's target: the target that the machine had stays."""


class Kind(StrEnum):
    """What a state means for who may move the machine on."""

    STABLE = "stable"  # moves only on a request; no target
    ACTIVE = "active"  # work is under way; moves by itself
    WAIT = "wait"  # work is parked until something outside calls back; moves by itself
    FAILED = "failed"  # moves only on a request; the target stays visible
    HOLD = "hold"  # an outside orchestrator decides; the target stays visible


class State(msgspec.Struct, frozen=True):
    """A state, what it means, and what is done and for how long at most while in it."""

    name: str
    kind: Kind
    target: str | None = None
    work: str | None = None
    deadline_s: float | None = None
    meaning: str = ""

    @property
    def moves_by_itself(self) -> bool:
        return self.kind in (Kind.ACTIVE, Kind.WAIT)


class Row(msgspec.Struct, frozen=True):
    """In state `state`, `event` leads to `to`; `target` overrides the new state's own default."""

    state: str
    event: str
    to: str
    target: str | None = None


class Moved(msgspec.Struct, frozen=True):
    """The answer of `fire`: the new state and target, and the row that said so."""

    state: State
    target: str | None
    row: Row


class Machine:
    """States and rows, checked once when made."""

    def __init__(self, name: str, states: tuple[State, ...], rows: tuple[Row, ...]) -> None:
        self.name = name
        # What is recorded is plain text, whatever the names are: so it is of the type that is read.
        self.states = {
            str(state.name): replace(state, name=str(state.name), target=_text(state.target))
            for state in states
        }
        self.rows = tuple(replace(row, target=_text(row.target)) for row in rows)
        self._next = {(row.state, row.event): row for row in self.rows}
        if len(self.states) != len(states) or len(self._next) != len(rows):
            raise ValueError(f"machine {name}: a state or a (state, event) pair is there twice")
        for row in rows:
            if row.state not in self.states or row.to not in self.states:
                raise ValueError(f"machine {name}: {row} names an unknown state")

    def fire(self, state: str, event: str, target: str | None = None) -> Moved:
        """Where `event` leads from `state`, with `target` the present target."""
        row = self._next.get((state, event))
        if row is None:
            legal = ", ".join(self.events(state)) or "nothing"
            raise IllegalVerb(f"{self.name}: cannot {event} from {state}; legal here: {legal}.")
        after = self.states[row.to]
        if row.target == KEEP:
            new_target = None if target == row.to else target
        elif row.target is not None:
            new_target = row.target
        else:
            new_target = None if target == row.to else after.target
        return Moved(after, new_target, row)

    def can(self, state: str, event: str) -> bool:
        """Whether `event` is legal in `state`."""
        return (state, event) in self._next

    def events(self, state: str) -> list[str]:
        """The legal events of a state, in the table's order."""
        return [row.event for row in self.rows if row.state == state]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __str__(self) -> str:
        """The table as one prints it."""
        lines = ["| from | event | to | target |", "|---|---|---|---|"]
        for row in self.rows:
            target = row.target if row.target is not None else self.states[row.to].target
            lines.append(f"| {row.state} | {row.event} | {row.to} | {target or ''} |")
        return "\n".join(lines)


def _text(name: str | None) -> str | None:
    return None if name is None else str(name)
