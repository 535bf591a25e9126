"""Judging a reading: pure, so every case is a line."""

import itertools

import msgspec
import pytest

from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.node_machine import NODE
from siderite.baremetal.domain.power import PowerState
from siderite.baremetal.domain.power import PowerTarget
from siderite.baremetal.domain.power_truth import POWER_FAILURE
from siderite.baremetal.domain.power_truth import Limits
from siderite.baremetal.domain.power_truth import Policy
from siderite.baremetal.domain.power_truth import Told
from siderite.baremetal.domain.power_truth import is_left_alone
from siderite.baremetal.domain.power_truth import judge
from siderite.baremetal.domain.power_truth import judge_failure

ON, OFF = PowerState.ON, PowerState.OFF
LIMITS = Limits(unknown=3, maintenance=6)


def node(**fields):
    made = {
        "uuid": "11111111-1111-4111-8111-111111111111",
        "created_at": "2026-01-01T00:00:00.000000+00:00",
        "driver": "fake-hardware",
        "provision_state": "active",
        "power_state": "power on",
        **fields,
    }
    return Node(**made)


def after(before, verdict):
    return msgspec.structs.replace(before, **verdict.changes)


@pytest.mark.parametrize("policy", Policy)
def test_a_reading_that_agrees_with_the_record_writes_nothing(policy):
    assert judge(node(), ON, policy).is_quiet


@pytest.mark.parametrize("policy", Policy)
def test_the_first_reading_of_all_is_recorded_whatever_the_policy(policy):
    verdict = judge(node(power_state=None), OFF, policy)
    assert verdict.changes == {"power_state": "power off"}
    assert verdict.put_back is None


def test_hardware_the_record_follows():
    verdict = judge(node(), OFF, Policy.HARDWARE)
    assert verdict.changes == {"power_state": "power off"}
    assert verdict.put_back is None


def test_record_the_machine_is_put_back():
    verdict = judge(node(), OFF, Policy.RECORD)
    assert verdict.changes == {"target_power_state": "power on"}
    assert verdict.put_back is PowerTarget.ON


def test_record_never_switches_off_what_must_not_be():
    verdict = judge(node(power_state="power off", disable_power_off=True), ON, Policy.RECORD)
    assert verdict.put_back is None
    assert verdict.begins == (Told.CONFLICT,)


def test_observe_notes_the_difference_once_and_when_it_is_over():
    before = node()
    first = judge(before, OFF, Policy.OBSERVE)
    assert first.begins == (Told.CONFLICT,)
    assert "'power off'" in first.changes["power_state_reason"]
    assert "power_state" not in first.changes
    noted = after(before, first)
    assert judge(noted, OFF, Policy.OBSERVE).is_quiet
    over = judge(noted, ON, Policy.OBSERVE)
    assert (over.ends, over.changes) == ((Told.CONFLICT,), {"power_state_reason": None})


def test_failures_lead_to_unknown_then_to_maintenance_and_each_is_told_once():
    now = node()
    told = []
    for failures in range(1, 10):
        verdict = judge_failure(now, failures, "no answer", LIMITS)
        told.append(verdict.begins)
        now = after(now, verdict)
        assert verdict.put_back is None
    assert told == [(), (), (Told.UNKNOWN,), (), (), (Told.FAILURE,), (), (), ()]
    assert (now.power_state, now.last_power_state) == (None, "power on")
    assert (now.maintenance, now.fault) == (True, POWER_FAILURE)
    assert now.power_state_reason == "no answer (3 readings in a row)"
    assert "no answer (6 readings in a row)" in now.maintenance_reason


@pytest.mark.parametrize(
    ("policy", "observed", "power", "put_back"),
    [
        (Policy.HARDWARE, OFF, "power off", None),
        (Policy.HARDWARE, ON, "power on", None),
        (Policy.RECORD, OFF, "power on", PowerTarget.ON),
        (Policy.RECORD, ON, "power on", None),
        (Policy.OBSERVE, OFF, "power on", None),
    ],
)
def test_a_good_reading_ends_the_failure_and_policy_holds_for_what_was_known_before(
    policy, observed, power, put_back
):
    failed = after(node(), judge_failure(node(), 6, "no answer", LIMITS))
    verdict = judge(failed, observed, policy)
    now = after(failed, verdict)
    assert set(verdict.ends) == {Told.UNKNOWN, Told.FAILURE}
    assert (now.maintenance, now.maintenance_reason, now.fault) == (False, None, None)
    assert (now.power_state, now.last_power_state) == (power, None)
    assert verdict.put_back is put_back


def test_a_node_whose_power_was_never_known_becomes_unknown_for_a_reason():
    verdict = judge_failure(node(power_state=None), 3, "no answer", LIMITS)
    assert verdict.begins == (Told.UNKNOWN,)
    assert verdict.changes["power_state_reason"] == "no answer (3 readings in a row)"


def test_what_moves_has_work_or_is_in_maintenance_is_left_alone():
    watched = {
        state
        for state in NODE.states
        if not is_left_alone(node(provision_state=state), has_work=False)
    }
    assert watched == {
        "manageable", "available", "active", "rescue", "error", "deploy failed", "clean failed",
        "inspect failed", "rescue failed", "unrescue failed", "service failed",
    }  # fmt: skip
    assert is_left_alone(node(), has_work=True)
    assert is_left_alone(node(target_power_state="power on"), has_work=False)
    assert is_left_alone(node(maintenance=True), has_work=False)
    assert not is_left_alone(node(maintenance=True, fault=POWER_FAILURE), has_work=False)


def test_no_verdict_acts_on_a_reading_that_failed():
    for power, policy, failures in itertools.product(
        (None, "power on", "power off"), Policy, range(1, 8)
    ):
        one = node(power_state=power, power_policy=policy)
        assert judge_failure(one, failures, "no answer", LIMITS).put_back is None
