"""Who is right about power: every cell of the table, and what never leads to anything."""

import pytest

from siderite.compute.domain.power import Power
from siderite.compute.domain.power_truth import Policy
from siderite.compute.domain.power_truth import Verdict
from siderite.compute.domain.power_truth import policy_of
from siderite.compute.domain.power_truth import settle
from siderite.compute.domain.server_machine import V

DOWN = (Power.SHUTDOWN, Power.CRASHED)
ACTS = {
    **{(V.ACTIVE, seen): (Verdict.POWERED_OFF, Verdict.START) for seen in DOWN},
    **{(V.PAUSED, seen): (Verdict.POWERED_OFF, Verdict.POWERED_OFF) for seen in DOWN},
    (V.STOPPED, Power.RUNNING): (Verdict.POWERED_ON, Verdict.STOP),
    (V.STOPPED, Power.PAUSED): (Verdict.NOTE, Verdict.STOP),
    (V.STOPPED, Power.SUSPENDED): (Verdict.NOTE, Verdict.STOP),
}
"""What follows where the hardware is right, and where the record is."""


@pytest.mark.parametrize("vm_state", list(V))
@pytest.mark.parametrize("seen", list(Power))
def test_every_cell(vm_state: V, seen: Power) -> None:
    recorded = Power.RUNNING if seen is not Power.RUNNING else Power.SHUTDOWN
    plain = Verdict.NOTHING if seen is Power.NOSTATE else Verdict.NOTE
    by_hardware, by_record = ACTS.get((vm_state, seen), (plain, plain))
    assert settle(vm_state, None, recorded, seen, Policy.HARDWARE) is by_hardware
    assert settle(vm_state, None, recorded, seen, Policy.RECORD) is by_record
    assert settle(vm_state, None, recorded, seen, Policy.OBSERVE) is plain
    for policy in Policy:
        assert settle(vm_state, "powering-on", recorded, seen, policy) is Verdict.NOTHING


@pytest.mark.parametrize("vm_state", list(V))
@pytest.mark.parametrize("seen", list(Power))
def test_what_is_only_observed_is_noted_once(vm_state: V, seen: Power) -> None:
    assert settle(vm_state, None, seen, seen, Policy.OBSERVE) is Verdict.NOTHING


@pytest.mark.parametrize("vm_state", list(V))
def test_a_machine_that_is_gone_is_never_started_and_missed_once(vm_state: V) -> None:
    def said(recorded: Power, policy: Policy) -> Verdict:
        return settle(vm_state, None, recorded, Power.SHUTDOWN, policy, is_gone=True)

    runs = vm_state in (V.ACTIVE, V.PAUSED)
    assert said(Power.RUNNING, Policy.RECORD) is (Verdict.MISSED if runs else Verdict.NOTE)
    assert said(Power.SHUTDOWN, Policy.RECORD) is Verdict.NOTHING
    assert said(Power.RUNNING, Policy.HARDWARE) is (Verdict.POWERED_OFF if runs else Verdict.NOTE)
    assert said(Power.RUNNING, Policy.OBSERVE) is Verdict.NOTE


def test_a_servers_own_policy_counts_if_it_is_one() -> None:
    assert policy_of({"power_policy": "Record"}, "hardware") is Policy.RECORD
    assert policy_of({"power_policy": "mine"}, "observe") is Policy.OBSERVE
    assert policy_of({}, "hardware") is Policy.HARDWARE
