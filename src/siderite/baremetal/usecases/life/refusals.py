"""Why something is not done to a node now, where several verbs say so."""

from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.node_machine import NODE
from siderite.baremetal.domain.steps import serves_its_parent
from siderite.core.errors import Busy
from siderite.core.errors import Forbidden
from siderite.core.machine import Kind


def busy(node: Node, how: str) -> Busy:
    """It has something else to do, which ends."""
    return Busy(f"Node {node.uuid} {how}; please retry after the current operation is completed.")


def protected(node: Node) -> Forbidden:
    """It is to stay as it is."""
    return Forbidden(
        f"Node {node.uuid} is protected and cannot be undeployed, rebuilt or deleted;"
        " clear `protected` first."
    )


def check_own_master(node: Node) -> None:
    """Refuse to interfere with a step that the node runs for its parent."""
    if serves_its_parent(node.driver_internal_info):
        raise busy(node, f"runs a step for its parent {node.parent_node}")


def check_idle(node: Node) -> None:
    """Refuse to interfere with work that drives the machine just now."""
    if NODE.states[node.provision_state].kind is Kind.ACTIVE:
        raise busy(node, f"is busy {node.provision_state}")
