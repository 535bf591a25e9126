"""What a reaper is told when it is started."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rules:
    """How it goes about it."""

    name: str
    strategy: str = "strict"
    dry_run: bool = False
    per_project_and_hour: int = 0
    """How many servers may go for the servers of one project within an hour; 0: any number."""
    projects: frozenset[str] = frozenset()
    """Projects, by id, all of whose servers are preemptible."""
