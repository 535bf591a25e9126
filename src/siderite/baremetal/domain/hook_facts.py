"""What is announced when the work on a node stops at a hook, and when it goes on."""

from enum import StrEnum

from siderite.baremetal.domain import facts
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.steps import Hold
from siderite.baremetal.domain.steps import Job
from siderite.core.fact import Fact
from siderite.core.times import iso


class By(StrEnum):
    """Who or what ended a hold, or made it longer."""

    ANSWER = "answer"
    DEADLINE = "deadline"
    UNHOLD = "unhold"
    ABORT = "abort"


def hook(
    status: str, node: Node, job: Job, hold: Hold, *, by: By | None = None, reason: str | None
) -> Fact:
    """The node is held (start), goes on (end), fails (error), or has more time (success)."""
    step = job.current
    more = {
        "hook": hold.hook,
        "hook_name": hold.name,
        "hold": hold.id,
        "step": None if step is None else f"{step.interface}.{step.step}",
        "since": iso(hold.since),
        "deadline": iso(hold.until),
        "on_deadline": hold.on_deadline,
        "by": by,
        "reason": reason,
    }
    return facts.of_our_own("hook", status, node, "NodeHookPayload", more)
