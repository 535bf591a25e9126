"""What a driver answers: done, waiting for something, or failed. Values, not exceptions."""

from dataclasses import dataclass
from dataclasses import field
from typing import Any


@dataclass(frozen=True, slots=True)
class Done:
    """Finished; `found` is what the driver learnt that the record should keep."""

    found: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wait:
    """Not finished: why, and in how many seconds it is worth asking again."""

    reason: str
    again_in: float


@dataclass(frozen=True, slots=True)
class Failed:
    """It cannot be done; the reason is for the user, with the remedy if there is one.

    `elsewhere` says that another host may succeed: a build is then placed anew.
    """

    reason: str
    elsewhere: bool = True


Outcome = Done | Wait | Failed
