"""A small sample of what scripts/soak measures; the races' own sample is in tests/seeds."""

from pathlib import Path

from tests.compute.cloud import cloud
from tests.crash.power_race import ROOM
from tests.crash.power_race import crowd
from tests.crash.power_race import events_per_second
from tests.crash.power_race import running
from tests.crash.power_race import sync_seconds


def test_many_are_told_of_in_one_request_and_found_by_one_sync(tmp_path: Path) -> None:
    with cloud(tmp_path, hosts=0) as made:
        for _ in range(3):
            made.add_host(**ROOM)
        assert events_per_second(made, crowd(made, 100)) > 0
        assert running(made) == []
        sync = made.app.app.program.compute.sync
        assert made.app.run(sync.round()) == 100, "their machines run: the record follows"
        sync_seconds(made)
        assert running(made) == []
