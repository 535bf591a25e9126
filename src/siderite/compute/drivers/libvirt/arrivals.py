"""What is noted in the description of a guest that came by a live migration: from where, and that
it has not run since, if so. Blocking; called in a host's threads.

A guest that came paused has no hold of its disks until it runs. Older versions of QEMU die of it if
such a one is to be sent on, and all that it had in memory is gone.
"""

from contextlib import suppress
from typing import Any
from xml.etree import ElementTree as Xml

from siderite.compute.drivers.libvirt import names
from siderite.compute.drivers.libvirt.library import library
from siderite.compute.drivers.libvirt.trouble import code

_SENDS_ON = 10_000_000
"""The first version of QEMU that sends on a guest which has not run since it came."""


def note(arrived: Any, source: str, *, runs: bool) -> None:
    """Note from where a guest came, in its lasting description: that moves along with it, and then
    names another host than the one that it comes from. And whether it runs now: that is noted in
    what is only of the guest that is up.
    """
    libvirt = library()
    from_there = Xml.Element("arrived", {"from": source})
    _write(arrived, names.ARRIVED, from_there, libvirt.VIR_DOMAIN_AFFECT_CONFIG)
    with suppress(libvirt.libvirtError):  # it went down just now
        still = None if runs else Xml.Element("still")
        _write(arrived, names.STILL, still, libvirt.VIR_DOMAIN_AFFECT_LIVE)


def came_from(arrived: Any, source: str) -> bool:
    """Whether a guest came from this host, last."""
    noted = _read(arrived, names.ARRIVED, library().VIR_DOMAIN_AFFECT_CONFIG)
    return noted is not None and noted.get("from") == source


def runs(domain: Any) -> None:
    """A guest runs, whatever was noted."""
    libvirt = library()
    with suppress(libvirt.libvirtError):
        _write(domain, names.STILL, None, libvirt.VIR_DOMAIN_AFFECT_LIVE)


def can_be_sent_on(connection: Any, domain: Any) -> bool:
    """Whether a guest that is up survives that."""
    libvirt = library()
    if domain.state()[0] != libvirt.VIR_DOMAIN_PAUSED or connection.getVersion() >= _SENDS_ON:
        return True
    return _read(domain, names.STILL, libvirt.VIR_DOMAIN_AFFECT_LIVE) is None


def _write(domain: Any, about: str, what: Xml.Element | None, to: int) -> None:
    key = f"{names.PREFIX}-{about.split(':')[2]}"
    told = None if what is None else Xml.tostring(what, encoding="unicode")
    domain.setMetadata(library().VIR_DOMAIN_METADATA_ELEMENT, told, key, about, to)


def _read(domain: Any, about: str, of: int) -> Xml.Element | None:
    libvirt = library()
    try:
        text = domain.metadata(libvirt.VIR_DOMAIN_METADATA_ELEMENT, about, of)
    except libvirt.libvirtError as why:
        if code(why, "VIR_ERR_NO_DOMAIN_METADATA"):
            return None
        raise
    return Xml.fromstring(text)  # noqa: S314
