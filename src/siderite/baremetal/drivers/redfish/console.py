"""The serial line of a Redfish system, by whatever way its BMC says there is one.

Redfish itself carries no console: the system, or its manager, tells how else to get at it. Serial
over LAN (IPMI) is carried by this process, with the Redfish account unless `driver_info` names
another; SSH is the BMC's own, and its address is handed on.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from siderite.baremetal.domain.hardware import ConsoleInfo
from siderite.baremetal.domain.hardware import Refused
from siderite.baremetal.drivers.contract import Console
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.redfish.address import Address
from siderite.baremetal.drivers.redfish.lines import Lines
from siderite.baremetal.drivers.redfish.update_service import linked

_PORTS = {"IPMI": 623, "SSH": 22}
_REMEDY = (
    "Enable its serial console over IPMI or SSH in its own settings (it may want a licence), then"
    " try again; or set the node's console_interface to no-console."
)


class RedfishConsole:
    """Consoles of Redfish systems; `sol` is how serial over LAN is carried."""

    def __init__(self, lines: Lines, sol: Console) -> None:
        self._lines = lines
        self._sol = sol

    async def start(self, at: Endpoint) -> ConsoleInfo:
        """Have it reachable, by serial over LAN if the BMC has that."""
        ways = await self._lines.system(at, "console start", _ways)
        host, _ = Address.of(at.driver_info).reach
        if "IPMI" in ways:
            return await self._sol.start(_over_ipmi(at, host, ways["IPMI"]))
        if "SSH" in ways:
            shown = f"[{host}]" if ":" in host else host
            return ConsoleInfo("ssh", f"ssh://{shown}:{ways['SSH']}")
        raise Refused(at.bmc, "console start", "it offers no serial console", _REMEDY)

    async def stop(self, at: Endpoint) -> None:
        """Have it unreachable; one by SSH is the BMC's own."""
        await self._sol.stop(at)


def _over_ipmi(at: Endpoint, host: str, port: int) -> Endpoint:
    """The same BMC as ipmitool knows it."""
    own = {key: value for key, value in at.driver_info.items() if key.startswith("ipmi_")}
    info = {
        "ipmi_address": host,
        "ipmi_port": port,
        "ipmi_username": at.driver_info.get("redfish_username"),
        "ipmi_password": at.driver_info.get("redfish_password"),
        **own,
    }
    return msgspec.structs.replace(at, driver_info=info)


def _ways(system: Any) -> dict[str, int]:
    """The ways to the serial line that are switched on, and the port of each."""
    found = _told(system.json.get("SerialConsole"))
    for manager in () if found else linked(system, "managers"):
        found |= _listed(manager.json.get("SerialConsole"))
    return found


def _told(console: Any) -> dict[str, int]:
    """As a system tells: each way with whether it is on, and its port."""
    ways = {}
    for name, port in _PORTS.items():
        way = console.get(name) if isinstance(console, Mapping) else None
        if isinstance(way, Mapping) and way.get("ServiceEnabled"):
            given = way.get("Port")
            ways[name] = given if isinstance(given, int) else port
    return ways


def _listed(console: Any) -> dict[str, int]:
    """As a manager tells: all ways together are on or off, and have their usual ports."""
    if not isinstance(console, Mapping) or not console.get("ServiceEnabled"):
        return {}
    kinds = console.get("ConnectTypesSupported") or ()
    return {name: port for name, port in _PORTS.items() if name in kinds}
