"""A flavor: a size that servers can have, with who may use it."""

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import msgspec

from siderite.core.times import iso


class Flavor(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A flavor; a server keeps the one it was made with as it was then."""

    uuid: str
    version: int = 1
    created_at: str
    updated_at: str | None = None
    flavorid: str
    """What the API calls its id."""
    name: str
    vcpus: int
    ram_mib: int
    disk_gib: int
    ephemeral_gib: int = 0
    swap_mib: int = 0
    rxtx_factor: float = 1.0
    is_public: bool = True
    disabled: bool = False
    description: str | None = None
    extra_specs: Mapping[str, str] = {}
    projects: Sequence[str] = []
    """Who may use it when it is not public."""

    def changed(self, now: float, changes: Mapping[str, Any]) -> "Flavor":
        """The flavor with these fields changed, one version on."""
        return msgspec.structs.replace(
            self, version=self.version + 1, updated_at=iso(now), **changes
        )

    def is_for(self, project: str | None) -> bool:
        """Whether a project may use it."""
        return self.is_public or (project is not None and project in self.projects)

    @property
    def local_gib(self) -> int:
        """The disk space that a server of it takes on its host."""
        return self.disk_gib + self.ephemeral_gib + (self.swap_mib + 1023) // 1024

    @property
    def resource_class(self) -> str | None:
        """The class of bare metal node it asks for: `resources:CUSTOM_GOLD=1` is CUSTOM_GOLD."""
        for key, value in self.extra_specs.items():
            name = key.removeprefix("resources:")
            if name != key and name.startswith("CUSTOM_") and value.strip() not in ("", "0"):
                return name
        return None
