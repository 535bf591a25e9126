"""Every metric there is, in one place. No per-node labels: they would grow without bound.

What every request and every transition counts is a plain number, by the one thread that answers
them; it takes Prometheus' form when it is asked for.
"""

from bisect import bisect_left
from collections import Counter as Counts
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import contextmanager
from itertools import accumulate

from prometheus_client import CONTENT_TYPE_LATEST
from prometheus_client import CollectorRegistry
from prometheus_client import Counter
from prometheus_client import Gauge
from prometheus_client import Histogram
from prometheus_client import disable_created_metrics
from prometheus_client import generate_latest
from prometheus_client.metrics_core import CounterMetricFamily
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.metrics_core import HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

registry = CollectorRegistry()
# A second series for each counter, which would say when this process began.
disable_created_metrics()  # type: ignore[no-untyped-call]


_BOUNDS_S = (0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0)


class _Times:
    """How long requests took: together, and how many up to each bound and beyond the last."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.total = 0.0
        self.counts = [0] * (len(_BOUNDS_S) + 1)


Headcount = tuple[str, str, bool, int, float]
"""How many machines are in a state, with a power, in maintenance or not, and the longest so."""


class Counted(Collector):
    """Requests, transitions, jobs and machines."""

    def __init__(self) -> None:
        self.requests: dict[tuple[str, str, int], _Times] = {}
        self.transitions = Counts[tuple[str, str, str]]()
        self.jobs = Counts[str]()
        self.running = 0
        self.machines: dict[str, Sequence[Headcount]] = {}

    def collect(self) -> Iterator[Metric]:
        seconds = HistogramMetricFamily(
            "siderite_http_request_seconds",
            "Time to answer a request, by service, method and status.",
            labels=("service", "method", "status"),
        )
        names = [*map(str, _BOUNDS_S), "+Inf"]
        for (service, method, status), times in self.requests.items():
            buckets = list(zip(names, map(float, accumulate(times.counts)), strict=True))
            seconds.add_metric((service, method, str(status)), buckets, times.total)
        yield seconds
        transitions = CounterMetricFamily(
            "siderite_transitions",
            "State transitions committed, by machine, event and new state.",
            labels=("machine", "event", "state"),
        )
        for key, count in self.transitions.items():
            transitions.add_metric(key, count)
        yield transitions
        jobs = CounterMetricFamily(
            "siderite_jobs", "Jobs taken up by this worker, by kind.", labels=("kind",)
        )
        for kind, count in self.jobs.items():
            jobs.add_metric((kind,), count)
        yield jobs
        yield GaugeMetricFamily(
            "siderite_jobs_running", "Jobs that this worker has under way.", self.running
        )
        yield from self._machines()

    def _machines(self) -> Iterator[Metric]:
        there = GaugeMetricFamily(
            "siderite_machines",
            "Nodes and servers there are, by state, power and maintenance; each process says all.",
            labels=("machine", "state", "power", "maintenance"),
        )
        longest = GaugeMetricFamily(
            "siderite_longest_in_state_seconds",
            "How long the one that is longest in a state is in it; those in maintenance apart.",
            labels=("machine", "state"),
        )
        for kind, census in self.machines.items():
            since: dict[str, float] = {}
            for state, power, is_maintained, count, age_s in census:
                there.add_metric((kind, state, power, "yes" if is_maintained else "no"), count)
                if not is_maintained:
                    since[state] = max(age_s, since.get(state, 0.0))
            for state, age_s in since.items():
                longest.add_metric((kind, state), age_s)
        yield there
        yield longest


_counted = Counted()
registry.register(_counted)
_RACES = Counter(
    "siderite_races_lost", "Changes decided again because another came first.", registry=registry
)
_QUEUE = Gauge(
    "siderite_work",
    "Durable work there is, by whether a worker has it; each process says all.",
    ("leased",),
    registry=registry,
)
_DUE = Gauge(
    "siderite_work_due",
    "Of that, what is due and waits for a worker; each process says all.",
    registry=registry,
)
_UNREADABLE = Gauge(
    "siderite_unreadable_records",
    "Records met since the start that could not be read, by table; the log names each once.",
    ("table",),
    registry=registry,
)
_STREAMS = Gauge("siderite_streams", "Answers that are being sent bit by bit.", registry=registry)
_STREAMS_CUT = Counter(
    "siderite_streams_cut",
    "Such answers that were cut because the client did not read on.",
    registry=registry,
)

_SHUTDOWNS = Histogram(
    "siderite_guest_shutdown_seconds",
    "Time to bring a guest down, by how it ended: clean, forced, hard, or it was off.",
    ("how",),
    buckets=(1.0, 5.0, 15.0, 60.0, 300.0),
    registry=registry,
)
_WEBHOOKS = Counter(
    "siderite_webhook_deliveries",
    "Attempts to deliver an event to a webhook: delivered or failed, and those given up: dead.",
    ("outcome",),
    registry=registry,
)

_OPERATIONS = Gauge(
    "siderite_operations",
    "Operations that the event log tells of, by name and by what became of them so far; each"
    " process says all.",
    ("operation", "outcome"),
    registry=registry,
)
_LOG = Gauge(
    "siderite_event_log",
    "The oldest and the newest number in the event log.",
    ("end",),
    registry=registry,
)
_LOG_BEHIND = Gauge(
    "siderite_event_log_behind",
    "Events that a reader with a place in the log has not had yet; of webhooks, the one that is"
    " furthest behind.",
    ("reader",),
    registry=registry,
)
_LOG_LOST = Gauge(
    "siderite_event_log_lost",
    "Events that were pruned before such a reader had them.",
    ("reader",),
    registry=registry,
)
_PRUNED_UNREAD = Counter(
    "siderite_events_pruned_unread",
    "Events that this process pruned although a reader had not had them.",
    registry=registry,
)


def request(service: str, method: str, status: int, seconds: float) -> None:
    """A request was answered."""
    key = (service, method, status)
    times = _counted.requests.get(key)
    if times is None:
        times = _counted.requests[key] = _Times()
    times.total += seconds
    times.counts[bisect_left(_BOUNDS_S, seconds)] += 1


def shutdown(how: str, seconds: float) -> None:
    """A guest was brought down."""
    _SHUTDOWNS.labels(how).observe(seconds)


def transition(machine: str, event: str, state: str) -> None:
    """A transition was committed."""
    _counted.transitions[machine, event, state] += 1


def races_lost() -> None:
    """A compare-and-swap was lost."""
    _RACES.inc()


def job_begins(kind: str) -> None:
    """A job is under way."""
    _counted.jobs[kind] += 1
    _counted.running += 1


def job_ended() -> None:
    """It is not any more."""
    _counted.running -= 1


@contextmanager
def stream() -> Iterator[None]:
    """An answer is being sent bit by bit."""
    _STREAMS.inc()
    try:
        yield
    finally:
        _STREAMS.dec()


def stream_cut() -> None:
    """A client did not read on."""
    _STREAMS_CUT.inc()


def webhook(outcome: str) -> None:
    """A delivery was attempted, or given up."""
    _WEBHOOKS.labels(outcome).inc()


def machines(kind: str, census: Sequence[Headcount]) -> None:
    """Machines of a kind that there are; what was counted before is no more."""
    _counted.machines[kind] = census


def operation(name: str, counts: Mapping[str, int]) -> None:
    """How many operations of a name there were, by what became of them."""
    for outcome, count in counts.items():
        _OPERATIONS.labels(name, outcome).set(count)


def log_span(oldest: int, newest: int) -> None:
    """What the event log holds."""
    _LOG.labels("oldest").set(oldest)
    _LOG.labels("newest").set(newest)


def log_readers(behind: Mapping[str, int], lost: Mapping[str, int]) -> None:
    """How far each reader of the event log is behind; those that were before are no more."""
    for gauge, counts in ((_LOG_BEHIND, behind), (_LOG_LOST, lost)):
        gauge.clear()
        for name, count in counts.items():
            gauge.labels(name).set(count)


def events_pruned_unread(count: int) -> None:
    """Events are gone that somebody was to have."""
    _PRUNED_UNREAD.inc(count)


def queue(total: int, leased: int, due: int) -> None:
    """How much durable work there is now."""
    _DUE.set(due)
    _QUEUE.labels("yes").set(leased)
    _QUEUE.labels("no").set(total - leased)


def page() -> tuple[bytes, str]:
    """The metrics in Prometheus' text form, and its content type."""
    return generate_latest(registry), CONTENT_TYPE_LATEST


def unreadable(table: str) -> None:
    """One more record of this table that cannot be read."""
    _UNREADABLE.labels(table).inc()
