"""A hook as a value: where in a node's life an outside service has a say, and on which nodes.

Work can stop where the machine has a state for it: cleaning, deploying and servicing in a hold
state, inspection and rescue, which have none, in their wait state. A hook on one of these states
stops the work before its first step, one on a step before that step, and one on the state that the
work leads to when all steps are done.
"""

from typing import Any

from siderite.baremetal.domain.node import Json
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.node_machine import P
from siderite.baremetal.domain.record import Record
from siderite.baremetal.domain.steps import Family
from siderite.baremetal.domain.steps import Hold
from siderite.baremetal.domain.steps import Job

FAMILIES = frozenset({
    Family.CLEAN, Family.DEPLOY, Family.SERVICE, Family.INSPECT, Family.RESCUE,
})  # fmt: skip
GIVEN_UP = frozenset({Family.DEPLOY, Family.RESCUE})
"""Work for whoever has the node: what they gave up fails, and meets its hook when it is asked for
again. Of other work a hook's answer is all there is: a service that is aborted leads to `active`.
"""
BEGINS = (P.CLEANING, P.DEPLOYING, P.SERVICING, P.INSPECTING, P.RESCUING)
ENDS = (P.MANAGEABLE, P.AVAILABLE, P.ACTIVE, P.RESCUE)
STATES = tuple(state.value for state in (*BEGINS, *ENDS))
"""States that a hook can be on."""

PROCEED, FAIL = "proceed", "fail"


class Hook(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that is recorded of a hook."""

    name: str
    description: str | None = None
    machine: str = "node"
    state: str | None = None
    step: str | None = None
    selector: Json = {}
    deadline_s: int = 3600
    on_deadline: str = FAIL
    enabled: bool = True

    def wants(self, node: Node, job: Job) -> bool:
        """Whether the work on this node stops here for it."""
        return (
            self.enabled
            and f"{self.uuid}/{job.index}" not in job.passed
            and self._is_here(node, job)
            and self._selects(node)
        )

    def _is_here(self, node: Node, job: Job) -> bool:
        step = job.current
        if self.step is not None:
            here = step is not None and self.step == f"{step.interface}.{step.step}"
            return here and self.state in (None, node.provision_state)
        if self.state in BEGINS:
            return self.state == node.provision_state and job.index == 0
        return step is None and self.state == _leads_to(node)

    def _selects(self, node: Node) -> bool:
        selector: dict[str, Any] = dict(self.selector)
        traits = selector.pop("traits", [])
        return set(traits) <= set(node.traits) and all(
            getattr(node, name) == value for name, value in selector.items()
        )

    def hold(self, id: str, index: int, now: float) -> Hold:
        """The stop that it makes, from now on."""
        return Hold(
            id=id,
            hook=self.uuid,
            name=self.name,
            index=index,
            since=now,
            until=now + self.deadline_s,
            on_deadline=self.on_deadline,
        )


def _leads_to(node: Node) -> str | None:
    if node.provision_state == P.CLEANING and node.retired:
        return P.MANAGEABLE.value
    return node.target_provision_state
