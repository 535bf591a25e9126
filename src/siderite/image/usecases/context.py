"""What every use case works with."""

from dataclasses import dataclass

from siderite.core.transition import Door


@dataclass(frozen=True, slots=True)
class Context:
    """The door, and the options that decisions depend on."""

    door: Door
    max_limit: int = 1000
