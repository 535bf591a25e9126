"""Power states of a server: numbers on the REST wire, words in facts."""

from enum import IntEnum


class Power(IntEnum):
    """What a hypervisor says of a guest. NOSTATE is "cannot be told": nothing acts on it."""

    NOSTATE = 0
    RUNNING = 1
    PAUSED = 3
    SHUTDOWN = 4
    CRASHED = 6
    SUSPENDED = 7

    @property
    def word(self) -> str:
        """As facts spell it."""
        return "pending" if self is Power.NOSTATE else self.name.lower()

    @property
    def is_down(self) -> bool:
        """Whether nothing runs."""
        return self in (Power.SHUTDOWN, Power.CRASHED)
