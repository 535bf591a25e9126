"""Stored text of which each reader sees some lines: put together, and cut, without parsing.

Every line but the first begins with the comma that separates its fields from those before it; a
line that says nothing is empty. Any choice of lines with the first among them is then the inside of
a JSON object. Lines beyond the last one that is chosen are not even looked for: those that most
readers see should come first.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from operator import itemgetter

import msgspec


class Choice(msgspec.Struct, frozen=True):
    """What a reader sees: picks its lines out of the first `reach`."""

    pick: Callable[[list[str]], Iterable[str]]
    reach: int


def choice(numbers: Sequence[int]) -> Choice:
    """The lines with these numbers, in rising order; at least two."""
    return Choice(itemgetter(*numbers), numbers[-1] + 1)


def stored(first: str, *rest: str) -> str:
    """The text to store."""
    return "\n".join([first, *["," + text if text else "" for text in rest]])


def cut(body: str, seen: Choice) -> str:
    """What a reader sees of a stored text, as a JSON object; marks are still to be replaced."""
    return "{" + "".join(seen.pick(body.split("\n", seen.reach))) + "}"
