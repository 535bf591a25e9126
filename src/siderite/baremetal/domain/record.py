"""What all records beside nodes have in common: a port, a chassis, a runbook …"""

from collections.abc import Mapping
from typing import Any
from typing import Self

import msgspec

from siderite.core.times import iso


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The fields of every record; `version` counts its changes."""

    uuid: str
    version: int = 1
    created_at: str
    updated_at: str | None = None

    def changed(self, now: float, changes: Mapping[str, Any]) -> Self:
        """The record with these fields changed, one version on."""
        return msgspec.structs.replace(
            self, version=self.version + 1, updated_at=iso(now), **changes
        )

    def shown(self) -> Self:
        """The record as clients may see it, but for what is masked by name."""
        return self
