"""Whether BMCs and libvirt hosts can be reached from here, without the service: for `doctor`.

A BMC behind Redfish must take a connection, one behind IPMI must answer a ping of its protocol; a
libvirt host must open. Nothing is changed anywhere, and no password is used.
"""

import json
import socket
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

IPMI_PORT = 623
_WAIT_S = 3.0
_AT_ONCE = 50
_LIBVIRT_S = 20
_PING = bytes((0x06, 0x00, 0xFF, 0x06, 0x00, 0x00, 0x11, 0xBE, 0x80, 0x00, 0x00, 0x00))
"""RMCP's "are you there", which needs no login."""
_OPEN = "import libvirt, sys; libvirt.openReadOnly(sys.argv[1]).getLibVersion()"


@dataclass(frozen=True, slots=True)
class Bmc:
    """Where a node's BMC is."""

    node: str
    kind: str
    host: str
    port: int


def bmcs_of(nodes: Iterable[dict[str, Any]]) -> list[Bmc]:
    """The BMCs of nodes that have a real one."""
    found = []
    for node in nodes:
        name, info = node.get("name") or node["uuid"], node.get("driver_info") or {}
        if info.get("redfish_address"):
            text = str(info["redfish_address"])
            parts = urlsplit(text if "://" in text else f"https://{text}")
            port = parts.port or (80 if parts.scheme == "http" else 443)
            found.append(Bmc(name, "Redfish", parts.hostname or "", port))
        elif info.get("ipmi_address"):
            port = int(info.get("ipmi_port") or IPMI_PORT)
            found.append(Bmc(name, "IPMI", str(info["ipmi_address"]), port))
    return found


def lost(bmcs: list[Bmc]) -> list[tuple[Bmc, str]]:
    """Those that cannot be reached, and why."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        problems = pool.map(_problem, bmcs)
        return [(bmc, why) for bmc, why in zip(bmcs, problems, strict=True) if why]


def _problem(bmc: Bmc) -> str:
    try:
        if bmc.kind == "Redfish":
            socket.create_connection((bmc.host, bmc.port), _WAIT_S).close()
            return ""
        family, _, _, _, place = socket.getaddrinfo(bmc.host, bmc.port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as link:
            link.settimeout(_WAIT_S)
            link.connect(place)
            link.send(_PING)
            link.recv(64)
        return ""
    except (OSError, ValueError) as why:
        return str(why) or type(why).__name__


def libvirt_problem(uri: str) -> str:
    """Why a libvirt host cannot be opened; in a process of its own, as the library may hang."""
    try:
        done = subprocess.run(  # noqa: S603 - the URI is an argument, never a command
            [sys.executable, "-c", _OPEN, uri], capture_output=True, text=True, check=False,
            timeout=_LIBVIRT_S, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"no answer within {_LIBVIRT_S} s"
    lines = done.stderr.strip().splitlines()
    return "" if done.returncode == 0 else (lines[-1] if lines else "it cannot be opened")


def documents(rows: Iterable[Any]) -> list[dict[str, Any]]:
    """Rows that are one JSON text each."""
    return [json.loads(row[0]) for row in rows]
