"""What every use case works with."""

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from typing import Any
from typing import Protocol

import msgspec

from siderite.compute.domain import facts
from siderite.compute.domain.aggregate import Atlas
from siderite.compute.domain.driver_card import DriverCard
from siderite.compute.domain.network import Network
from siderite.compute.domain.server import Actor
from siderite.compute.domain.server import Server
from siderite.compute.domain.server import moved
from siderite.compute.domain.server_machine import CLEAN_TASKS
from siderite.compute.domain.server_machine import SERVER
from siderite.compute.domain.server_machine import parted
from siderite.compute.domain.shutdown import timeout_of
from siderite.compute.store import SERVERS
from siderite.core.fact import Fact
from siderite.core.machine import Moved
from siderite.core.store import Line
from siderite.core.transition import Cause
from siderite.core.transition import Door


class Limits(msgspec.Struct, frozen=True):
    """What a project may have; -1 is without limit."""

    instances: int
    cores: int
    ram_mib: int
    metadata_items: int = 128
    key_pairs: int = 100
    server_groups: int = 10
    server_group_members: int = 10


class Settings(msgspec.Struct, frozen=True):
    """The options that decisions depend on."""

    max_limit: int
    deadline_scale: float
    cpu_allocation_ratio: float
    ram_allocation_ratio: float
    disk_allocation_ratio: float
    shutdown_timeout_s: int
    shutdown_retry_interval_s: int
    shelved_offload_time_s: int
    reclaim_interval_s: int
    deleted_servers_keep_s: float
    image_cache_keep_s: int
    use_pending_state: bool
    pending_timeout_s: float
    wake_pending: bool
    power_policy: str
    console_token_ttl_s: float
    networks: tuple[Network, ...]
    limits: Limits
    """Those of a project for which none were set."""
    host_patience_s: float = 60.0
    build_attempts: int = 3
    soft_reboot_timeout_s: int = 120


class Workers(Protocol):
    """The processes that carry out work."""

    async def serve(self, group: str) -> bool:
        """Whether one that acts for a conductor group is up."""
        ...


class ServerRules:
    """How servers go through the one door."""

    machine = SERVER
    table = SERVERS
    lane = "server"

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def state(self, value: Server) -> tuple[str, str | None]:
        return value.state, None

    def moved(self, before: Server, moved_: Moved, now: float, changes: dict[str, Any]) -> Server:
        deadline_s = self.deadline(moved_, before) if moved_.state.moves_by_itself else None
        return moved(before, moved_, now, deadline_s, changes)

    def announce(self, before: Server, after: Server, event: str) -> Fact:
        return facts.update(before, after)

    def pool(self, value: Server) -> str | None:
        # Which host a step acts on is known when it is taken: who does not serve the conductor
        # group of that host passes the work on to those who do.
        return None

    def deadline(self, moved_: Moved, value: Server) -> float:
        time_s = (moved_.state.deadline_s or 3600.0) * self._settings.deadline_scale
        _, task = parted(moved_.state.name)
        if task == "rebooting":
            return time_s + self._settings.soft_reboot_timeout_s
        if task not in CLEAN_TASKS:
            return time_s
        # What the guest gets for its shutdown comes on top.
        properties = {} if value.image is None else value.image.properties
        return time_s + timeout_of(properties, self._settings.shutdown_timeout_s)


class KnownAtlas(msgspec.Struct):
    """The last look at all aggregates, and which versions of them that was."""

    versions: list[Line] = msgspec.field(default_factory=list)
    atlas: Atlas = msgspec.field(default_factory=Atlas)


@dataclass(frozen=True, slots=True)
class Context:
    """The door, the drivers' cards, the settings, and who carries out work."""

    door: Door
    cards: Mapping[str, DriverCard]
    settings: Settings
    workers: Workers
    rules: ServerRules = field(init=False)
    known_atlas: KnownAtlas = field(init=False, default_factory=KnownAtlas)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", ServerRules(self.settings))

    def network(self, name_or_id: str) -> Network | None:
        """A network by its name or UUID."""
        for network in self.settings.networks:
            if name_or_id in (network.name, network.uuid):
                return network
        return None


def actor(cause: Cause) -> Actor:
    """Who asks for a change, as the server remembers it."""
    return Actor(cause.request_id, cause.user, cause.project)
