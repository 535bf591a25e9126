"""A runbook as a value: steps that an operator wrote down for others to run."""

from siderite.baremetal.domain.node import Json
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.record import Record


class Runbook(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that is recorded of a runbook. A public one has no owner."""

    name: str
    steps: list[Json]
    description: str | None = None
    disable_ramdisk: bool = False
    public: bool = False
    owner: str | None = None
    traits: list[str] = []
    extra: Json = {}

    def is_for(self, node: Node) -> bool:
        """Whether the node approves of it: they have a trait in common."""
        return not set(self.traits).isdisjoint(node.traits)

    @property
    def in_order(self) -> list[Json]:
        """Its steps as a client would ask for them."""
        steps = sorted(self.steps, key=lambda step: int(step["order"]))
        return [{k: v for k, v in step.items() if k != "order"} for step in steps]
