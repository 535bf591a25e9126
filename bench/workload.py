"""The table of workloads, in the order in which they are run, with their bars."""

from collections.abc import Callable
from dataclasses import dataclass

from bench import cluster
from bench import footprint
from bench import reads
from bench import server_reads
from bench import servers
from bench import writes
from bench.bar import Against
from bench.bar import Bar
from bench.cycle import cycle
from bench.cycle import cycle_each
from bench.figure import Measured
from bench.power import power
from bench.power import power_each
from bench.relay import relay
from bench.stage import Stage
from bench.streams import streams
from bench.transitions import transitions


@dataclass(frozen=True, slots=True)
class Workload:
    """One line of the table; the bars hold for two cores and durable commits."""

    name: str
    title: str
    measure: Callable[[Stage], Measured]
    bar: Bar | None
    bar_on_postgres: Bar | None = None
    #: Whether the subject's process must be ours.
    of_process: bool = False
    #: Whether only Siderite has it; then its process must be ours too.
    of_siderite: bool = False
    #: Whether it needs PostgreSQL.
    of_postgres: bool = False
    #: The peer's workload to compare with, if it is another.
    against: str | None = None


_START = Bar(Against.ITSELF, 1.5, "s")

WORKLOADS = (
    Workload(
        "first",
        "start to first 200, empty",
        footprint.first_start,
        _START,
        of_process=True,
    ),
    Workload(
        "get",
        "GET one node",
        reads.one_node,
        Bar(Against.LIMIT_AT_LEAST, 0.35),
    ),
    Workload(
        "list",
        "detail list, 1000 of 5000",
        reads.detail_list,
        Bar(Against.LIMIT_AT_MOST, 8),
    ),
    Workload(
        "memory",
        "resident memory, 5000 nodes",
        footprint.memory,
        Bar(Against.ITSELF, 120, "MB"),
        of_process=True,
    ),
    Workload(
        "create",
        "create node, 8 clients",
        writes.create,
        Bar(Against.PEER, 50),
    ),
    Workload(
        "patch",
        "PATCH node, 8 clients",
        writes.patch,
        Bar(Against.PEER, 100),
    ),
    Workload(
        "cycle",
        "full cycle, 50 at once",
        cycle,
        Bar(Against.PEER, 150),
        Bar(Against.PEER, 40),
    ),
    Workload(
        "cycle-each",
        "full cycle, each asks for its own",
        cycle_each,
        Bar(Against.PEER, 150),
        Bar(Against.PEER, 40),
    ),
    Workload(
        "cycle-1",
        "full cycle, api and 1 worker",
        cluster.one_worker,
        None,
        Bar(Against.PEER, 100),
        of_siderite=True,
        of_postgres=True,
        against="cycle",
    ),
    Workload(
        "cycle-4",
        "full cycle, api and 4 workers",
        cluster.four_workers,
        None,
        Bar(Against.PEER, 100),
        of_siderite=True,
        of_postgres=True,
        against="cycle",
    ),
    Workload(
        "power",
        "power on/off, 50 at once",
        power,
        Bar(Against.PEER, 100),
    ),
    Workload(
        "power-each",
        "power on/off, each asks for its own",
        power_each,
        Bar(Against.PEER, 100),
    ),
    Workload(
        "start",
        "start to first 200, 5000 nodes",
        footprint.start_again,
        _START,
        of_process=True,
    ),
    Workload(
        "server-get",
        "GET one server",
        server_reads.one_server,
        Bar(Against.LIMIT_AT_LEAST, 0.3),
        Bar(Against.LIMIT_AT_LEAST, 0.05),
        of_siderite=True,
    ),
    Workload(
        "server-list",
        "detail list, 1000 servers",
        server_reads.detail_list,
        Bar(Against.LIMIT_AT_MOST, 10),
        Bar(Against.LIMIT_AT_MOST, 20),
        of_siderite=True,
    ),
    Workload(
        "server-boot",
        "boot to ACTIVE and delete, 50 at once",
        servers.boot,
        Bar(Against.ITSELF_AT_LEAST, 100, "/s"),
        of_siderite=True,
    ),
    Workload(
        "server-switch",
        "stop/start servers, 50 at once",
        servers.switch,
        Bar(Against.ITSELF_AT_LEAST, 200, "/s"),
        of_siderite=True,
    ),
    Workload(
        "server-crowd",
        "GET p99 while 1000 servers boot",
        servers.crowd,
        Bar(Against.LIMIT_AT_MOST, 10),
        Bar(Against.LIMIT_AT_MOST, 20),
        of_siderite=True,
    ),
    Workload(
        "log",
        "transition with its facts",
        transitions,
        Bar(Against.LIMIT_AT_LEAST, 0.8),
        Bar(Against.LIMIT_AT_LEAST, 0.8),
        of_siderite=True,
    ),
    Workload(
        "relay",
        "events to RabbitMQ, confirmed",
        relay,
        Bar(Against.LIMIT_AT_LEAST, 0.7),
        Bar(Against.LIMIT_AT_LEAST, 0.7),
        of_siderite=True,
    ),
    Workload(
        "streams",
        "lag of 50 streams, 200 events/s, p99",
        streams,
        Bar(Against.ITSELF, 1.0, "s"),
        Bar(Against.ITSELF, 1.0, "s"),
        of_siderite=True,
    ),
)
