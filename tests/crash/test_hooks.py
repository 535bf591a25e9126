"""A small sample of the storm on webhooks that scripts/soak blows up."""

from tests.crash.hook_storm import blow


def test_a_subscriber_of_a_service_that_is_killed_again_and_again_has_all_of_the_log(tmp_path):
    events, problems = blow(tmp_path, db=None, nodes=1, kills=1, seed=11)
    assert problems == []
    assert events > 10
