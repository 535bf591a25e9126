"""How much is measured: sizes, rounds and seconds, for the full run and the quick one.

The peer does some twenty requests a second where the service does thousands: it gets fewer rounds,
never a smaller workload.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Plan:
    """Sizes of the workloads."""

    rounds: int
    seconds: float
    limit_seconds: float
    cycle_rounds: int
    starts: int
    #: Nodes that each client of the cycle leads through their lives, one after the other.
    cycle_lives: int
    #: Servers that each client boots, one after the other.
    lives: int
    #: How long a subject gets, after it stood still, for what it catches up with: heartbeats,
    #: leases, a look at the power of every machine.
    settle_s: float = 5
    #: Nodes in the database before anything is measured.
    nodes: int = 5000
    #: Nodes on the page of the detail list.
    page: int = 1000
    #: Connections of wrk that read one node.
    readers: int = 16
    #: Clients that create and patch.
    writers: int = 8
    #: Nodes that go through the cycle, or change power, at once.
    at_once: int = 50


FULL = Plan(
    rounds=5, seconds=4, limit_seconds=1, cycle_rounds=6, starts=5, cycle_lives=20, lives=4,
    settle_s=25,
)  # fmt: skip
QUICK = Plan(
    rounds=2, seconds=1, limit_seconds=0.5, cycle_rounds=2, starts=1, cycle_lives=10, lives=2
)
PEER_FULL = Plan(
    rounds=3, seconds=8, limit_seconds=0, cycle_rounds=2, starts=3, cycle_lives=1, lives=1
)
PEER_QUICK = Plan(
    rounds=1, seconds=6, limit_seconds=0, cycle_rounds=1, starts=1, cycle_lives=1, lives=1
)
