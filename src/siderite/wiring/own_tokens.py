"""Tokens for our own services, by which they call each other over their public APIs."""

from collections.abc import Callable

from siderite.core.clock import now as wall_clock
from siderite.identity import Identity

LIFE_S = 3600.0
_EARLY_S = 300.0


class OwnTokens:
    """Tokens of one service's account, each used until shortly before its end."""

    def __init__(
        self, identity: Identity, name: str, clock: Callable[[], float] = wall_clock
    ) -> None:
        self._identity = identity
        self._name = name
        self._clock = clock
        self._token = ""
        self._until = 0.0

    async def get(self) -> str:
        """One that is good for some minutes more."""
        now = self._clock()
        if not self._token or now >= self._until:
            self._token = await self._identity.service_token(self._name, LIFE_S)
            self._until = now + LIFE_S - _EARLY_S
        return self._token

    def forget(self) -> None:
        """The last one was not taken."""
        self._token = ""
