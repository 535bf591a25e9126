"""What usecases may know of a driver: its name, and what it can do. Pure."""

import msgspec


class DriverCard(msgspec.Struct, frozen=True):
    """A driver as others see it."""

    name: str
    abilities: frozenset[str] = frozenset()
    options: frozenset[str] = frozenset()
    """What may be said of a host when it is added."""

    def can(self, ability: str) -> bool:
        """Whether a server on this driver can be asked for it."""
        return ability in self.abilities
