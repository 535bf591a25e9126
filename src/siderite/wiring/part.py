"""What a room gives to the program, and what it is given."""

from collections.abc import Callable
from collections.abc import Coroutine
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from typing import Any

from siderite.core.config import Config
from siderite.core.http import Service
from siderite.core.store import Store
from siderite.core.transition import Door
from siderite.core.worker import Handler
from siderite.events import Hub
from siderite.identity import CatalogEntry
from siderite.identity import Identity


@dataclass(frozen=True, slots=True)
class Base:
    """What every room stands on."""

    config: Config
    data: Path
    store: Store
    door: Door
    hub: Hub
    identity: Identity


@dataclass(frozen=True, slots=True)
class Part:
    """A room, ready to be plugged in."""

    services: Mapping[str, Service] = field(default_factory=dict)
    """By their prefix on the listener."""
    catalog: Sequence[CatalogEntry] = ()
    handlers: Mapping[str, Handler] = field(default_factory=dict)
    """Who carries out which kind of work."""
    jobs: Sequence[Callable[[], Coroutine[Any, Any, None]]] = ()
    """What goes on beside answering requests, until cancelled."""
    event_types: Sequence[str] = ()
    """Globs of the facts it records."""
    topic: tuple[str, str] | None = None
    """Exchange and topic on the notification bus for all of them."""
    close: Callable[[], None] | None = None
