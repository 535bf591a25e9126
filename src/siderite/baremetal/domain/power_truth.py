"""Who is right about a node's power, the machine or the record of it: a reading is judged.

`hardware`: the record follows the machine. `record`: the machine is put back. `observe`: the
difference is noted, and both stay as they are. A BMC that cannot be read says nothing about the
machine: after some such readings its power is unknown, after more the node is put into
maintenance, and the first good reading ends both.
"""

from enum import StrEnum
from typing import Any

import msgspec

from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.node_machine import NODE
from siderite.baremetal.domain.node_machine import P
from siderite.baremetal.domain.power import PowerState
from siderite.baremetal.domain.power import PowerTarget
from siderite.core.machine import Kind

POWER_FAILURE = "power failure"
"""The fault of a node whose BMC could not be read for long."""


class Policy(StrEnum):
    """Who is right."""

    HARDWARE = "hardware"
    RECORD = "record"
    OBSERVE = "observe"


class Told(StrEnum):
    """What of a node's power is announced beside its changes; each begins and ends."""

    UNKNOWN = "power_unknown"
    FAILURE = "power_failure"
    CONFLICT = "power_conflict"


class Limits(msgspec.Struct, frozen=True):
    """After how many failed readings in a row power is unknown, and the node in maintenance."""

    unknown: int
    maintenance: int


class Verdict(msgspec.Struct, frozen=True):
    """What follows from a reading: fields to change, what begins and ends, and a power change."""

    changes: dict[str, Any] = msgspec.field(default_factory=dict)
    begins: tuple[Told, ...] = ()
    ends: tuple[Told, ...] = ()
    put_back: PowerTarget | None = None

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is to be written."""
        return not self.changes


_NOT_WATCHED = frozenset({P.ENROLL, P.ADOPTFAIL})


def is_left_alone(node: Node, *, has_work: bool) -> bool:
    """Whether the node's power is somebody else's business just now."""
    if has_work or node.target_power_state is not None or node.reservation is not None:
        return True
    if node.maintenance and node.fault != POWER_FAILURE:
        return True
    state = NODE.states[node.provision_state]
    return state.name in _NOT_WATCHED or state.kind not in (Kind.STABLE, Kind.FAILED)


def known_power(node: Node) -> str | None:
    """The node's power as far as it was ever known."""
    return node.power_state or node.last_power_state


def is_hushed(node: Node) -> bool:
    """Whether nobody is told of the node's power: somebody has it in maintenance, and switches it
    as the repair wants it.
    """
    return node.maintenance and node.fault is None


def with_hush(node: Node, changes: dict[str, Any]) -> dict[str, Any]:
    """A user's changes, and what is kept in mind if with them nobody is told of the node's power
    any more.
    """
    begins = is_hushed(msgspec.structs.replace(node, **changes)) and not is_hushed(node)
    return {**changes, "told_power_state": known_power(node)} if begins else changes


def told_power(node: Node) -> str | None:
    """The node's power as far as others may know it."""
    return node.told_power_state if is_hushed(node) else known_power(node)


def with_power(changes: dict[str, Any]) -> dict[str, Any]:
    """Changes by which a node's power may become known, and what goes with that."""
    if changes.get("power_state") is None:
        return changes
    return {**changes, "last_power_state": None, "power_state_reason": None}


def open_matters(node: Node) -> tuple[Told, ...]:
    """What began and has not ended."""
    faulty = (Told.FAILURE,) if node.fault == POWER_FAILURE else ()
    if node.power_state_reason is None:
        return faulty
    return (*faulty, Told.UNKNOWN if node.power_state is None else Told.CONFLICT)


def judge_failure(
    node: Node, failures: int, why: str, limits: Limits, *, at_once: bool = False
) -> Verdict:
    """The BMC could not be read, for the `failures`th time in a row. `at_once`: that is as sure as
    it can be, and it will be asked seldom.
    """
    matters = open_matters(node)
    changes: dict[str, Any] = {}
    begins: tuple[Told, ...] = ()
    ends: tuple[Told, ...] = ()
    times = "reading" if failures == 1 else "readings in a row"
    reason = f"{why} ({failures} {times})"
    is_unknown = at_once or failures >= min(limits.unknown, limits.maintenance)
    if is_unknown and Told.UNKNOWN not in matters:
        changes |= {
            "power_state": None,
            "last_power_state": known_power(node),
            "power_state_reason": reason,
        }
        begins += (Told.UNKNOWN,)
        ends += tuple(matter for matter in matters if matter is Told.CONFLICT)
    if failures >= limits.maintenance and Told.FAILURE not in matters:
        changes |= {
            "maintenance": True,
            "maintenance_reason": f"The power cannot be read: {reason}.",
            "fault": POWER_FAILURE,
        }
        begins += (Told.FAILURE,)
    return Verdict(changes, begins, ends)


def judge(node: Node, observed: PowerState, policy: Policy) -> Verdict:
    """The machine says so: what follows?"""
    matters = open_matters(node)
    changes: dict[str, Any] = {}
    if Told.FAILURE in matters:
        changes |= {"maintenance": False, "maintenance_reason": None, "fault": None}
    gone = tuple(matter for matter in matters if matter is not Told.CONFLICT)
    record = known_power(node)
    if record is None or record == observed.value or policy is Policy.HARDWARE:
        changes |= {
            "power_state": observed.value,
            "last_power_state": None,
            "power_state_reason": None,
        }
        return Verdict(_differing(node, changes), ends=matters)
    target = PowerTarget(record)
    changes |= {"power_state": record, "last_power_state": None}
    if policy is Policy.RECORD and not (
        node.disable_power_off and target.leads_to is PowerState.OFF
    ):
        changes |= {"power_state_reason": None, "target_power_state": record}
        return Verdict(_differing(node, changes), ends=matters, put_back=target)
    changes["power_state_reason"] = (
        f"the machine says {observed.value!r}; it is left so, and so is the record ({policy})"
    )
    begins = () if Told.CONFLICT in matters else (Told.CONFLICT,)
    return Verdict(_differing(node, changes), begins, gone)


def _differing(node: Node, changes: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in changes.items() if getattr(node, name) != value}
