"""A deploy template as a value: steps for whoever asks for the trait that it is named after."""

from siderite.baremetal.domain.node import Json
from siderite.baremetal.domain.record import Record


class DeployTemplate(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that is recorded of a deploy template."""

    name: str
    steps: list[Json]
    extra: Json = {}
