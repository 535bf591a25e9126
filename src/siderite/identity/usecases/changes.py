"""A counter of changes that may end or alter somebody's rights.

Caches remember the count they looked at; a change made in this process makes all of them look
again at once, also those whose look was under way. Changes made by other processes are seen when
entries age.
"""


class Changes:
    """How many such changes this process has made."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def note(self) -> None:
        """Rights have changed: nothing remembered before counts any more."""
        self.count += 1
