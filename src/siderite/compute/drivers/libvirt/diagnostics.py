"""What a guest has used so far, in one call of libvirt's."""

import asyncio
from typing import Any
from xml.etree import ElementTree as Xml

from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.usage import DiskUsage
from siderite.compute.domain.usage import NicUsage
from siderite.compute.domain.usage import Usage
from siderite.compute.drivers.contract import At
from siderite.compute.drivers.contract import Guest
from siderite.compute.drivers.libvirt import domains
from siderite.compute.drivers.libvirt.hosts import Host
from siderite.compute.drivers.libvirt.library import library
from siderite.compute.drivers.libvirt.site import Site
from siderite.compute.drivers.libvirt.trouble import HostError
from siderite.compute.drivers.libvirt.trouble import Refused
from siderite.compute.drivers.libvirt.trouble import Unreachable

_TIMEOUT_S = 15.0
_STATES = {1: "running", 3: "paused", 4: "shutdown", 5: "shutdown", 6: "crashed", 7: "suspended"}
_KIB_PER_MIB = 1024


class LibvirtDiagnostics:
    """The contract's `Diagnostics`."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def diagnostics(self, at: At, guest: Guest) -> Usage | Failed:
        host = self._site.host(at)
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                return await host.call(_usage, host, guest)
        except (Unreachable, HostError, Refused) as why:
            return Failed(str(why))
        except TimeoutError:
            return Failed(f"host {host.name} ({host.uri}) does not answer")


def _usage(connection: Any, host: Host, guest: Guest) -> Usage:
    libvirt = library()
    domain = domains.must_find(connection, host, guest)
    wanted = (
        libvirt.VIR_DOMAIN_STATS_STATE | libvirt.VIR_DOMAIN_STATS_VCPU
        | libvirt.VIR_DOMAIN_STATS_BALLOON | libvirt.VIR_DOMAIN_STATS_BLOCK
        | libvirt.VIR_DOMAIN_STATS_INTERFACE
    )  # fmt: skip
    (_, found), *_ = connection.domainListGetStats([domain], wanted)
    root = Xml.fromstring(domain.XMLDesc(0))  # noqa: S314
    macs = {
        str(target.get("dev")): str(mac.get("address"))
        for nic in root.findall("devices/interface")
        if (target := nic.find("target")) is not None and (mac := nic.find("mac")) is not None
    }
    times = _each(found, "vcpu", ("time",), count="vcpu.maximum")
    return Usage(
        state=_STATES.get(found.get("state.state", 0), "pending"),
        driver="libvirt",
        hypervisor=root.get("type", "qemu"),
        cpu_times_ns=tuple(int(one["time"]) for one in times if one["time"] is not None),
        memory_max_mib=_mib(found.get("balloon.maximum")),
        memory_used_mib=_mib(found.get("balloon.rss") or found.get("balloon.current")),
        disks=tuple(_disk(one) for one in _each(found, "block", _DISK)),
        nics=tuple(_nic(one, macs) for one in _each(found, "net", _NIC)),
    )


_DISK = ("name", "rd.bytes", "rd.reqs", "wr.bytes", "wr.reqs", "errors")
_COUNTS = ("bytes", "pkts", "errs", "drop")
_NIC = ("name", *(f"{way}.{what}" for way in ("rx", "tx") for what in _COUNTS))


def _each(
    found: dict[str, Any], what: str, fields: tuple[str, ...], count: str | None = None
) -> list[dict[str, Any]]:
    total = int(found.get(count or f"{what}.count", 0))
    return [{name: found.get(f"{what}.{n}.{name}") for name in fields} for n in range(total)]


def _disk(one: dict[str, Any]) -> DiskUsage:
    return DiskUsage(*(one[name] for name in _DISK))


def _nic(one: dict[str, Any], macs: dict[str, str]) -> NicUsage:
    received, sent = (tuple(one[f"{way}.{what}"] for what in _COUNTS) for way in ("rx", "tx"))
    name = str(one["name"])
    return NicUsage(name, macs.get(name, ""), received, sent)


def _mib(kib: int | None) -> int | None:
    return None if kib is None else kib // _KIB_PER_MIB
