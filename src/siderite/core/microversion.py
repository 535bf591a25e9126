"""Microversions: what a request asks for, what we have, and the refusal in between.

A version is kept as its minor number only: 1.38 of bare metal is 38. Numbers of our own begin at
900, so that they never collide with a later upstream number; the gap is refused.
"""

import re
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable

import msgspec

from siderite.core.errors import NotAcceptable

_NUMBER = re.compile(r"[0-9]{1,6}\Z")
_MOST_KNOWN = 1000
_USUAL_BYTES = 100
OURS = 900
"""The first minor number of our own."""


class Range(msgspec.Struct, frozen=True):
    """The versions that a service speaks."""

    service: str
    major: int
    low: int
    upstream: int
    ours: int

    def text(self, minor: int) -> str:
        """`1.38` for 38."""
        return f"{self.major}.{minor}"

    @property
    def high(self) -> int:
        """The newest."""
        return self.ours

    @property
    def every(self) -> tuple[int, ...]:
        """All of them, from the oldest on."""
        return (*range(self.low, self.upstream + 1), *range(OURS, self.ours + 1))

    def parse(self, asked: str | None) -> int:
        """The minor number of what a header asks for; nothing asked is the oldest."""
        if not asked:
            return self.low
        asked = asked.strip()
        if asked.lower() == "latest":
            return self.high
        major, _, minor = asked.partition(".")
        if not _NUMBER.match(major) or not _NUMBER.match(minor):
            raise NotAcceptable(
                f"{asked[:40]!r} is not an API version; write it as"
                f" {self.text(self.upstream)} or latest."
            )
        number = int(minor)
        if int(major) != self.major or not self._has(number):
            raise NotAcceptable(
                f"Version {asked} was requested but this {self.service} API speaks versions"
                f" {self.text(self.low)} to {self.text(self.upstream)} and"
                f" {self.text(OURS)} to {self.text(self.ours)}."
            )
        return number

    def _has(self, number: int) -> bool:
        return self.low <= number <= self.upstream or OURS <= number <= self.ours


Headers = tuple[tuple[bytes, bytes], ...]


class Reader:
    """The version that a request's headers ask for. Few forms of asking are in use, so the answers
    are remembered.
    """

    def __init__(self, names: Collection[bytes], parse: Callable[[Headers], int]) -> None:
        self._names = frozenset(names)
        self._parse = parse
        self._known: dict[Headers, int] = {}

    def read(self, headers: Iterable[tuple[bytes, bytes]]) -> int:
        """The version of a request with these headers."""
        said = tuple(pair for pair in headers if pair[0] in self._names)
        known = self._known.get(said)
        if known is None:
            known = self._parse(said)
            size = sum(len(value) for _, value in said)
            if len(self._known) < _MOST_KNOWN and size < _USUAL_BYTES:
                self._known[said] = known
        return known
