"""What a server's guest has used: in a standard form from 2.48 on, in libvirt's words below. Of one
that does not run there is nothing to tell.
"""

from typing import TYPE_CHECKING
from typing import Any

from siderite.compute.domain.usage import NicUsage
from siderite.compute.domain.usage import Usage
from siderite.compute.usecases.server.acting import check_place
from siderite.compute.usecases.server.kinds import Kind
from siderite.core import shape
from siderite.core.errors import Conflict
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import reply

if TYPE_CHECKING:
    from siderite.compute.web.service import ComputeService as Service

_STANDARD = 48
_RUNS = "running"
_COUNTED = Kind("", "get diagnostics", "", ability="diagnostics")
_WORDS = ("octets", "packets", "errors", "drop")


async def show(service: "Service", request: Request) -> Response:
    """GET /v2.1/servers/{id}/diagnostics"""
    server = await service.server(request)
    check_place(service.ctx, server, _COUNTED)
    used = await service.talk.diagnostics(server)
    if used.state != _RUNS:
        raise Conflict(
            f"Cannot 'get_diagnostics' instance {server.uuid} while it is in power state"
            f" {used.state}. It can while its guest runs."
        )
    if request.version < _STANDARD:
        return reply(_plain(used))
    return reply(_standard(used, has_config_drive=bool(server.config_drive)))


def _standard(used: Usage, *, has_config_drive: bool) -> dict[str, Any]:
    return {
        "state": used.state,
        "driver": used.driver,
        "hypervisor": used.hypervisor,
        "hypervisor_os": "linux",
        "uptime": used.uptime_s,
        "config_drive": has_config_drive,
        "num_cpus": len(used.cpu_times_ns),
        "num_disks": len(used.disks),
        "num_nics": len(used.nics),
        "memory_details": {"maximum": used.memory_max_mib, "used": used.memory_used_mib},
        "cpu_details": [
            {"id": number, "time": time, "utilisation": None}
            for number, time in enumerate(used.cpu_times_ns)
        ],
        "disk_details": [
            {
                "read_bytes": disk.read_bytes,
                "read_requests": disk.read_requests,
                "write_bytes": disk.write_bytes,
                "write_requests": disk.write_requests,
                "errors_count": disk.errors,
            }
            for disk in used.disks
        ],
        "nic_details": [_nic(nic) for nic in used.nics],
    }


def _nic(nic: NicUsage) -> dict[str, Any]:
    shown: dict[str, Any] = {"mac_address": nic.mac}
    for way, counts in (("rx", nic.received), ("tx", nic.sent)):
        shown |= {f"{way}_{word}": n for word, n in zip(_WORDS, counts, strict=True)}
        shown[f"{way}_rate"] = None
    return shown


def _plain(used: Usage) -> dict[str, Any]:
    """As Nova's libvirt driver put it before there was a standard."""
    shown: dict[str, Any] = {f"cpu{n}_time": time for n, time in enumerate(used.cpu_times_ns)}
    for disk in used.disks:
        shown |= {
            f"{disk.name}_read_req": disk.read_requests,
            f"{disk.name}_read": disk.read_bytes,
            f"{disk.name}_write_req": disk.write_requests,
            f"{disk.name}_write": disk.write_bytes,
            f"{disk.name}_errors": -1 if disk.errors is None else disk.errors,
        }
    for nic in used.nics:
        for way, counts in (("rx", nic.received), ("tx", nic.sent)):
            octets, packets, errors, drop = counts
            shown |= {
                f"{nic.name}_{way}": octets,
                f"{nic.name}_{way}_packets": packets,
                f"{nic.name}_{way}_errors": errors,
                f"{nic.name}_{way}_drop": drop,
            }
    if used.memory_max_mib is not None:
        shown["memory"] = used.memory_max_mib * 1024
    return shown


def form() -> shape.Json:
    """Its form: closed in the standard, numbers by libvirt's own names before it."""
    used = shape.both(Usage)
    standard = shape.wire(*(_standard(one, has_config_drive=True) for one in used))
    return {"anyOf": [standard, shape.record({}, others={"type": "integer"})]}


ROUTES = (Route("GET", "/v2.1/servers/{id}/diagnostics", show, "servers:admin_action", gives=form),)
