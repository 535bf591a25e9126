"""Real virtual machines, on any host with libvirt and QEMU; nothing of ours is installed there.

A host's options, all with defaults: `pool` and `pool_path` (where disks are), `virt_type` (`kvm` or
`qemu`), `vnc_listen` (address that screens listen on), `migration_address` (where other hosts send
guests to), `address` (as shown), `keyfile` and `known_hosts` (over ssh), `pkipath` (over TLS).

    library.py  hosts.py  dialling.py  runs.py  trouble.py     connections, runs by token, errors
    site.py  volumes.py  domains.py  copying.py   images, storage pools, domains, between two hosts
    cache.py                                      images that no guest needs any more
    names.py  domain_xml.py  config_drive.py  iso.py  image_file.py          pure
    life.py  power.py  rescue.py  resize.py  migrate.py  snapshot.py
    console.py  interfaces.py  watch.py  capacity.py  diagnostics.py  stalls.py     the contract
"""

from pathlib import Path

from siderite.compute.domain.driver_card import DriverCard
from siderite.compute.drivers.contract import Driver
from siderite.compute.drivers.contract import ImageFiles
from siderite.compute.drivers.libvirt.cache import LibvirtCache
from siderite.compute.drivers.libvirt.console import LibvirtConsole
from siderite.compute.drivers.libvirt.diagnostics import LibvirtDiagnostics
from siderite.compute.drivers.libvirt.interfaces import LibvirtInterfaces
from siderite.compute.drivers.libvirt.life import LibvirtLife
from siderite.compute.drivers.libvirt.migrate import LibvirtLiveMigrate
from siderite.compute.drivers.libvirt.power import LibvirtPower
from siderite.compute.drivers.libvirt.rescue import LibvirtRescue
from siderite.compute.drivers.libvirt.resize import LibvirtResize
from siderite.compute.drivers.libvirt.site import Site
from siderite.compute.drivers.libvirt.snapshot import LibvirtSnapshot
from siderite.compute.drivers.libvirt.stalls import LibvirtStalls
from siderite.compute.drivers.libvirt.watch import LibvirtWatch

CARD = DriverCard(
    "libvirt",
    frozenset(
        {
            "pause", "suspend", "rescue", "resize", "live_migrate", "snapshot", "console_log",
            "console", "interfaces", "password", "crash_dump",
            "diagnostics", "preserve_ephemeral",
        }
    ),
    frozenset(
        {
            "pool", "pool_path", "virt_type", "vnc_listen", "migration_address", "migration_tls",
            "address",
            "keyfile", "known_hosts", "pkipath",
        }
    ),
)  # fmt: skip


def libvirt_driver(images: ImageFiles, scratch: Path) -> Driver:
    """The driver; `scratch` is a folder for snapshots on their way to the image service."""
    site = Site(images, scratch)
    power = LibvirtPower(site)
    console = LibvirtConsole(site)
    interfaces = LibvirtInterfaces(site)
    return Driver(
        card=CARD,
        life=LibvirtLife(site),
        power=power,
        pause=power,
        suspend=power,
        rescue=LibvirtRescue(site),
        resize=LibvirtResize(site),
        live_migrate=LibvirtLiveMigrate(site),
        snapshot=LibvirtSnapshot(site),
        console_log=console,
        console=console,
        interfaces=interfaces,
        password=interfaces,
        crash_dump=power,
        diagnostics=LibvirtDiagnostics(site),
        cache=LibvirtCache(site),
        stalls=LibvirtStalls(site),
        watch=LibvirtWatch(site),
        close=site.close,
        knows_all=True,
    )


__all__ = ["CARD", "libvirt_driver"]
