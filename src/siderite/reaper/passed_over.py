"""What a reaper passes over for a while: after that, things may have changed."""

import time
from dataclasses import dataclass
from dataclasses import field


@dataclass
class PassedOver:
    """Names, each until a moment of its own."""

    _until: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, seconds: float) -> None:
        """Pass it over for so long. Whose time is over is forgotten, or there were ever more."""
        now = time.monotonic()
        self._until = {one: end for one, end in self._until.items() if end > now}
        self._until[name] = now + seconds

    def __contains__(self, name: str) -> bool:
        return self._until.get(name, 0.0) > time.monotonic()

    def __len__(self) -> int:
        return len(self._until)
