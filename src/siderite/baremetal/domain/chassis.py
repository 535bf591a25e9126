"""A chassis as a value: what several nodes stand in."""

from siderite.baremetal.domain.node import Json
from siderite.baremetal.domain.record import Record


class Chassis(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that is recorded of a chassis."""

    description: str | None = None
    extra: Json = {}
