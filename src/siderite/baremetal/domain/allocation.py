"""An allocation as a value: a client's wish for a node, and the node that was found for it."""

from enum import StrEnum

from siderite.baremetal.domain.node import Json
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.node_machine import P
from siderite.baremetal.domain.record import Record


class State(StrEnum):
    """Where the search stands."""

    ALLOCATING = "allocating"
    ACTIVE = "active"
    ERROR = "error"


class Allocation(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that is recorded of an allocation."""

    name: str | None = None
    node_uuid: str | None = None
    state: str = State.ALLOCATING.value
    last_error: str | None = None
    resource_class: str | None = None
    traits: list[str] = []
    candidate_nodes: list[str] = []
    owner: str | None = None
    extra: Json = {}

    def fits(self, node: Node) -> bool:
        """Whether the node is free and is what was asked for."""
        return (
            node.provision_state == P.AVAILABLE
            and node.instance_uuid is None
            and not node.maintenance
            and node.power_state is not None
            and node.resource_class == self.resource_class
            and (not self.candidate_nodes or node.uuid in self.candidate_nodes)
            and (self.owner is None or self.owner in (node.owner, node.lessee))
            and set(self.traits) <= set(node.traits)
        )
