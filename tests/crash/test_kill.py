"""A crash is a normal event: a small sample of the storm that scripts/soak blows up."""

from tests.crash import server_storm
from tests.crash.storm import storm


def test_a_process_killed_again_and_again_loses_and_doubles_nothing(tmp_path):
    run, problems = storm(tmp_path, nodes=30, kills=4, cycles=3, seed=7)
    assert problems == []
    assert len(run.snapshots) == 4
    # A verb that was taken while its answer was lost with the process is no promise.
    assert len(run.promised) > 150


def test_servers_survive_kills_with_their_actions_claims_and_guests(tmp_path):
    run, problems = server_storm.storm(tmp_path, servers=20, actions=5, kills=4, seed=11)
    assert problems == []
    assert run.kills == 4
    assert len(run.promised) > 100
