"""The server's table: complete, connected, and in step with what clients are shown."""

from siderite.compute.domain.server_machine import ACTIONS
from siderite.compute.domain.server_machine import SERVER
from siderite.compute.domain.server_machine import Event
from siderite.compute.domain.server_machine import V
from siderite.compute.domain.server_machine import parted
from siderite.compute.domain.status import STATUS
from siderite.compute.domain.status import states_of
from siderite.compute.domain.status import status_of
from siderite.compute.usecases.server.kinds import KINDS
from siderite.compute.workers.plans import PLANS
from siderite.core.machine import Kind

NOT_BY_ROWS = {V.BUILDING}  # it always has a task


def test_every_state_but_those_that_begin_can_be_reached() -> None:
    reached = {row.to for row in SERVER}
    assert set(SERVER.states) - reached == NOT_BY_ROWS


def test_whatever_is_being_done_can_end_well_and_badly_and_has_a_deadline() -> None:
    for state in SERVER.states.values():
        if state.kind is not Kind.ACTIVE:
            continue
        events = set(SERVER.events(state.name))
        assert events & {Event.DONE, Event.NEXT, Event.OFFLOAD}, state.name
        assert Event.FAIL in events or Event.BREAK in events, state.name
        assert state.deadline_s, state.name


def test_every_server_can_be_deleted_and_no_deleted_one_moves() -> None:
    for name in SERVER.states:
        if name == V.DELETED:
            assert SERVER.events(name) == []
        else:
            assert SERVER.can(name, Event.DELETE), name


def test_an_administrator_can_reset_every_server() -> None:
    for name in SERVER.states:
        if name != V.DELETED:
            is_wished = name in ("pending/deleting", "building/deleting")
            was_made = not name.startswith(V.PENDING) and not is_wished
            assert SERVER.can(name, Event.RESET_ACTIVE) is was_made, name
            assert SERVER.can(name, Event.RESET_ERROR) is not is_wished, name


def test_pending_leads_to_building_error_and_deletion_only() -> None:
    leads = {row.event: row.to for row in SERVER if row.state == V.PENDING}
    assert leads == {
        "rebuild": "building/scheduling",
        Event.RESET_ERROR: V.ERROR,
        Event.DELETE: "pending/deleting",
    }
    into = {(row.state, row.event) for row in SERVER if row.to == V.PENDING}
    assert into == {("building/scheduling", Event.PEND)}


def test_every_action_has_its_work_and_every_work_its_plan() -> None:
    assert {kind.event for kind in KINDS.values()} >= {
        action.event for action in ACTIONS if action.event != "force_stop"
    }
    assert set(KINDS) <= set(PLANS)


def test_every_state_has_a_status_and_every_status_leads_back() -> None:
    for name in SERVER.states:
        vm, task = parted(name)
        status = status_of(vm, task)
        assert status != "UNKNOWN", name
        found = states_of(status)
        assert found is not None, status
        assert vm in found[0], name
    assert set(STATUS) == set(V)
