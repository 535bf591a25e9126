"""Servers that should be near each other, or far from each other."""

import msgspec

HARD = ("anti-affinity", "affinity")
SOFT = ("soft-anti-affinity", "soft-affinity")


class ServerGroup(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A group and its policy; who is in it, the servers say."""

    uuid: str
    version: int = 1
    created_at: str
    name: str
    project_id: str
    user_id: str
    policy: str
    rules: dict[str, int] = {}

    @property
    def max_server_per_host(self) -> int:
        """How many of it one host may have, if they should be far from each other."""
        return self.rules.get("max_server_per_host", 1)
