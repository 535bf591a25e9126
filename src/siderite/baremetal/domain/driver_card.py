"""What usecases may know of a driver: its interfaces by name and what it needs. Pure data."""

from collections.abc import Callable
from typing import Any

import msgspec

from siderite.baremetal.domain.node import INTERFACES
from siderite.baremetal.domain.node import Node
from siderite.core.errors import Invalid


class DriverCard(msgspec.Struct, frozen=True):
    """A hardware type as others see it. The first interface of each kind is the default."""

    name: str
    interfaces: dict[str, tuple[str, ...]]
    required: tuple[str, ...] = ()
    lacks: Callable[[Node, str], str | None] | None = None
    """What a node lacks, apart from what is required, for its interface of a kind to be used."""
    properties: dict[str, str] = msgspec.field(default_factory=dict)
    """What a node's driver_info may say to it, each with what that means."""

    def fill_in(self, wanted: dict[str, Any]) -> dict[str, str]:
        """The interfaces of a node that asked for these; Invalid if the driver lacks one."""
        chosen = {}
        for kind in INTERFACES:
            field = f"{kind}_interface"
            name = wanted.get(field) or self.interfaces[kind][0]
            if name not in self.interfaces[kind]:
                raise Invalid(
                    f"Driver {self.name} has no {kind} interface {name!r};"
                    f" it has: {', '.join(self.interfaces[kind])}."
                )
            chosen[field] = name
        return chosen

    def problem(self, node: Node) -> str | None:
        """What the node lacks for this driver to reach it."""
        missing = [key for key in self.required if not node.driver_info.get(key)]
        if missing:
            return f"driver_info lacks {', '.join(missing)}; {self.name} needs it to reach a node."
        return None

    def shortcoming(self, node: Node, kind: str) -> str | None:
        """Why the node's interface of this kind could not be used now."""
        problem = self.problem(node)
        return self.lacks(node, kind) if problem is None and self.lacks is not None else problem

    def supports(self, node: Node, kind: str) -> bool:
        """Whether the node's interface of this kind does anything."""
        chosen = getattr(node, f"{kind}_interface") or self.interfaces[kind][0]
        return not str(chosen).startswith("no-")

    @property
    def described(self) -> dict[str, str]:
        """All that driver_info may say, the required ones first."""
        needed = {key: self.properties.get(key, "") for key in self.required}
        told = {key: f"{text} Required.".strip() for key, text in needed.items()}
        return told | {key: text for key, text in self.properties.items() if key not in told}

    def has(self, kind: str) -> bool:
        """Whether any interface of this kind does anything."""
        return any(not name.startswith("no-") for name in self.interfaces[kind])
