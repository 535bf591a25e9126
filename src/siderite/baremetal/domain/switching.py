"""What a step does to a node's power is announced as any change of power: before the hardware acts,
and when it has. Both at once where nothing is in between, as with a machine that is simulated.
"""

from siderite.baremetal.domain import facts
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import Failed
from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.domain.power import PowerTarget
from siderite.baremetal.domain.power_truth import with_power
from siderite.baremetal.domain.steps import Job
from siderite.baremetal.domain.steps import Json
from siderite.core.fact import Fact


def recorded(begun: PowerTarget | None, fields: Json) -> Json:
    """What becomes of a node whose step is done: the power that it was to have is among that."""
    return with_power(fields if begun is None else {"power_state": begun.leads_to.value, **fields})


def ended(begun: PowerTarget | None, before: Node, after: Node) -> list[Fact]:
    """The change that was announced, if one was, has come to its end; one that was not is told."""
    if begun is not None:
        return [facts.power_set("end", after, begun)]
    power = after.power_state
    if power is None or power == before.power_state:
        return []
    return [facts.power_set("start", before, power), facts.power_set("end", after, power)]


def of_move(
    begun: PowerTarget | None, node: Node, fields: Json, now: float, outcome: Done | Wait | Failed
) -> list[Fact]:
    """The same where the node moves by what a step answered: its power changed before it did."""
    if isinstance(outcome, Failed):
        if begun is None:
            return []
        return [facts.power_set("error", node.changed(now, {"last_error": outcome.reason}), begun)]
    power = fields.get("power_state")
    if begun is None and power in (None, node.power_state):
        return []
    between = node if power is None else node.changed(now, with_power({"power_state": power}))
    return [] if is_open(outcome) else ended(begun, node, between)


def is_open(outcome: Done | Wait | Failed | None) -> bool:
    """Whether a change of power that was announced goes on."""
    return outcome is None or (isinstance(outcome, Wait) and outcome.power is None)


def left(begun: PowerTarget | None, outcome: Done | Wait | Failed | None) -> PowerTarget | None:
    """The change of power that is under way when this is recorded."""
    if isinstance(outcome, Wait) and outcome.switches is not None:
        return outcome.switches
    return begun if is_open(outcome) else None


def after(job: Job, outcome: Done | Wait | Failed | None) -> Job:
    """The job when this is recorded."""
    switching = left(job.switching, outcome)
    return job if switching is job.switching else job.with_(switching=switching)
