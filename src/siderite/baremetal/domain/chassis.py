"""A chassis as a value: what several nodes stand in."""

from collections.abc import Mapping
from typing import Any

import msgspec

from siderite.baremetal.domain.node import Json
from siderite.core.times import iso


class Chassis(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that is recorded of a chassis."""

    uuid: str
    version: int = 1
    created_at: str
    updated_at: str | None = None
    description: str | None = None
    extra: Json = {}

    def changed(self, now: float, changes: Mapping[str, Any]) -> "Chassis":
        """The chassis with these fields changed, one version on."""
        return msgspec.structs.replace(
            self, version=self.version + 1, updated_at=iso(now), **changes
        )
