"""Ways out of the event log: what other rooms announced, for whoever wants to know.

This room reads the log and decides nothing. A reader holds one number, "I have all up to here", and
asks for what comes after; the log has no gaps and never goes back (docs/decisions/0006), so that is
all there is to remember.

- Pages and streams: the reader keeps its number. The `Hub` reads each new fact once for all who
  follow; those who are further behind read the log themselves.
- The bus, the monitor and the search index: a `Follower` each, whose number is a row, committed
  with what it keeps.
- Webhooks: a number each, and a row per delivery.

What leads to those who see their own project only goes through `Discretion`.

`Retention` prunes the log, and knows all of those numbers.
"""

from siderite.events.discretion import Discretion
from siderite.events.discretion import Hide
from siderite.events.hub import Hub
from siderite.events.service import EventsService
from siderite.events.service import Ways

__all__ = ["Discretion", "EventsService", "Hide", "Hub", "Ways"]
