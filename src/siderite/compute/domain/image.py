"""Images as compute sees them, wherever they are kept."""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Protocol

import msgspec

from siderite.core.errors import Forbidden
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound

Changed = Callable[[Mapping[str, str]], Mapping[str, str]]
"""What becomes of an image's properties; it may refuse them as they are."""

_RESERVED = "os_glance_"
"""How the names begin that image services keep for themselves: what reads them trusts them."""


class Image(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a server keeps of the image it was made from."""

    id: str
    name: str | None = None
    status: str = "active"
    size: int | None = None
    virtual_size: int | None = None
    min_disk_gib: int = 0
    min_ram_mib: int = 0
    disk_format: str | None = None
    container_format: str | None = None
    visibility: str = "private"
    protected: bool = False
    owner: str | None = None
    checksum: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    properties: Mapping[str, str] = {}
    """Its own properties only: os_shutdown_timeout, hw_disk_bus, …"""


class ImageSource(Protocol):
    """Where images are looked up for users, and made for snapshots. `token` is the caller's."""

    async def show(self, image: str, *, token: str | None, project: str | None) -> Image | None:
        """The image, if there is one that the project may use."""
        ...

    async def page(
        self,
        filters: Mapping[str, str],
        *,
        token: str | None,
        project: str | None,
        marker: str | None,
        limit: int,
    ) -> Sequence[Image]:
        """Images that the project may use, the newest first; filters are those of the image API."""
        ...

    def address(self, image: str, base: str) -> str:
        """Where the image service has it; `base` is where our own APIs are."""
        ...

    async def describe(
        self,
        image: str,
        changed: Changed,
        *,
        token: str | None,
        project: str | None,
    ) -> Image:
        """Change an image's properties, if the caller may; as it is then. `changed` decides on what
        they are at that moment, and again where somebody else was faster.
        """
        ...

    async def drop(self, image: str, *, token: str | None, project: str | None) -> None:
        """Delete an image, if the caller may."""
        ...

    async def make(
        self,
        name: str,
        properties: dict[str, str],
        *,
        token: str | None,
        project: str | None,
        needs: tuple[int, int] = (0, 0),
    ) -> str:
        """The id of a new image that waits for its contents; what it needs is GiB of disk and MiB
        of memory.
        """
        ...

    async def discard(self, image: str) -> None:
        """The contents of an image that was made will not come."""
        ...

    async def remove(self, image: str) -> None:
        """An image that a server was kept in is not needed any more; a protected one stays."""
        ...


def is_reserved(name: str) -> bool:
    """Whether a property is for image services to write, and not for those who use them."""
    return name.startswith(_RESERVED)


def check_reserved(after: Mapping[str, str], before: Mapping[str, str] | None = None) -> None:
    """Refuse properties that are not for owners; those that stay as they were are not written."""
    had = before or {}
    for name, value in after.items():
        if is_reserved(name) and had.get(name) != value:
            raise Forbidden(
                f"Image metadata '{name[:80]}' is reserved: names that begin with {_RESERVED} are"
                " not for owners; choose another."
            )


def missing(image: str) -> NotFound:
    """What is said of an image that is not there, or not for the caller."""
    return NotFound(
        f"Image {image[:80]} could not be found. `image list` shows those that you may use."
    )


def whole(image: Image) -> None:
    """Refuse an image without its data."""
    if image.status != "active":
        raise Invalid(f"Image {image.id} is not active; wait until it is, or choose another.")


def usable(image: Image, ram_mib: int, disk_gib: int) -> None:
    """Refuse an image that a flavor of this size cannot boot."""
    whole(image)
    if image.min_ram_mib > ram_mib:
        raise Invalid(
            f"Flavor's memory is too small for requested image: it needs {image.min_ram_mib} MiB."
        )
    size = max(image.size or 0, image.virtual_size or 0)
    if disk_gib and size > disk_gib << 30:
        raise Invalid(
            f"Flavor's disk is too small for requested image: it has {disk_gib << 30} bytes, the"
            f" image {size}."
        )
    if disk_gib and image.min_disk_gib > disk_gib:
        raise Invalid(
            f"Flavor's disk is too small for requested image: it needs {image.min_disk_gib} GiB."
        )
