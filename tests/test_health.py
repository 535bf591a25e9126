"""What Prometheus is told, at `/metrics`."""

import re
from pathlib import Path

from siderite.core import work
from siderite.core.clock import now
from siderite.core.store import Op
from tests.support.app import standing

ROOT = Path(__file__).resolve().parents[1]


def test_only_work_that_is_due_and_that_no_living_worker_has_waits_for_a_worker(
    tmp_path: Path, database_url: str
) -> None:
    with standing(tmp_path, database_url) as app:
        store, moment = app.app.program.store, now()

        def job(machine: str, due: float) -> Op:
            return work.add(
                machine, "life", "count", job="{}", now=moment, due=due, deadline=work.FAR
            )

        def counted() -> dict[str, float]:
            page = app.ask("GET", "/metrics").body.decode()
            return {
                name: float(count)
                for name, count in re.findall(r"^siderite_work(\S*) (\S+)$", page, flags=re.M)
            }

        later = [job(f"later-{number}", due=work.FAR) for number in range(3)]
        app.run(store.commit([*later, job("taken", moment - 60), job("waits", moment - 60)]))
        taken = "UPDATE work SET owner = 'w', lease_until = ?"
        app.run(store.commit([Op(f"{taken} WHERE machine = 'taken'", (moment + 60,), 1)]))
        assert counted() == {'{leased="yes"}': 1, '{leased="no"}': 4, "_due": 1}
        app.run(store.commit([Op(f"{taken} WHERE machine = 'taken'", (moment - 1,), 1)]))
        assert counted()["_due"] == 2, "the worker that had it is dead"


def test_each_metric_that_is_told_is_described(tmp_path: Path) -> None:
    described = set(
        re.findall(r"`(siderite_\w+)`", (ROOT / "docs/reference/metrics.md").read_text())
    )
    with standing(tmp_path) as app:
        page = app.ask("GET", "/metrics").body.decode()
    told = set(re.findall(r"^# TYPE (\S+) ", page, flags=re.M))
    assert len(told) > 10
    assert told == described
