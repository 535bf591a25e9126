"""A fact: something that became true, as it is announced. Written by `core.eventlog`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fact:
    """Event type and payload are the wire's own; `publisher` is completed with the host's name."""

    event_type: str
    publisher: str
    resource_type: str
    resource: str
    payload: str
    priority: str = "INFO"
    project: str | None = None
