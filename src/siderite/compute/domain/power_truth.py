"""Who is right when a machine's power is not what the record says: a pure decision.

`hardware`: the record follows the machine (whoever switched it off or on had a reason). `record`:
the machine is put back, unless it is gone from its host: it may run on another one. `observe`: only
what was seen is noted. A power that cannot be read decides nothing, and neither does one of a
server that something is being done to.
"""

from collections.abc import Mapping
from enum import StrEnum

from siderite.compute.domain.power import Power
from siderite.compute.domain.server_machine import V


class Policy(StrEnum):
    """Who is right."""

    HARDWARE = "hardware"
    RECORD = "record"
    OBSERVE = "observe"


class Verdict(StrEnum):
    """What follows from a reading."""

    NOTHING = "nothing"
    NOTE = "note"  # only the power state is written down
    POWERED_ON = "powered_on"  # the server is active: the record follows
    POWERED_OFF = "powered_off"
    MISSED = "missed"  # noted too, and said: a person must look for it
    START = "start"  # the machine is put back
    STOP = "force_stop"


_DOWN = {Policy.HARDWARE: Verdict.POWERED_OFF, Policy.RECORD: Verdict.START}
_UP = {Policy.HARDWARE: Verdict.POWERED_ON, Policy.RECORD: Verdict.STOP}


def settle(
    vm_state: str, task_state: str | None, recorded: Power, seen: Power, policy: Policy,
    *, is_gone: bool = False,
) -> Verdict:  # fmt: skip
    """What follows from seeing a server's machine in a power state, or from its being gone."""
    if task_state is not None or seen is Power.NOSTATE:
        return Verdict.NOTHING
    if policy is Policy.OBSERVE:
        return _noted(recorded, seen)
    if is_gone and policy is Policy.RECORD:
        noted = _noted(recorded, seen)
        is_missed = noted is Verdict.NOTE and vm_state in (V.ACTIVE, V.PAUSED)
        return Verdict.MISSED if is_missed else noted
    if vm_state == V.ACTIVE and seen.is_down:
        return _DOWN[policy]
    if vm_state == V.PAUSED and seen.is_down:
        return Verdict.POWERED_OFF  # its memory is gone: there is nothing to put back
    if vm_state == V.STOPPED and seen is Power.RUNNING:
        return _UP[policy]
    if vm_state == V.STOPPED and seen in (Power.PAUSED, Power.SUSPENDED):
        return Verdict.STOP if policy is Policy.RECORD else _noted(recorded, seen)
    return _noted(recorded, seen)


def _noted(recorded: Power, seen: Power) -> Verdict:
    return Verdict.NOTHING if recorded == seen else Verdict.NOTE


def policy_of(metadata: Mapping[str, str], default: str) -> Policy:
    """A server's own policy (its metadata `power_policy`), or the default."""
    word = metadata.get("power_policy", "").lower()
    return Policy(word) if word in set(Policy) else Policy(default)
