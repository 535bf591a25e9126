"""Names on a host: everything of a server carries its UUID, so a repeated call finds it. Pure."""

import re
from collections.abc import Iterable
from xml.etree import ElementTree as Xml

import msgspec
from msgspec.structs import replace

POOL = "siderite"
POOL_PATH = "/var/lib/libvirt/siderite"
NAMESPACE = "urn:siderite:server:1"
ARRIVED = "urn:siderite:arrived:1"
"""Of the note from which host a guest came by its last live migration."""
STILL = "urn:siderite:still:1"
"""Of the note that it came paused, and has not run since."""
PREFIX = "siderite"
FURTHER = ("ephemeral", "swap")
"""The disks that a flavor may give beside the first."""
_SEAL = ".complete"
_UNUSED = ".unused-"
_BOOTS = ".boots."
_BASE = re.compile(r"^base-[^.]+\.\w+\.(\w+)\.(\d+)$")
_DISK = re.compile(r"\.disk-(\d+)\.qcow2$")


def disk(uuid: str, generation: int) -> str:
    """The root disk. A resize puts a new generation on top of the last, which it can go back to."""
    return f"{uuid}.disk-{generation}.qcow2"


def generation_of(name: str) -> int:
    """Which generation a disk's name is of; 0 if it is no disk."""
    match = _DISK.search(name)
    return int(match[1]) if match else 0


def further_disk(uuid: str, what: str) -> str:
    """A further disk: `rescue`, `ephemeral`, `swap`, `snapshot`."""
    return f"{uuid}.{what}.qcow2"


def config(uuid: str) -> str:
    """The config drive."""
    return f"{uuid}.config.iso"


def console(uuid: str) -> str:
    """The serial log."""
    return f"{uuid}.console.log"


def older_console(uuid: str) -> str:
    """What libvirt's log daemon makes of the serial log when that has grown large; the newest."""
    return f"{console(uuid)}.0"


def way_back(uuid: str, generation: int) -> str:
    """An empty volume that says, while a resize waits for confirmation: this disk was before."""
    return f"{uuid}.back-to-{generation}"


def way_back_of(uuid: str, volumes: list[str]) -> int | None:
    """The generation to go back to, if a resize waits for confirmation."""
    start = f"{uuid}.back-to-"
    return next((int(n.removeprefix(start)) for n in volumes if n.startswith(start)), None)


def moved(uuid: str) -> str:
    """An empty volume that says: the files here are only kept for the way back."""
    return f"{uuid}.moved"


def coming(uuid: str) -> str:
    """An empty volume that says: not all of the files here have come yet from another host."""
    return f"{uuid}.coming"


def probe(uuid: str, nonce: str) -> str:
    """An empty volume that shows whether another host sees what is made here."""
    return f"{uuid}.probe-{nonce}"


class Base(msgspec.Struct, frozen=True):
    """A cached image on a host. Each upload has a name of its own, which tells all there is to
    know of it, and counts only when its seal is there: an empty volume made at the end.
    """

    name: str
    format: str
    virtual_bytes: int

    @property
    def seal(self) -> str:
        """The name of its seal."""
        return f"{self.name}{_SEAL}"


def new_base(image: str, upload: str, form: str, virtual_bytes: int) -> Base:
    """The name of one upload of an image."""
    return Base(f"base-{image}.{upload}.{form}.{virtual_bytes}", form, virtual_bytes)


def sealed(image: str, volumes: list[str]) -> Base | None:
    """The complete upload of an image among a pool's volumes."""
    start = f"base-{image}."
    for name in sorted(volumes):
        if name.startswith(start) and name.endswith(_SEAL):
            found = base_of(name.removesuffix(_SEAL))
            if found is not None and found.name in volumes:
                return found
    return None


def boots(uuid: str, base: Base) -> str:
    """An empty volume that says: this server boots the cached image directly, as a kernel."""
    return f"{uuid}{_BOOTS}{base.name}"


def booted(name: str) -> str | None:
    """The cached image that such a volume speaks of."""
    return name.partition(_BOOTS)[2] or None


def unused(base: Base, since: float) -> str:
    """An empty volume that says: since then no guest has stood on the cached image."""
    return f"{base.name}{_UNUSED}{int(since)}"


def unused_since(base: Base, volumes: Iterable[str]) -> dict[str, int]:
    """The volumes that say so, and since when."""
    start = f"{base.name}{_UNUSED}"
    return {name: int(name.removeprefix(start)) for name in volumes if name.startswith(start)}


def base_of(name: str) -> Base | None:
    """The cached image that a volume's name is of."""
    match = _BASE.match(name)
    return Base(name, match[1], int(match[2])) if match else None


class Mark(msgspec.Struct, frozen=True):
    """What we note in a domain's own description: it lives and moves with it."""

    token: str = ""
    """The last run that defined it."""
    disk: int = 1
    """The generation of its root disk."""
    is_rescued: bool = False

    def xml(self) -> Xml.Element:
        """As the `metadata` element has it."""
        fields = {"token": self.token, "disk": str(self.disk)}
        fields["rescued"] = "yes" if self.is_rescued else "no"
        return Xml.Element(f"{{{NAMESPACE}}}server", fields)

    def by(self, token: str) -> "Mark":
        """The same, noted by this run."""
        return replace(self, token=token)


def mark_of(description: str) -> Mark | None:
    """The mark in a domain's XML; None if we did not make it."""
    found = Xml.fromstring(description).find(f"metadata/{{{NAMESPACE}}}server")  # noqa: S314
    if found is None:
        return None
    return Mark(
        found.get("token", ""),
        int(found.get("disk", "1")),
        found.get("rescued") == "yes",
    )
