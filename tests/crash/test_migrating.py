"""A sample of what scripts/soak does to every statement of every migration."""

from pathlib import Path

from tests.crash.migrating import in_postgres
from tests.crash.migrating import in_sqlite
from tests.support.postgres import Postgres


def test_a_process_killed_in_a_migration_leaves_a_schema_that_is_whole(tmp_path: Path) -> None:
    kills, problems = in_sqlite(tmp_path, first=29)
    assert kills > 10
    assert not problems


def test_processes_that_start_at_once_survive_the_one_that_is_killed(postgres: Postgres) -> None:
    kills, problems = in_postgres(postgres, [9])
    assert kills >= 1
    assert not problems
