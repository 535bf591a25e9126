"""What a host offers, and what its domains are made for. Blocking; called in a host's threads."""

import json
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary
from xml.etree import ElementTree as Xml

from siderite.compute.drivers.contract import Inventory
from siderite.compute.drivers.libvirt.domain_xml import HostTraits
from siderite.compute.drivers.libvirt.hosts import Host
from siderite.compute.drivers.libvirt.library import library
from siderite.compute.drivers.libvirt.volumes import Pool

_VIRTUALISATION = {"vmx", "svm"}
_seen: WeakKeyDictionary[Any, HostTraits] = WeakKeyDictionary()


def traits(connection: Any, host: Host) -> HostTraits:
    """Architecture and acceleration; looked up once per connection."""
    known = _seen.get(connection)
    if known is None:
        known = _seen[connection] = _traits(connection, host)
    return known


def _traits(connection: Any, host: Host) -> HostTraits:
    capabilities = Xml.fromstring(connection.getCapabilities())  # noqa: S314
    arch = capabilities.findtext("host/cpu/arch") or "x86_64"
    kinds = {
        domain.get("type")
        for guest in capabilities.findall("guest")
        for domain in guest.findall("arch/domain")
    }
    wanted = host.options.get("virt_type")
    has_kvm = wanted == "kvm" or (
        wanted is None and "kvm" in kinds and _has_virtualisation(connection, capabilities, arch)
    )
    return HostTraits(arch, has_kvm, host.options.get("vnc_listen", "127.0.0.1"))


def _has_virtualisation(connection: Any, capabilities: Xml.Element, arch: str) -> bool:
    """/dev/kvm alone says little: some machines offer it in software, slower than no KVM at all."""
    if arch != "x86_64":
        return True
    cpu = capabilities.find("host/cpu")
    if cpu is None:
        return False
    libvirt = library()
    everything = libvirt.VIR_CONNECT_BASELINE_CPU_EXPAND_FEATURES
    try:
        expanded = connection.baselineCPU([Xml.tostring(cpu, encoding="unicode")], everything)
        features = Xml.fromstring(expanded).findall("feature")  # noqa: S314
    except libvirt.libvirtError:
        features = []
    features += cpu.findall("feature")
    return any(feature.get("name") in _VIRTUALISATION for feature in features)


def inventory(connection: Any, host: Host) -> Inventory:
    """What the host offers now."""
    model, memory_mib, cpus, _, numa, sockets, cores, threads = connection.getInfo()
    capacity, _ = Pool(connection, host.options).info()
    found = traits(connection, host)
    topology = {"cells": numa, "sockets": sockets, "cores": cores, "threads": threads}
    return Inventory(
        node=connection.getHostname(),
        hypervisor_type=connection.getType(),
        hypervisor_version=connection.getVersion(),
        vcpus=cpus,
        ram_mib=memory_mib,
        disk_gib=capacity >> 30,
        traits=frozenset({"COMPUTE_ACCELERATOR_KVM"} if found.has_kvm else ()),
        address=host.options.get("address") or urlsplit(host.uri).hostname or "127.0.0.1",
        cpu_info=json.dumps({"arch": found.arch, "model": model, "topology": topology}),
    )
