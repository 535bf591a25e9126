"""The node machine's table as a whole: reachable, closed, and never stuck."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine
from hypothesis.stateful import invariant
from hypothesis.stateful import rule

from siderite.baremetal.domain.node_machine import INTERNAL
from siderite.baremetal.domain.node_machine import NODE
from siderite.baremetal.domain.node_machine import VERBS
from siderite.baremetal.domain.node_machine import Event
from siderite.baremetal.domain.node_machine import P
from siderite.baremetal.domain.node_machine import legal_verbs
from siderite.baremetal.usecases.life.provision import is_legal
from siderite.core.errors import IllegalVerb
from siderite.core.machine import Kind
from tests.support.examples import IS_SAME_EACH_TIME
from tests.support.examples import examples

STABLE = {"enroll", "manageable", "available", "active", "error", "rescue"}
UNSTABLE = {
    "deploying", "wait call-back", "cleaning", "clean wait", "verifying", "deleting", "inspecting",
    "inspect wait", "adopting", "rescuing", "rescue wait", "unrescuing", "servicing",
    "service wait",
}  # fmt: skip
ABORTS = {
    "clean wait", "inspect wait", "rescue wait", "clean hold", "deploy hold", "service hold",
    "service wait", "service failed", "wait call-back",
}  # fmt: skip


def test_there_are_30_states_and_93_rows():
    assert (len(NODE.states), len(NODE.rows)) == (30, 93)


def test_the_groups_are_those_that_clients_rely_on():
    by_kind = {state.name for state in NODE.states.values() if state.kind is Kind.STABLE}
    assert by_kind == STABLE
    assert {state.name for state in NODE.states.values() if state.moves_by_itself} == UNSTABLE


def test_every_state_is_reachable_from_enroll():
    seen, todo = {P.ENROLL.value}, [P.ENROLL.value]
    while todo:
        state = todo.pop()
        for event in NODE.events(state):
            to = NODE.fire(state, event).state.name
            if to not in seen:
                seen.add(to)
                todo.append(to)
    assert seen == set(NODE.states)


def test_every_state_that_moves_by_itself_can_end_well_and_badly_and_has_a_deadline():
    for state in NODE.states.values():
        if state.moves_by_itself:
            events = set(NODE.events(state.name))
            assert Event.FAIL in events, state.name
            assert events & {Event.DONE, Event.RESUME, Event.CLEAN}, state.name
            assert state.deadline_s, state.name


def test_every_active_state_names_its_work_and_no_other_state_does():
    for state in NODE.states.values():
        assert (state.work is not None) == (state.kind is Kind.ACTIVE)


def test_abort_is_legal_in_exactly_nine_states():
    assert {state for state in NODE.states if "abort" in legal_verbs(state)} == ABORTS


def test_clients_never_fire_internal_events():
    for state in NODE.states:
        for event in INTERNAL:
            assert not is_legal(state, event)
    assert not is_legal(P.DELETING, Event.CLEAN)
    assert not is_legal(P.CLEANING, Event.MANAGE)


def test_a_manual_clean_keeps_its_target_all_the_way():
    moved = NODE.fire(P.MANAGEABLE, Event.CLEAN)
    for event in (Event.WAIT, Event.RESUME, Event.HOLD, Event.UNHOLD, Event.RESUME, Event.FAIL):
        assert moved.target == P.MANAGEABLE
        moved = NODE.fire(moved.state.name, event, moved.target)
    assert (moved.state.name, moved.target) == (P.CLEANFAIL, P.MANAGEABLE)


def test_an_illegal_event_names_the_legal_ones():
    try:
        NODE.fire(P.ENROLL, Event.DEPLOY)
    except IllegalVerb as error:
        assert "cannot deploy from enroll; legal here: manage." in error.sentence
    else:
        raise AssertionError("it was let through")


class NodeLife(RuleBasedStateMachine):
    """Any sequence of verbs and outcomes."""

    def __init__(self) -> None:
        super().__init__()
        self.state, self.target = P.ENROLL.value, None

    @rule(verb=st.sampled_from(sorted(VERBS)))
    def a_client_asks(self, verb):
        if is_legal(self.state, VERBS[verb]):
            self._fire(VERBS[verb])

    @rule(event=st.sampled_from(sorted(Event)))
    def the_service_moves(self, event):
        before = NODE.states[self.state]
        if before.moves_by_itself and NODE.can(self.state, event):
            self._fire(event)

    def _fire(self, event):
        moved = NODE.fire(self.state, event, self.target)
        self.state, self.target = moved.state.name, moved.target

    @invariant()
    def it_stays_within_the_table(self):
        assert self.state in NODE.states

    @invariant()
    def a_stable_state_has_no_target_and_every_other_has_one(self):
        stable = NODE.states[self.state].kind is Kind.STABLE
        assert (self.target is None) == stable, (self.state, self.target)

    @invariant()
    def the_target_is_a_stable_state(self):
        assert self.target is None or NODE.states[self.target].kind is Kind.STABLE

    @invariant()
    def there_is_always_a_way_on(self):
        if not NODE.states[self.state].moves_by_itself:
            assert legal_verbs(self.state), self.state


TestNodeLife = NodeLife.TestCase
TestNodeLife.settings = settings(
    max_examples=examples(50), stateful_step_count=60, derandomize=IS_SAME_EACH_TIME, deadline=None
)
