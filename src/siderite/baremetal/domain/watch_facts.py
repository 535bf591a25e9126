"""What the power watch announces beside corrections."""

from siderite.baremetal.domain import facts
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.power_truth import Told
from siderite.baremetal.domain.power_truth import Verdict
from siderite.baremetal.domain.power_truth import open_matters
from siderite.core.fact import Fact


def matter(told: Told, status: str, node: Node, *, reason: str | None) -> Fact:
    """Power is unknown, failed for long or disputed: that begins, or ends."""
    return facts.of_our_own(told, status, node, "NodePowerWatchPayload", {"reason": reason})


def power_update(
    status: str, node: Node, *, server: str, tag: str, code: int, reason: str | None
) -> Fact:
    """A compute service has taken a change of power to its records, or refused it for good."""
    more = {"server": server, "tag": tag, "code": code, "reason": reason}
    return facts.of_our_own("power_update", status, node, "NodePowerUpdatePayload", more)


def policy_set(node: Node, before: str | None = None) -> list[Fact]:
    """Somebody said who is right about the node's power, or that the option `power_policy` says so
    (None). Payloads of Ironic's have no place for that.
    """
    if node.power_policy == before:
        return []
    more = {"from_policy": before, "to_policy": node.power_policy}
    name = "NodePowerPolicyPayload"
    return [facts.of_our_own("power_policy_set", "success", node, name, more)]


def settled(before: Node, after: Node) -> list[Fact]:
    """Power that was unknown or disputed became known by other means than a reading, or somebody
    took the node out of the maintenance that it was put into for that.
    """
    left = open_matters(after)
    reason = before.power_state_reason
    return [
        matter(told, "end", after, reason=reason)
        for told in open_matters(before)
        if told not in left
    ]


def given_up(node: Node) -> list[Fact]:
    """The node goes, and all that is the matter with its power."""
    return [
        matter(told, "end", node, reason=node.power_state_reason) for told in open_matters(node)
    ]


def of_verdict(before: Node, after: Node, verdict: Verdict) -> list[Fact]:
    """The facts of a reading, in the order in which they are true."""
    told = [matter(item, "end", after, reason=before.power_state_reason) for item in verdict.ends]
    if before.power_state != after.power_state:
        told.append(facts.power_corrected(after, before.power_state))
    told += [
        matter(item, "start", after, reason=after.power_state_reason) for item in verdict.begins
    ]
    if verdict.put_back is not None:
        told.append(facts.power_set("start", after, verdict.put_back))
    return told
