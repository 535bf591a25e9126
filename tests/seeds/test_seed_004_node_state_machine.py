"""Seed 004: the bare metal node state machine. Each test names the sentence that it holds us to."""

import asyncio

import pytest

from siderite.baremetal.domain.node_machine import NODE
from siderite.baremetal.domain.node_machine import VERBS
from siderite.baremetal.domain.node_machine import Event
from siderite.baremetal.domain.node_machine import P
from siderite.baremetal.domain.node_machine import legal_verbs
from siderite.baremetal.drivers.contract import Endpoint
from siderite.core import eventlog
from siderite.core.ids import new_uuid
from siderite.core.machine import Kind
from tests.baremetal.workers.lives import lead
from tests.baremetal.workers.lives import script
from tests.baremetal.workers.lives import until
from tests.baremetal.workers.lives import verb
from tests.support.app import running

# The seed's verb table: verb, initial state, intermediate states, end state. The momentary -ED
# states are not stored: what follows them is entered at once.
SEED_TABLE = (
    ("manage", P.ENROLL, (P.VERIFYING,), P.MANAGEABLE),
    ("clean", P.MANAGEABLE, (P.CLEANING,), P.MANAGEABLE),
    ("inspect", P.MANAGEABLE, (P.INSPECTING,), P.MANAGEABLE),
    ("provide", P.MANAGEABLE, (P.CLEANING,), P.AVAILABLE),
    ("manage", P.AVAILABLE, (), P.MANAGEABLE),
    ("active", P.AVAILABLE, (P.DEPLOYING,), P.ACTIVE),
    ("rebuild", P.ACTIVE, (P.DEPLOYING,), P.ACTIVE),
    ("rescue", P.ACTIVE, (P.RESCUING,), P.RESCUE),
    ("unrescue", P.RESCUE, (P.UNRESCUING,), P.ACTIVE),
    ("deleted", P.ACTIVE, (P.DELETING, P.CLEANING), P.AVAILABLE),
    ("deleted", P.RESCUE, (P.DELETING, P.CLEANING), P.AVAILABLE),
    ("deleted", P.DEPLOYWAIT, (P.DELETING, P.CLEANING), P.AVAILABLE),
    ("abort", P.CLEANWAIT, (), P.CLEANFAIL),
)


@pytest.mark.parametrize(("verb", "initial", "between", "end"), SEED_TABLE)
def test_each_verb_leads_through_the_seeds_states_to_its_end_state(verb, initial, between, end):
    target = NODE.states[initial].target
    moved = NODE.fire(initial, VERBS[verb], target)
    seen = []
    while moved.state.kind is Kind.ACTIVE:
        seen.append(moved.state.name)
        assert moved.target == end, "an active state shows where it leads"
        if moved.state.name == P.DELETING:
            event = Event.CLEAN
        elif moved.state.name == P.CLEANING and moved.target == P.MANAGEABLE:
            event = Event.MANAGE
        else:
            event = Event.DONE
        moved = NODE.fire(moved.state.name, event, moved.target)
    assert (tuple(seen), moved.state.name) == (between, end)


@pytest.mark.parametrize(("verb", "initial", "between", "end"), SEED_TABLE)
def test_each_verb_of_the_seed_is_offered_in_its_initial_state(verb, initial, between, end):
    assert verb in legal_verbs(initial)


@pytest.mark.parametrize(
    ("active", "failed"),
    [
        (P.CLEANING, P.CLEANFAIL),
        (P.INSPECTING, P.INSPECTFAIL),
        (P.DEPLOYING, P.DEPLOYFAIL),
        (P.RESCUING, P.RESCUEFAIL),
        (P.UNRESCUING, P.UNRESCUEFAIL),
        (P.DELETING, P.ERROR),
        (P.VERIFYING, P.ENROLL),
    ],
)
def test_steps_that_fail_lead_to_the_fail_state(active, failed):
    assert NODE.fire(active, Event.FAIL, NODE.states[active].target).state.name == failed


def test_targets_are_stable_states():
    for state in NODE.states.values():
        if state.target is not None:
            assert NODE.states[state.target].kind is Kind.STABLE


def test_a_stable_state_is_left_on_a_request_only():
    requests = set(VERBS.values())
    for row in NODE:
        if NODE.states[row.state].kind is Kind.STABLE:
            assert row.event in requests


def test_deploy_wait_is_interrupted_by_deleted_and_clean_wait_by_abort():
    assert "deleted" in legal_verbs(P.DEPLOYWAIT)
    assert "abort" in legal_verbs(P.CLEANWAIT)


def test_the_wait_states_come_back_to_their_active_state():
    for wait, active in ((P.CLEANWAIT, P.CLEANING), (P.DEPLOYWAIT, P.DEPLOYING)):
        assert NODE.fire(active, Event.WAIT).state.name == wait
        assert NODE.fire(wait, Event.RESUME).state.name == active


def test_a_provision_state_is_always_known():
    assert None not in NODE.states
    assert "" not in NODE.states


def test_nodes_do_not_move_by_themselves_from_enroll_or_manageable():
    for state in (P.ENROLL, P.MANAGEABLE):
        assert not NODE.states[state].moves_by_itself


def test_verifying_goes_out_to_the_machine_and_says_what_is_wrong(tmp_path, monkeypatch):
    """It must actually confirm that the credentials work."""
    monkeypatch.setattr("siderite.baremetal.workers.steps.VERIFY_PATIENCE_S", 0.0)

    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node(driver_info={"rack": "r1"})
            script(app, "rack:r1", unreachable=True)
            await verb(app, uuid, "manage")
            async with asyncio.timeout(30):
                while (node := await app.node(uuid)).last_error is None:
                    await asyncio.sleep(0.01)
            assert node.provision_state == P.ENROLL

    asyncio.run(story())


async def _verified(app, **fields):
    """A node that was on when it was enrolled, once it is verified; and what was told of that."""
    uuid = await app.make_node(**fields)
    app.program.machines.set_power(Endpoint.of(await app.node(uuid)), "power on")
    await verb(app, uuid, "manage")
    node = await until(app, uuid, P.MANAGEABLE, P.ENROLL)
    while node.provision_state == P.ENROLL and node.last_error is None:
        await asyncio.sleep(0.01)
        node = await app.node(uuid)
    log = await eventlog.read(app.program.store, limit=100_000)
    told = [entry.event_type for entry in log if entry.resource == uuid]
    return node, [kind.removeprefix("baremetal.node.") for kind in told if "_set" in kind]


MOVED = ["provision_set.start", "provision_set.end"]


def test_a_node_stays_on_when_it_becomes_manageable_unless_it_is_wanted_off(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            node, told = await _verified(app)
            assert (node.power_state, told) == ("power on", MOVED)

    asyncio.run(story())


def test_if_wanted_it_is_powered_off_before_it_becomes_manageable(tmp_path):
    async def story():
        async with running(tmp_path, work=True, power_off_verified=True) as app:
            node, told = await _verified(app)
            assert (node.provision_state, node.power_state) == (P.MANAGEABLE, "power off")
            assert app.program.machines.power(Endpoint.of(node)) == "power off"
            assert told == [MOVED[0], "power_set.start", "power_set.end", MOVED[1]]
            assert (await lead(app, node.uuid, "provide")).power_state == "power off"

    asyncio.run(story())


@pytest.mark.parametrize("why", [{"instance_uuid": new_uuid()}, {"disable_power_off": True}])
def test_what_carries_a_workload_or_may_not_be_off_stays_on_all_the_same(tmp_path, why):
    async def story():
        async with running(tmp_path, work=True, power_off_verified=True) as app:
            node, told = await _verified(app, **why)
            assert (node.provision_state, node.power_state) == (P.MANAGEABLE, "power on")
            assert told == MOVED

    asyncio.run(story())


def test_what_is_wanted_off_and_cannot_be_is_not_manageable(tmp_path):
    async def story():
        async with running(tmp_path, work=True, power_off_verified=True) as app:
            script(app, "all", fail={"power": "the relay is stuck"})
            node, told = await _verified(app)
            assert node.provision_state == P.ENROLL
            assert "the relay is stuck" in str(node.last_error)
            assert told == [
                "provision_set.start", "power_set.start", "power_set.error", "provision_set.error",
            ]  # fmt: skip

    asyncio.run(story())


def test_all_nodes_start_off_in_enroll_and_a_verb_of_another_state_is_refused(tmp_path):
    async def story():
        async with running(tmp_path) as app:
            uuid = await app.make_node()
            assert (await app.node(uuid)).provision_state == P.ENROLL
            path = f"/v1/nodes/{uuid}/states/provision"
            answer = await app.ask("PUT", path, {"target": "provide"})
            assert answer.status == 400, answer
            assert (await app.node(uuid)).provision_state == P.ENROLL

    asyncio.run(story())


def test_to_the_oldest_clients_available_is_no_state(tmp_path):
    """NOSTATE has been renamed; who does not know the new name sees the old one."""

    async def story():
        async with running(tmp_path) as app:
            uuid = await app.plant(P.AVAILABLE)
            for version, shown in (("1.1", None), ("1.2", "available")):
                answer = await app.ask("GET", f"/v1/nodes/{uuid}", version=version)
                assert answer.json["provision_state"] == shown

    asyncio.run(story())
