"""Regular expressions that users write in filters, without backtracking: a pattern becomes a
machine that looks at each character once, so that none can be made to take long.

`^ $ . [ ] ( ) | * + ? {m,n} \\d \\w \\s` mean what they mean elsewhere; letters match in either
case, anywhere in the text. What else there may be (look-arounds, back-references) is refused.
"""

from collections.abc import Callable
from functools import lru_cache

from siderite.core.errors import Invalid

_MOST_CHARACTERS, _MOST_STATES, _MOST_REPEATS, _MOST_SEEN = 255, 2000, 255, 1000
_BEGIN, _END = "\x02", "\x03"
_ENDS = (_BEGIN, _END)
_REPEATS = "*+?{"
_SIGNS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
Meets = Callable[[str], bool]
_CLASSES: dict[str, Meets] = {
    "d": str.isdecimal,
    "w": lambda letter: letter.isalnum() or letter == "_",
    "s": str.isspace,
}


def _wrong(text: str, why: str) -> Invalid:
    return Invalid(
        f"The pattern {text[:80]!r} is not a regular expression that is known here: {why}"
    )


class _Machine:
    """States with ways between them: on a character that meets a condition, or on none."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.free: list[list[int]] = []
        self.step: list[tuple[Meets, int] | None] = []

    def state(self) -> int:
        if len(self.free) >= _MOST_STATES:
            raise _wrong(self._text, "it is too large.")
        self.free.append([])
        self.step.append(None)
        return len(self.free) - 1

    def on(self, start: int, meets: Meets) -> int:
        end = self.state()
        self.step[start] = (meets, end)
        return end


Part = Callable[[_Machine, int], int]
"""Adds itself to a machine from a state on; the state it ends in."""


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def whole(self) -> Part:
        part = self._either()
        if self.at < len(self.text):
            raise _wrong(self.text, "a ) has no (.")
        return part

    def _next(self) -> str:
        return self.text[self.at : self.at + 1]

    def _take(self) -> str:
        letter = self._next()
        if not letter:
            raise _wrong(self.text, "it ends too early.")
        self.at += 1
        return letter

    def _either(self) -> Part:
        ways = [self._row()]
        while self._next() == "|":
            self.at += 1
            ways.append(self._row())
        return ways[0] if len(ways) == 1 else _either(ways)

    def _row(self) -> Part:
        parts: list[Part] = []
        while self._next() not in ("", "|", ")"):
            parts.append(self._repeated(self._atom()))
        return _row(parts)

    def _repeated(self, part: Part) -> Part:
        sign = self._next()
        if not sign or sign not in _REPEATS:
            return part
        if self.text[self.at - 1] in "^$" and self.text[self.at - 2 : self.at - 1] != "\\":
            raise _wrong(self.text, f"{sign} cannot follow ^ or $.")
        self.at += 1
        least, most = _SIGNS.get(sign) or self._counts()
        if self._next() == "?":
            self.at += 1  # as few as can be: it is there or not, all the same
        if self._next() and self._next() in _REPEATS:
            raise _wrong(self.text, "what is repeated cannot be repeated again.")
        return _repeated(part, least, most)

    def _counts(self) -> tuple[int, int | None]:
        inner, closed, _ = self.text[self.at :].partition("}")
        low, comma, high = inner.partition(",")
        self.at += len(inner) + 1
        is_sound = closed and low.isdecimal() and (not high or high.isdecimal())
        least = int(low) if is_sound and len(low) < 4 else _MOST_REPEATS + 1  # noqa: PLR2004
        most: int | None = least
        if comma:
            most = int(high) if high and len(high) < 4 else None  # noqa: PLR2004
        if (
            not is_sound
            or least > _MOST_REPEATS
            or (most or 0) > _MOST_REPEATS
            or (most is not None and most < least)
        ):
            raise _wrong(self.text, f"counts are {{m}}, {{m,}} or {{m,n}}, up to {_MOST_REPEATS}.")
        return least, most

    def _atom(self) -> Part:
        letter = self._take()
        if letter == "(":
            return self._group()
        if letter in _REPEATS:
            raise _wrong(self.text, f"{letter} has nothing to repeat.")
        return _one(self._meets(letter))

    def _group(self) -> Part:
        if self._next() == "?":
            if self.text[self.at : self.at + 2] != "?:":
                raise _wrong(self.text, "(? is only known as (?: .")
            self.at += 2
        part = self._either()
        if self._take() != ")":
            raise _wrong(self.text, "a ( is not closed.")
        return part

    def _meets(self, letter: str) -> Meets:
        if letter == "^":
            return lambda seen: seen == _BEGIN
        if letter == "$":
            return lambda seen: seen == _END
        if letter == ".":
            return lambda seen: seen not in _ENDS
        if letter == "[":
            return self._set()
        if letter == "\\":
            return self._escaped(self._take())
        return _same(letter)

    def _escaped(self, letter: str) -> Meets:
        known = _CLASSES.get(letter.lower())
        if known is not None:
            if letter.islower():
                return known
            return lambda seen: seen not in _ENDS and not known(seen)
        if letter.isalnum():
            raise _wrong(self.text, f"\\{letter} is not known.")
        return _same(letter)

    def _set(self) -> Meets:
        is_other = self._next() == "^"
        self.at += is_other
        ways: list[Meets] = []
        while self._next() != "]" or not ways:
            letter = self._take()
            if letter == "[" and self._next() in (":", ".", "="):
                raise _wrong(self.text, "names of classes are not known; write \\d, \\w or \\s.")
            if letter == "\\":
                named = self._take()
                if named.isupper():
                    raise _wrong(self.text, f"\\{named} is not known within [ ].")
                ways.append(self._escaped(named))
            elif self._next() == "-" and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                last = self._take()
                if last < letter or last == "\\":
                    raise _wrong(self.text, f"{letter}-{last} is no range.")
                ways.append(_between(letter, last))
            else:
                ways.append(_same(letter))
        self.at += 1
        return lambda seen: seen not in _ENDS and any(way(seen) for way in ways) != is_other


def _same(letter: str) -> Meets:
    both = frozenset((letter, letter.lower(), letter.upper()))
    return lambda seen: seen in both


def _between(first: str, last: str) -> Meets:
    return lambda seen: first <= seen <= last or first <= seen.upper() <= last


def _one(meets: Meets) -> Part:
    return lambda machine, start: machine.on(start, meets)


def _row(parts: list[Part]) -> Part:
    def add(machine: _Machine, start: int) -> int:
        for part in parts:
            start = part(machine, start)
        return start

    return add


def _either(ways: list[Part]) -> Part:
    def add(machine: _Machine, start: int) -> int:
        end = machine.state()
        for way in ways:
            first = machine.state()
            machine.free[start].append(first)
            machine.free[way(machine, first)].append(end)
        return end

    return add


def _repeated(part: Part, least: int, most: int | None) -> Part:
    def add(machine: _Machine, start: int) -> int:
        for _ in range(least):
            start = part(machine, start)
        end = machine.state()
        machine.free[start].append(end)
        if most is None:
            first = machine.state()
            machine.free[start].append(first)
            machine.free[part(machine, first)].append(first)
            machine.free[first].append(end)
            return end
        for _ in range(most - least):
            first = machine.state()
            machine.free[start].append(first)
            start = part(machine, first)
            machine.free[start].append(end)
        return end

    return add


class Pattern:
    """One pattern. What follows from a character is worked out once, when it is first met: each
    set of the machine's states that is met gets a number, and from it ways by character.
    """

    def __init__(self, text: str) -> None:
        if len(text) > _MOST_CHARACTERS:
            raise _wrong(text, f"it is over {_MOST_CHARACTERS} characters.")
        self._machine = _Machine(text)
        start = self._machine.state()
        self._end = _Parser(text).whole()(self._machine, start)
        self._first = self._closed({start})
        self._forget()

    def _forget(self) -> None:
        self._numbers: dict[frozenset[int], int] = {}
        self._sets: list[frozenset[int]] = []
        self._ways: list[dict[str, int]] = []
        self._ends: list[bool] = []
        self._begun = self._after(self._number(self._first), _BEGIN)

    def _number(self, states: frozenset[int]) -> int:
        found = self._numbers.get(states)
        if found is None:
            found = self._numbers[states] = len(self._sets)
            self._sets.append(states)
            self._ways.append({})
            self._ends.append(self._end in states)
        return found

    def _closed(self, states: set[int]) -> frozenset[int]:
        """With what is reached on no character."""
        todo = list(states)
        while todo:
            for further in self._machine.free[todo.pop()]:
                if further not in states:
                    states.add(further)
                    todo.append(further)
        return frozenset(states)

    def _after(self, number: int, letter: str) -> int:
        steps = (self._machine.step[state] for state in self._sets[number])
        reached = {step[1] for step in steps if step is not None and step[0](letter)}
        found = self._number(self._closed(reached) | self._first)
        self._ways[number][letter] = found
        return found

    def is_in(self, text: str) -> bool:
        """Whether some part of the text is what the pattern says."""
        if len(self._sets) > _MOST_SEEN:
            self._forget()
        ways, at = self._ways, self._begun
        for letter in text.lower():
            if self._ends[at]:
                return True
            further = ways[at].get(letter)
            at = self._after(at, letter) if further is None else further
        if self._ends[at]:
            return True
        further = ways[at].get(_END)
        return self._ends[self._after(at, _END) if further is None else further]


@lru_cache(64)
def pattern(text: str) -> Pattern:
    """A pattern, if it is one."""
    return Pattern(text)


def is_in(text: str, column: str | None) -> bool:
    """Whether a text holds a pattern."""
    return column is not None and pattern(text).is_in(column)


def is_in_a_word(text: str, column: str | None) -> bool:
    """Whether one of the words of a text holds a pattern."""
    return column is not None and any(map(pattern(text).is_in, column.split(" ")))
