"""What a driver answers: done, waiting for something, or failed. Values, not exceptions."""

from collections.abc import Awaitable
from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import field
from typing import Any

import msgspec


class Done(msgspec.Struct, frozen=True):
    """Finished; `found` is what the driver learnt that the record should keep."""

    found: dict[str, Any] = msgspec.field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wait:
    """Not finished: why, and in how many seconds it is worth asking again."""

    reason: str
    again_in: float
    call_off: Callable[[], Awaitable[None]] | None = field(default=None, compare=False)
    """Ends what goes on in this process, and waits for that; None if nothing does. Asked for by
    another process it would be begun a second time, so its lease is kept meanwhile.
    """


class Failed(msgspec.Struct, frozen=True):
    """It cannot be done; the reason is for the user, with the remedy if there is one.

    `elsewhere` says that another host may succeed: a build is then placed anew.
    """

    reason: str
    elsewhere: bool = True


Outcome = Done | Wait | Failed
