"""What an IPMI BMC knows of the inside of its machine: who made it, by its FRU data."""

from collections.abc import Mapping

from siderite.baremetal.domain.hardware import FirmwareComponent
from siderite.baremetal.domain.hardware import Found
from siderite.baremetal.domain.hardware import Json
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.ipmi.tool import IpmiTool

_VENDOR = {
    "manufacturer": ("Product Manufacturer", "Board Mfg"),
    "product_name": ("Product Name", "Board Product"),
    "serial_number": ("Product Serial", "Chassis Serial", "Board Serial"),
}
_UNKNOWN = (
    "IPMI tells who made a machine, not what is in it: processors, memory, disks and MAC addresses"
    " are not known. Inspect it with inspect_interface agent to have them."
)


class IpmiInside:
    """Inspection without a ramdisk."""

    def __init__(self, tool: IpmiTool) -> None:
        self._tool = tool

    async def inspect(self, at: Endpoint) -> tuple[Json, Found]:
        """Properties of the machine, and what else was found; what was not is said too."""
        fru = _lines(await self._tool.run(at, "inspection", "fru", "print", "0"))
        bmc = _lines(await self._tool.run(at, "inspection", "mc", "info"))
        vendor = {key: _first(fru, names) for key, names in _VENDOR.items()}
        inventory = {
            "interfaces": [],
            "system_vendor": vendor,
            "bmc_address": str(at.driver_info.get("ipmi_address", "")),
        }
        firmware = FirmwareComponent(
            "bmc", bmc.get("Firmware Revision"), vendor=bmc.get("Manufacturer Name")
        )
        found = Found(
            inventory=inventory,
            plugin_data={"fru": fru, "bmc": bmc, "unknown": _UNKNOWN},
            firmware=[firmware],
        )
        return {"vendor": vendor["manufacturer"]} if vendor["manufacturer"] else {}, found


def _lines(said: str) -> dict[str, str]:
    """What stands in lines such as ` Product Name : Iron 1000`."""
    found = {}
    for line in said.splitlines():
        name, colon, value = line.partition(" : ")
        if colon and value.strip():
            found[name.strip()] = value.strip()
    return found


def _first(known: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((known[name] for name in names if name in known), None)
