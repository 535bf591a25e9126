"""A node's driver and interfaces: those that go together."""

from collections.abc import Mapping
from typing import Any

from siderite.baremetal.domain.driver_card import DriverCard
from siderite.baremetal.domain.node import INTERFACES
from siderite.baremetal.domain.node import Node
from siderite.core.errors import Invalid

INTERFACE_FIELDS = frozenset(f"{kind}_interface" for kind in INTERFACES)
Cards = Mapping[str, DriverCard]


def refitted(
    cards: Cards, node: Node, changes: Mapping[str, Any], *, reset: bool = False
) -> dict[str, str]:
    """All interfaces of a node after these changes of its driver and interfaces: with `reset`, the
    driver's own where they say nothing. Invalid if they do not go together.
    """
    card = _card(cards, changes.get("driver", node.driver))
    wanted = {
        field: changes[field] if field in changes else None if reset else getattr(node, field)
        for field in INTERFACE_FIELDS
    }
    return card.fill_in(wanted)


def settled(cards: Cards, node: Node, changes: Mapping[str, Any]) -> dict[str, str]:
    """The same, but interfaces that nobody asked for give way to the driver's own if it lacks them,
    as nobody is there to choose.
    """
    card = _card(cards, changes.get("driver", node.driver))
    wanted: dict[str, Any] = {}
    for kind in INTERFACES:
        field = f"{kind}_interface"
        has = getattr(node, field)
        wanted[field] = changes.get(field, has if has in card.interfaces[kind] else None)
    return card.fill_in(wanted)


def _card(cards: Cards, driver: Any) -> DriverCard:
    card = cards.get(driver)
    if card is None:
        known = ", ".join(sorted(cards))
        raise Invalid(f"There is no driver {str(driver)[:80]}; those here are: {known}.")
    return card
