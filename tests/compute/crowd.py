"""Many hosts at once, written straight into the database."""

from typing import Any

from siderite.compute.domain.host import Host
from siderite.compute.store import HOSTS
from siderite.core.ids import new_uuid
from siderite.core.store import Op
from siderite.core.times import iso


def name(number: int) -> str:
    """What a host is called."""
    return f"h{number:05d}"


def offer(host: str, **fields: Any) -> Op:
    """A node that is there, and what is claimed of it."""
    columns = {
        "uuid": new_uuid(), "host": host, "node": host, "type": "QEMU", "version": 1,
        "address": "", "cpu_info": "{}", "resource_class": None, "traits": "", "vcpus": 8,
        "ram_mib": 8192, "disk_gib": 100, "vcpus_limit": 32, "ram_limit": 8192, "disk_limit": 100,
        "vcpus_used": 0, "ram_used": 0, "disk_used": 0, "servers": 0, "servers_limit": 1000,
        "is_available": 1, **fields,
    }  # fmt: skip
    marks = ", ".join("?" * len(columns))
    sql = f"INSERT INTO hypervisors ({', '.join(columns)}) VALUES ({marks})"
    return Op(sql, tuple(columns.values()))


def host(named: str, **fields: Any) -> Op:
    """A host that nobody has heard of yet."""
    made = {"created_at": iso(0), "name": named, "driver": "simulated", **fields}
    return HOSTS.insert(Host(uuid=new_uuid(), **made))
