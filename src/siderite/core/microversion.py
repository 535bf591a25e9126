"""Microversions: what a request asks for, what we have, and the refusal in between.

A version is kept as its minor number only: 1.38 of bare metal is 38. Numbers of our own begin at
900, so that they never collide with a later upstream number; the gap is refused.
"""

import re
from dataclasses import dataclass

from siderite.core.errors import NotAcceptable

_NUMBER = re.compile(r"[0-9]{1,6}\Z")
OURS = 900
"""The first minor number of our own."""


@dataclass(frozen=True, slots=True)
class Range:
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
