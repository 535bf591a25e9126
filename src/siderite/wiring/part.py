"""What a room gives to the program, and what it is given."""

from collections.abc import Awaitable
from collections.abc import Callable
from collections.abc import Coroutine
from collections.abc import Mapping
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from siderite.core.config import Config
from siderite.core.http import Service
from siderite.core.store import Store
from siderite.core.transition import Door
from siderite.core.websocket import SocketHandler
from siderite.core.who import Authenticator
from siderite.core.worker import Handler
from siderite.events import Hide
from siderite.events import Hub
from siderite.identity import CatalogEntry
from siderite.identity import Identity
from siderite.identity import Keystone

Job = Callable[[], Coroutine[Any, Any, None]]


class Role(StrEnum):
    """What a process does of it all."""

    ALL = "up"
    API = "api"
    WORKER = "worker"

    @property
    def serves(self) -> bool:
        """Whether it answers requests."""
        return self is not Role.WORKER

    @property
    def works(self) -> bool:
        """Whether it carries out work."""
        return self is not Role.API


class Base(msgspec.Struct, frozen=True):
    """What every room stands on."""

    config: Config
    data: Path
    store: Store
    door: Door
    hub: Hub
    identity: Authenticator
    """Who can tell whose a token is."""
    own_identity: Identity
    keystone: Keystone | None
    role: Role
    listens: bool = True
    """Whether somebody can reach this process."""
    set_back_s: float = 0.0
    """By how much the computer's clock was set back while nobody ran on an embedded database."""


class Part(msgspec.Struct, frozen=True):
    """A room, ready to be plugged in."""

    services: Mapping[str, Service] = msgspec.field(default_factory=dict)
    """By their prefix on the listener."""
    sockets: Mapping[str, SocketHandler] = msgspec.field(default_factory=dict)
    """Who takes WebSockets, by prefix."""
    near: Sequence[str] = ()
    """Prefixes at which workers answer, too, if they listen."""
    catalog: Sequence[CatalogEntry] = ()
    handlers: Mapping[str, Handler] = msgspec.field(default_factory=dict)
    """Who carries out which kind of work."""
    pools: Sequence[str] = ()
    """What a process of some conductor groups takes besides their work."""
    heard: Mapping[str, Callable[[], None]] = msgspec.field(default_factory=dict)
    """Whom to call at which signal of other processes."""
    jobs: Sequence[Job] = ()
    """What goes on in processes that work, until cancelled."""
    serving: Sequence[Job] = ()
    """What goes on beside answering requests, until cancelled."""
    event_types: Sequence[str] = ()
    """Globs of the facts it records."""
    fields: frozenset[str] = frozenset()
    """The names that fields have in those facts by their form."""
    freely_named: Sequence[str] = ()
    """Kinds of resources in whose facts users' own names stand beside those."""
    hidden: Mapping[str, Hide] = msgspec.field(default_factory=dict)
    """What of those facts is for who sees all projects, by kind of resource."""
    remembered: Sequence[str] = ()
    """Kinds of resources whose facts are their history: it goes on when the log is pruned."""
    topic: tuple[str, str] | None = None
    """Exchange and topic on the notification bus for all of them."""
    measures: Sequence[Callable[[], Awaitable[None]]] = ()
    """What brings figures up to date before Prometheus reads them."""
    shifts: Sequence[Callable[[float], None]] = ()
    """Told by how much the computer's clock was set back, where the database is embedded."""
    close: Callable[[], None] | None = None
