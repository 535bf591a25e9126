"""What every use case works with."""

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from typing import Any

import msgspec

from siderite.baremetal.domain import facts
from siderite.baremetal.domain.agent import without_session
from siderite.baremetal.domain.driver_card import DriverCard
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.node import moved
from siderite.baremetal.domain.node_machine import NODE
from siderite.baremetal.domain.node_machine import P
from siderite.baremetal.store import NODES
from siderite.baremetal.usecases.machine.hardware import Hardware
from siderite.core.fact import Fact
from siderite.core.machine import Kind
from siderite.core.machine import Moved
from siderite.core.transition import Door


class Settings(msgspec.Struct, frozen=True):
    """The options that decisions depend on."""

    power_off_verified: bool
    automated_clean: bool
    allow_deleting_available_nodes: bool
    callback_timeout_s: float
    deadline_scale: float
    soft_power_off_timeout_s: float
    soft_power_off_then_hard: bool
    power_timeout_s: float
    power_wait_s: float
    hardware_timeout_s: float
    agent_require_tls: bool
    max_limit: int
    tells_compute: bool
    """Whether a compute service is told of nodes' power."""


_AT_REST = (Kind.STABLE, Kind.FAILED)


class NodeRules:
    """How nodes go through the one door."""

    machine = NODE
    table = NODES
    lane = "provision"

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def state(self, value: Node) -> tuple[str, str | None]:
        return value.provision_state, value.target_provision_state

    def moved(self, before: Node, moved_: Moved, now: float, changes: dict[str, Any]) -> Node:
        deadline_s = self.deadline(moved_, before) if moved_.state.moves_by_itself else None
        if moved_.state.kind in _AT_REST or moved_.state.name == P.DELETING:
            # No ramdisk is expected any more: the next one gets a token of its own.
            known = changes.get("driver_internal_info", before.driver_internal_info)
            left = without_session(known)
            if left is not known:
                changes = {**changes, "driver_internal_info": left}
        return moved(before, moved_, now, deadline_s, changes)

    def announce(self, before: Node, after: Node, event: str) -> Fact:
        return facts.provision_set(before, after, event)

    def pool(self, value: Node) -> str | None:
        return value.conductor_group or None

    def deadline(self, moved_: Moved, value: Node) -> float:
        if moved_.state.kind is Kind.WAIT:
            return self._settings.callback_timeout_s
        return (moved_.state.deadline_s or 3600.0) * self._settings.deadline_scale


@dataclass(frozen=True, slots=True)
class Context:
    """The door, the drivers' cards, the settings and the machines."""

    door: Door
    cards: Mapping[str, DriverCard]
    settings: Settings
    hardware: Hardware
    rules: NodeRules = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", NodeRules(self.settings))
