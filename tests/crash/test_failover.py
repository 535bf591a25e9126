"""A replica takes the place of a dead primary: a small sample of what scripts/soak does."""

from tests.crash.failover import fail_over


def test_a_promoted_replica_is_found_and_nothing_is_lost_or_doubled():
    seen, problems = fail_over(nodes=3)
    assert problems == []
    assert seen.waits
    assert seen.run.promised
