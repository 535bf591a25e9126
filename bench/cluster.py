"""A node's whole life again, with several processes on one PostgreSQL: one that answers, and one or
four that work.
"""

from functools import partial

from bench.cycle import cycle
from bench.figure import Measured
from bench.service import Siderite
from bench.stage import Stage


class NoDatabase(Exception):
    """Several processes need PostgreSQL: say --db postgres."""

    def __str__(self) -> str:
        return type(self).__doc__ or ""


def _cycle(workers: int, stage: Stage) -> Measured:
    if stage.fresh is None:
        raise NoDatabase
    place = stage.place / f"workers-{workers}"
    place.mkdir()
    subject = Siderite(place, stage.fresh(f"bench_workers_{workers}"), workers)
    with Stage(subject, stage.plan, place=place, commits=stage.commits) as own:
        return cycle(own)


one_worker = partial(_cycle, 1)
four_workers = partial(_cycle, 4)
