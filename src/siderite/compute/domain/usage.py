"""What a guest has used so far, as its host counts it; None is what the host cannot tell. Pure."""

import msgspec


class DiskUsage(msgspec.Struct, frozen=True):
    """One disk."""

    name: str
    read_bytes: int | None = None
    read_requests: int | None = None
    write_bytes: int | None = None
    write_requests: int | None = None
    errors: int | None = None


class NicUsage(msgspec.Struct, frozen=True):
    """One network interface; octets, packets, errors and drops that came in and went out."""

    name: str
    mac: str
    received: tuple[int | None, int | None, int | None, int | None] = (None,) * 4
    sent: tuple[int | None, int | None, int | None, int | None] = (None,) * 4


class Usage(msgspec.Struct, frozen=True):
    """A guest's account."""

    state: str
    """`running`, `paused`, `shutdown` … as Nova calls them."""
    driver: str
    hypervisor: str
    uptime_s: int | None = None
    cpu_times_ns: tuple[int, ...] = ()
    memory_max_mib: int | None = None
    memory_used_mib: int | None = None
    disks: tuple[DiskUsage, ...] = ()
    nics: tuple[NicUsage, ...] = ()
