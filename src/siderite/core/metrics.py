"""Every metric there is, in one place. No per-node labels: they would grow without bound."""

from collections.abc import Iterator
from collections.abc import Mapping
from contextlib import contextmanager

from prometheus_client import CONTENT_TYPE_LATEST
from prometheus_client import CollectorRegistry
from prometheus_client import Counter
from prometheus_client import Gauge
from prometheus_client import Histogram
from prometheus_client import generate_latest

registry = CollectorRegistry()

_REQUESTS = Histogram(
    "siderite_http_request_seconds",
    "Time to answer a request, by service, method and status.",
    ("service", "method", "status"),
    buckets=(0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0),
    registry=registry,
)
_TRANSITIONS = Counter(
    "siderite_transitions",
    "State transitions committed, by machine, event and new state.",
    ("machine", "event", "state"),
    registry=registry,
)
_RACES = Counter(
    "siderite_races_lost", "Changes decided again because another came first.", registry=registry
)
_JOBS = Counter(
    "siderite_jobs", "Jobs taken up by this worker, by kind.", ("kind",), registry=registry
)
_RUNNING = Gauge("siderite_jobs_running", "Jobs that this worker has under way.", registry=registry)
_QUEUE = Gauge(
    "siderite_work",
    "Durable work there is, by whether a worker has it.",
    ("leased",),
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
    "Operations that the event log tells of, by name and by what became of them so far.",
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

_transition_children: dict[tuple[str, str, str], Counter] = {}
_job_children: dict[str, Counter] = {}
_request_children: dict[tuple[str, str, int], Histogram] = {}


def request(service: str, method: str, status: int, seconds: float) -> None:
    """A request was answered."""
    key = (service, method, status)
    child = _request_children.get(key)
    if child is None:
        child = _request_children[key] = _REQUESTS.labels(service, method, str(status))
    child.observe(seconds)


def shutdown(how: str, seconds: float) -> None:
    """A guest was brought down."""
    _SHUTDOWNS.labels(how).observe(seconds)


def transition(machine: str, event: str, state: str) -> None:
    """A transition was committed."""
    key = (machine, event, state)
    child = _transition_children.get(key)
    if child is None:
        child = _transition_children[key] = _TRANSITIONS.labels(*key)
    child.inc()


def races_lost() -> None:
    """A compare-and-swap was lost."""
    _RACES.inc()


def job_begins(kind: str) -> None:
    """A job is under way."""
    child = _job_children.get(kind)
    if child is None:
        child = _job_children[kind] = _JOBS.labels(kind)
    child.inc()
    _RUNNING.inc()


def job_ended() -> None:
    """It is not any more."""
    _RUNNING.dec()


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


def operation(name: str, counts: Mapping[str, int]) -> None:
    """How many operations of a name there were, by what became of them."""
    for outcome, count in counts.items():
        _OPERATIONS.labels(name, outcome).set(count)


def log_span(oldest: int, newest: int) -> None:
    """What the event log holds."""
    _LOG.labels("oldest").set(oldest)
    _LOG.labels("newest").set(newest)


def log_reader(name: str, *, behind: int, lost: int) -> None:
    """How far a reader of the event log is behind."""
    _LOG_BEHIND.labels(name).set(behind)
    _LOG_LOST.labels(name).set(lost)


def events_pruned_unread(count: int) -> None:
    """Events are gone that somebody was to have."""
    _PRUNED_UNREAD.inc(count)


def queue(total: int, leased: int) -> None:
    """How much durable work there is now."""
    _QUEUE.labels("yes").set(leased)
    _QUEUE.labels("no").set(total - leased)


def page() -> tuple[bytes, str]:
    """The metrics in Prometheus' text form, and its content type."""
    return generate_latest(registry), CONTENT_TYPE_LATEST


def unreadable(table: str) -> None:
    """One more record of this table that cannot be read."""
    _UNREADABLE.labels(table).inc()
