"""`python -m bench`: puts subjects, limits and workloads together and prints the table.

Exit codes: 0 measured, whatever the bars say; 1 something broke; 3 with --strict, a bar not met.
"""

import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from contextlib import contextmanager
from pathlib import Path

from bench import computer
from bench import curve
from bench import growth
from bench import options
from bench import peer
from bench import plot
from bench import postgres
from bench import report
from bench import turns
from bench import writes
from bench.address import Address
from bench.commits import Commits
from bench.commits import PostgresCommits
from bench.commits import SqliteCommits
from bench.figure import Figure
from bench.figure import Measured
from bench.options import Options
from bench.plan import FULL
from bench.plan import PEER_FULL
from bench.plan import PEER_QUICK
from bench.plan import QUICK
from bench.postgres import Postgres
from bench.report import Row
from bench.service import Siderite
from bench.stage import Stage
from bench.subject import Elsewhere
from bench.subject import Subject
from bench.turns import Outcome
from bench.turns import Outcomes
from bench.workload import WORKLOADS

_RUNS = Path(__file__).with_name(".run")
_KEPT = peer.HOME / "figures.json"


def main(words: list[str]) -> int:
    """Measure, print, judge."""
    opts = options.parse(words)
    _RUNS.mkdir(exist_ok=True)
    place = Path(tempfile.mkdtemp(dir=_RUNS))
    facts = computer.facts(place)
    remarks: list[str] = []
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, place)
        server = _server(opts, stack)
        subject, commits = _subject(opts, place, server)
        plan = QUICK if opts.is_quick else FULL
        scratch, fresh = (server.fresh("bench_events"), server.fresh) if server else (None, None)
        with Stage(
            subject, plan, place=place, commits=commits, scratch=scratch, fresh=fresh
        ) as stage:
            if opts.growth:
                return _grow(opts, stage, facts)
            outcomes, figures, broken = _measured(opts, stage, server, remarks)
            if {"create", "patch"} & set(opts.only):
                most = writes.ceiling(stage)
                remarks.append(f"the client itself creates at most {most} against the static app")
    facts["load after"] = computer.load()
    remarks += broken
    rows = [_row(opts, name, outcome, figures) for name, outcome in outcomes.items()]
    print(report.text(rows, facts, remarks))
    if opts.json_file:
        opts.json_file.write_text(report.as_json(rows, facts, remarks))
    if broken or any(row.is_broken for row in rows):
        return 1
    return 3 if opts.is_strict and any(row.bar and not row.met for row in rows) else 0


def _grow(opts: Options, stage: Stage, facts: dict[str, str]) -> int:
    """Measure the curves, print them, plot them, judge."""
    curves, problems = growth.measure(stage, opts.growth, opts.only)
    facts["load after"] = computer.load()
    told = ", ".join(f"{name} {value}" for name, value in facts.items())
    print(curve.text(curves, problems), told, sep="\n\n")
    if opts.json_file:
        opts.json_file.write_text(curve.as_json(curves, problems, facts))
    if opts.plot:
        where = (
            f"{facts['processor']}, {'PostgreSQL' if opts.db else 'SQLite'}, {facts['date'][:10]}"
        )
        opts.plot.write_text(plot.svg(curves, f"By the number of nodes. {where}"))
    if problems:
        return 1
    return 3 if opts.is_strict and any(one.met is False for one in curves) else 0


def _measured(
    opts: Options, stage: Stage, server: Postgres | None, remarks: list[str]
) -> tuple[Outcomes, dict[str, Figure], list[str]]:
    """What came of the workloads, the peer's figures if they are wanted, and what broke of it."""
    if opts.peer is None:
        return turns.alone(stage, opts.only), {}, []
    if opts.peer == "kept":
        figures, age = report.kept(_kept(opts))
        remarks.append(age)
        return turns.alone(stage, opts.only), figures, []
    remarks.append("peer: no authentication, no power sync, fleet by bulk insert")
    with ExitStack() as stack:
        try:
            other = stack.enter_context(_peer(opts, stage, server))
        except Exception as problem:  # what the service does is still worth a table
            return turns.alone(stage, opts.only), {}, [f"peer: {turns.sentence(problem)}"]
        stage.plan = turns.halved(stage.plan)
        outcomes, theirs = turns.in_turns(stage, other, opts.only)
        title = other.title
    figures = {name: one.figure for name, one in theirs.items() if isinstance(one, Measured)}
    report.keep(figures, title, _kept(opts))
    broken = [f"peer, {name}: {one}" for name, one in theirs.items() if isinstance(one, str)]
    return outcomes, figures, broken


@contextmanager
def _peer(opts: Options, stage: Stage, server: Postgres | None) -> Iterator[Stage]:
    """The peer, started while the service stands still; then it does."""
    peer.install()
    place = stage.place / "peer"
    place.mkdir()
    subject = peer.Ironic(place, server.fresh("bench_peer") if server else None)
    plan = PEER_QUICK if opts.is_quick else PEER_FULL
    stage.stand_still(still=True)
    try:
        with Stage(subject, plan, place=place, commits=None) as other:
            other.stand_still(still=True)
            stage.stand_still(still=False)
            yield other
    finally:
        stage.stand_still(still=False)


def _server(opts: Options, stack: ExitStack) -> Postgres | None:
    if opts.db is None:
        return None
    return (
        stack.enter_context(postgres.throw_away()) if opts.db == "postgres" else Postgres(opts.db)
    )


def _subject(opts: Options, place: Path, server: Postgres | None) -> tuple[Subject, Commits]:
    commits: Commits = SqliteCommits(place / "commits.sqlite")
    url = None
    if server is not None:
        url = server.fresh("bench_service")
        commits = PostgresCommits(server.fresh("bench_commits"), FULL.writers)
    if opts.endpoint is not None:
        return Elsewhere(Address.of(opts.endpoint, token=opts.token)), commits
    return Siderite(place, url), commits


def _row(opts: Options, name: str, outcome: Outcome, figures: dict[str, Figure]) -> Row:
    workload = next(one for one in WORKLOADS if one.name == name)
    figure = figures.get(workload.against or name)
    bar = workload.bar_on_postgres if opts.db else workload.bar
    if isinstance(outcome, str):
        return Row(workload, bar, None, figure, outcome)
    return Row(workload, bar, outcome, figure)


def _kept(opts: Options) -> Path:
    return _KEPT.with_stem("figures-postgres") if opts.db else _KEPT


if __name__ == "__main__":
    # So that a `kill` also ends what was started: contexts are left as on any exit.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main(sys.argv[1:]))
