"""A small sample of the storm on the bus that scripts/soak blows up."""

from tests.crash.bus_storm import storm


def test_a_bus_whose_ends_are_killed_has_exactly_the_log(tmp_path, broker):
    outcome = storm(tmp_path, broker, db=None, nodes=6, kills=1, seed=11)
    assert outcome.problems == []
    assert outcome.kills == {"Server": 1, "Rabbit": 1}
    assert outcome.published >= outcome.events > 100
