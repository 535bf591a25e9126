"""A machine of paper behind a Redfish BMC: it follows at once, and notes what it starts from.

It is no server of its own, but stands behind `redfish_front`, in the place of sushy-emulator and a
virtual machine, where tests ask so often that these would take long.
"""

import json
from typing import Any

import httpx

SYSTEM = "/redfish/v1/Systems/1"
MANAGER = "/redfish/v1/Managers/1"
CHASSIS = "/redfish/v1/Chassis/1"
_ADAPTERS = f"{CHASSIS}/NetworkAdapters"
ADAPTER = f"{_ADAPTERS}/Slot1"
UPDATE = "/redfish/v1/UpdateService"
_FLASH = f"{UPDATE}/Actions/UpdateService.SimpleUpdate"
MEDIA = f"{SYSTEM}/VirtualMedia"
CD = f"{MEDIA}/Cd"
CD_BESIDE = f"{MEDIA}/Cd2"
BIOS = f"{SYSTEM}/Bios"
_SETTINGS = f"{BIOS}/Settings"


class Paper:
    """One system with two CD drives, one BIOS setting, and firmware in three parts.

    An image's name says what is in it: `bios-2.0.bin` is version 2.0 for the BIOS. The BMC has its
    own at once, the others have theirs when the machine starts.
    """

    def __init__(self) -> None:
        self.is_on = False
        self.image: str | None = None
        self.image_beside: str | None = None
        """What is in its other CD drive, which can only be emptied."""
        self.starts_from = "None"
        self.mode = "Legacy"
        self.settings = {"Speed": "Slow"}
        self.post = 0
        """How often its BIOS settings are read during a start until it has taken new ones; one that
        goes off before has not.
        """
        self.refuses_more = 0
        """With which status it refuses settings while it has others to take, if it does."""
        self.shows_image = True
        self.tells_resets = True
        """It says when it was last reset."""
        self.deaf = 0
        """How many orders of power it takes and does not follow."""
        self.starts: list[str] = []
        """What it started from, each time: an image's address, or `disk`."""
        self.versions = {"bios": "1.0", "bmc": "1.0", "nic": "1.0"}
        self.flashed: list[dict[str, Any]] = []
        """What it was told to flash, each time."""
        self.wants_targets = False
        self._flashed: dict[str, str] = {}
        self._pending: dict[str, Any] = {}
        self._starting = 0

    def close(self) -> None:
        """There is nothing to let go of."""

    def request(
        self, method: str, path: str, *, content: bytes, headers: dict[str, str]
    ) -> httpx.Response:
        """One request, as httpx answers it."""
        place = path.rstrip("/")
        if method == "GET":
            if place == BIOS:
                self._take_settings()
            page = self._pages().get(place)
            status = 404 if page is None else 200
            return httpx.Response(status, json={"@odata.id": place, **(page or {})})
        body = json.loads(content) if content else {}
        if place == _FLASH:
            return self._flash(body)
        match method, place.removeprefix(SYSTEM):
            case "POST", "/Reset":
                self._reset(body["ResetType"])
            case "POST", "/VirtualMedia/Cd/Insert":
                if self.image is not None:
                    return httpx.Response(400, json={"error": {"message": "it is not empty"}})
                self.image = body["Image"]
            case "POST", "/VirtualMedia/Cd/Eject":
                self.image = None
            case "POST", "/VirtualMedia/Cd2/Eject":
                self.image_beside = None
            case "PATCH", "":
                boot = body["Boot"]
                self.starts_from = boot.get("BootSourceOverrideTarget", self.starts_from)
                self.mode = boot.get("BootSourceOverrideMode", self.mode)
            case "PATCH", "/Bios/Settings":
                if self._pending and self.refuses_more:
                    message = {"error": {"message": "settings are pending already"}}
                    return httpx.Response(self.refuses_more, json=message)
                self._pending |= body["Attributes"]
            case "POST", "/Bios/Reset":
                self._pending |= {"Speed": "Slow"}
        return httpx.Response(204)

    def _flash(self, body: dict[str, Any]) -> httpx.Response:
        if self.wants_targets and not body.get("Targets"):
            return httpx.Response(400, json={"error": {"message": "Targets is missing"}})
        self.flashed.append(body)
        part, _, version = body["ImageURI"].rpartition("/")[2].removesuffix(".bin").partition("-")
        (self.versions if part == "bmc" else self._flashed)[part] = version
        return httpx.Response(204)

    def _reset(self, kind: str) -> None:
        if self.deaf:
            self.deaf -= 1
            return
        if kind == "ForceOff":
            self.is_on = False
        elif kind == "ForceRestart" or not self.is_on:
            self.is_on, self._starting = True, self.post
            self.versions |= self._flashed
            medium = self.image if self.starts_from == "Cd" else None
            self.starts.append(medium or "disk")

    def _last_reset(self) -> str:
        """By a clock that stands still but for resets."""
        return f"1970-01-01T00:00:{len(self.starts):02}Z"

    def _take_settings(self) -> None:
        if not self.is_on:
            return
        if self._starting:
            self._starting -= 1
        elif self._pending:
            self.settings |= self._pending
            self._pending.clear()

    def _pages(self) -> dict[str, dict[str, Any]]:
        resets = ["On", "ForceOff", "ForceRestart"]
        shown = self.image if self.shows_image else None
        return {
            "/redfish/v1": {
                "Id": "Root", "Name": "Root", "RedfishVersion": "1.13.0",
                "Systems": {"@odata.id": "/redfish/v1/Systems"},
                "UpdateService": {"@odata.id": UPDATE},
            },
            UPDATE: {
                "Id": "Updates", "Name": "Updates",
                "Actions": {"#UpdateService.SimpleUpdate": {"target": _FLASH}},
            },
            MANAGER: {"Id": "1", "Name": "BMC", "FirmwareVersion": self.versions["bmc"]},
            CHASSIS: {
                "Id": "1", "Name": "Chassis", "ChassisType": "RackMount",
                "NetworkAdapters": {"@odata.id": _ADAPTERS},
            },
            _ADAPTERS: {
                "Name": "Adapters", "Members": [{"@odata.id": ADAPTER}], "Members@odata.count": 1,
            },
            ADAPTER: {
                "Id": "Slot1", "Name": "Adapter", "Manufacturer": "Paper", "Model": "A4",
                "SerialNumber": "7",
                "Controllers": [{"FirmwarePackageVersion": self.versions["nic"]}],
            },
            SYSTEM: {
                "Id": "1", "Name": "System", "PowerState": "On" if self.is_on else "Off",
                **({"LastResetTime": self._last_reset()} if self.tells_resets else {}),
                "Boot": {
                    "BootSourceOverrideTarget": self.starts_from,
                    "BootSourceOverrideEnabled": "Once", "BootSourceOverrideMode": self.mode,
                    "BootSourceOverrideTarget@Redfish.AllowableValues": ["None", "Hdd", "Cd"],
                },
                "Bios": {"@odata.id": BIOS}, "BiosVersion": self.versions["bios"],
                "Links": {
                    "ManagedBy": [{"@odata.id": MANAGER}], "Chassis": [{"@odata.id": CHASSIS}],
                },
                "VirtualMedia": {"@odata.id": MEDIA},
                "Actions": {"#ComputerSystem.Reset": {
                    "target": f"{SYSTEM}/Reset", "ResetType@Redfish.AllowableValues": resets,
                }},
            },
            MEDIA: {
                "Name": "Media", "Members": [{"@odata.id": CD}, {"@odata.id": CD_BESIDE}],
                "Members@odata.count": 2,
            },
            CD: {
                "Id": "Cd", "Name": "Cd", "MediaTypes": ["CD"], "Image": shown,
                "Inserted": shown is not None,
                "Actions": {
                    "#VirtualMedia.InsertMedia": {"target": f"{CD}/Insert"},
                    "#VirtualMedia.EjectMedia": {"target": f"{CD}/Eject"},
                },
            },
            CD_BESIDE: {
                "Id": "Cd2", "Name": "Cd2", "MediaTypes": ["CD"], "Image": self.image_beside,
                "Inserted": self.image_beside is not None,
                "Actions": {"#VirtualMedia.EjectMedia": {"target": f"{CD_BESIDE}/Eject"}},
            },
            BIOS: {
                "Id": "Bios", "Name": "Bios", "Attributes": self.settings,
                "@Redfish.Settings": {"SettingsObject": {"@odata.id": _SETTINGS}},
                "Actions": {"#Bios.ResetBios": {"target": f"{BIOS}/Reset"}},
            },
            _SETTINGS: {"Id": "Settings", "Name": "Settings", "Attributes": dict(self._pending)},
        }  # fmt: skip
