"""What can be benchmarked: a program to start, with a way to fill it with nodes.

`service` and `peer` implement it; `Elsewhere` is any compatible API that already runs.
"""

from dataclasses import dataclass
from typing import Protocol

from bench import load
from bench.address import Address
from bench.child import Child
from bench.fleet import Fleet


class CouldNotStock(Exception):
    """Some of the nodes that the workloads need were refused."""


@dataclass(frozen=True, slots=True)
class Running:
    """A subject that answers; `child` is absent when somebody else runs it."""

    address: Address
    child: Child | None


class Subject(Protocol):
    """A program with a bare metal API."""

    @property
    def title(self) -> str:
        """What the table calls it."""
        ...

    def start(self) -> Running:
        """Start it, on the data of its last run if there was one; back at its first 200."""
        ...

    def stock(self, running: Running, fleet: Fleet) -> None:
        """Put a fleet in."""
        ...


def stock_by_api(running: Running, fleet: Fleet) -> None:
    """Make a fleet's nodes one by one, through the API."""
    tally = load.run(load.all_of(running.address, fleet.creates(), clients=8))
    if tally.others:
        raise CouldNotStock(f"of {fleet.size} new nodes some were refused: {dict(tally.others)}")


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """An API that already runs at some address."""

    address: Address

    @property
    def title(self) -> str:
        """What the table calls it."""
        return self.address.root

    def start(self) -> Running:
        """Nothing to start."""
        return Running(self.address, None)

    def stock(self, running: Running, fleet: Fleet) -> None:
        """Put a fleet in through the API."""
        stock_by_api(running, fleet)
