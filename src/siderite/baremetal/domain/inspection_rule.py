"""An inspection rule as a value: what to do with a node when its inspection finds something."""

from typing import Self

import msgspec

from siderite.baremetal.domain.node import Json
from siderite.baremetal.domain.record import Record


class InspectionRule(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that is recorded of a rule. What a sensitive one does is never shown."""

    description: str | None = None
    priority: int = 0
    phase: str = "main"
    scope: str | None = None
    sensitive: bool = False
    conditions: list[Json] | None = []
    actions: list[Json] | None

    def shown(self) -> Self:
        """Without what it does, if that is nobody's business."""
        if not self.sensitive:
            return self
        return msgspec.structs.replace(self, conditions=None, actions=None)
