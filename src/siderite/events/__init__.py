"""Ways out of the event log: pages and streams of the facts that other rooms announced.

This room reads the log and decides nothing. A reader holds one number, "I have all up to here", and
asks for what comes after; the log has no gaps and never goes back (docs/decisions/0006), so that is
all there is to remember. The `Hub` reads each new fact once for all who follow; those who are
further behind read the log themselves.
"""

from siderite.events.hub import Hub
from siderite.events.service import EventsService

__all__ = ["EventsService", "Hub"]
