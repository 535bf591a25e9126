"""Network interfaces that come and go, and the password inside: both need the guest's help."""

import asyncio
import time
from typing import Any
from xml.etree import ElementTree as Xml

from siderite.compute.domain.outcome import Done
from siderite.compute.domain.outcome import Outcome
from siderite.compute.drivers.contract import CLIENT_PATIENCE_S
from siderite.compute.drivers.contract import At
from siderite.compute.drivers.contract import Guest
from siderite.compute.drivers.contract import Nic
from siderite.compute.drivers.libvirt import domains
from siderite.compute.drivers.libvirt.domain_xml import interface_xml
from siderite.compute.drivers.libvirt.hosts import Host
from siderite.compute.drivers.libvirt.library import library
from siderite.compute.drivers.libvirt.runs import Run
from siderite.compute.drivers.libvirt.site import Site
from siderite.compute.drivers.libvirt.trouble import Refused
from siderite.compute.drivers.libvirt.trouble import code

RELEASE_S = CLIENT_PATIENCE_S * 0.75
_ASK_AGAIN_S = 2.0


class LibvirtInterfaces:
    """The contract's `Interfaces` and `Password`."""

    def __init__(self, site: Site, *, release_s: float = RELEASE_S) -> None:
        self._site = site
        self._release_s = release_s

    async def attach(self, at: At, guest: Guest, nic: Nic, token: str) -> Outcome:
        async def work(host: Host, run: Run) -> Outcome:
            await host.call(_attach, host, guest, nic)
            return Done()

        return await self._site.outcome(at, token, f"attaching {nic.mac} to {guest.name}", work)

    async def detach(self, at: At, guest: Guest, nic: Nic, token: str) -> Outcome:
        async def work(host: Host, run: Run) -> Outcome:
            deadline = time.monotonic() + self._release_s
            while not await host.call(_detach, host, guest, nic):
                if time.monotonic() > deadline:
                    raise Refused(
                        f"the guest of server {guest.uuid} does not let go of {nic.mac}; stop the"
                        " server and detach it then"
                    )
                await asyncio.sleep(_ASK_AGAIN_S)
            return Done()

        return await self._site.outcome(at, token, f"detaching {nic.mac} from {guest.name}", work)

    async def set_password(self, at: At, guest: Guest, password: str, token: str) -> Outcome:
        async def work(host: Host, run: Run) -> Outcome:
            await host.call(_set_password, host, guest, password)
            return Done()

        return await self._site.outcome(at, token, f"setting a password in {guest.name}", work)


def _attach(connection: Any, host: Host, guest: Guest, nic: Nic) -> None:
    libvirt = library()
    domain = domains.must_find(connection, host, guest)
    flags = 0
    if not _has(domain, nic, libvirt.VIR_DOMAIN_XML_INACTIVE):
        flags |= libvirt.VIR_DOMAIN_AFFECT_CONFIG
    if domain.isActive() and not _has(domain, nic, 0):
        flags |= libvirt.VIR_DOMAIN_AFFECT_LIVE
    if flags:
        domain.attachDeviceFlags(interface_xml(nic, guest.image_properties), flags)


def _detach(connection: Any, host: Host, guest: Guest, nic: Nic) -> bool:
    """Ask for it; whether it is gone."""
    libvirt = library()
    domain = domains.must_find(connection, host, guest)
    text = interface_xml(nic, guest.image_properties)
    if domain.isActive() and _has(domain, nic, 0):
        try:
            domain.detachDeviceFlags(text, libvirt.VIR_DOMAIN_AFFECT_LIVE)
        except libvirt.libvirtError as why:
            # It was asked already and has not answered yet, or is gone this moment.
            if not code(why, "VIR_ERR_OPERATION_FAILED", "VIR_ERR_DEVICE_MISSING"):
                raise
        if domain.isActive() and _has(domain, nic, 0):
            return False
    # Only now: of a guest that does not let go of it, it is there after the next start too.
    if _has(domain, nic, libvirt.VIR_DOMAIN_XML_INACTIVE):
        domain.detachDeviceFlags(text, libvirt.VIR_DOMAIN_AFFECT_CONFIG)
    return True


def _has(domain: Any, nic: Nic, flags: int) -> bool:
    known = Xml.fromstring(domain.XMLDesc(flags)).findall("devices/interface/mac")  # noqa: S314
    return any(mac.get("address", "").lower() == nic.mac.lower() for mac in known)


def _set_password(connection: Any, host: Host, guest: Guest, password: str) -> None:
    domain = domains.must_find(connection, host, guest)
    user = guest.image_properties.get("os_admin_user")
    default = "Administrator" if guest.image_properties.get("os_type") == "windows" else "root"
    try:
        domain.setUserPassword(user or default, password, 0)
    except library().libvirtError as why:
        raise Refused(
            f"the guest of server {guest.uuid} did not take the password ({why});"
            " it needs the QEMU guest agent",
            elsewhere=False,
        ) from None
