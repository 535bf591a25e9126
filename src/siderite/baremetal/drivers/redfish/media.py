"""Virtual media over Redfish: under the system where newer BMCs have them, else under its
manager.
"""

from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

from siderite.baremetal.domain.hardware import MediaDevice
from siderite.baremetal.domain.hardware import Medium
from siderite.baremetal.domain.hardware import Refused
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.contract import Task
from siderite.baremetal.drivers.redfish.lines import Lines
from siderite.baremetal.drivers.redfish.update_service import linked

_KINDS = {
    MediaDevice.CDROM: ("CD", "DVD"),
    MediaDevice.DISK: ("USBStick",),
    MediaDevice.FLOPPY: ("Floppy",),
}


class RedfishMedia:
    """Images that the machine takes for a disc."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    async def media(self, at: Endpoint) -> Sequence[Medium]:
        """The slots, and what is in them."""

        def read(system: Any) -> list[Medium]:
            found = []
            for slot in _slots(system):
                kind = next((k for k in _KINDS if _is(slot, k)), None)
                if kind is not None:
                    found.append(Medium(kind, slot.image or None, bool(slot.inserted)))
            return found

        return await self._lines.system(at, "its virtual media", read)

    async def insert(self, at: Endpoint, device: MediaDevice, image_url: str) -> Task | None:
        """Put an image into the slot of this kind, in the place of what is there."""
        doing = f"inserting an image as {device}"
        slots: list[Any] = []
        emptied: list[str] = []

        def make_room(system: Any) -> None:
            slots[:] = [slot for slot in _slots(system) if _is(slot, device)]
            emptied.clear()
            if not slots:
                raise Refused(
                    at.bmc, doing, "it has no virtual media of this kind",
                    "Boot the node by iPXE (boot_interface ipxe), or license the BMC for it.",
                )  # fmt: skip
            if any(slot.inserted and slot.image == image_url for slot in slots):
                slots.clear()  # nothing is left to do
            elif slots[0].inserted:
                emptied.append(slots[0].path)
                slots[0].eject_media()

        def put(system: Any) -> None:
            emptied.clear()
            if slots:
                slots[0].insert_media(image_url, inserted=True, write_protected=True)

        try:
            return await self._lines.order(at, doing, make_room, put)
        except Refused:
            if not emptied or await self._is_in(at, emptied[0]):
                raise
        # One that took it out by itself meanwhile refused what was done already.
        return await self._lines.order(at, doing, make_room, put)

    async def eject(self, at: Endpoint, device: MediaDevice) -> Task | None:
        """Take out what is in the slots of this kind."""

        # Slot by slot, for each has an answer of its own, and none may hide a refusal by another.
        tried: list[str] = []
        left: list[Any] = []

        def post(system: Any) -> None:
            mine = (slot for slot in _slots(system) if _is(slot, device) and slot.inserted)
            left[:] = [slot for slot in mine if slot.path not in tried]
            if left:
                slot = left.pop(0)
                tried.append(slot.path)
                slot.eject_media()

        last = None
        while True:
            known = len(tried)
            try:
                last = await self._lines.order(at, f"ejecting {device}", post) or last
            except Refused:
                # One that took it out by itself meanwhile refuses what is done already.
                if len(tried) == known or await self._is_in(at, tried[-1]):
                    raise
            if not left:
                return last

    async def _is_in(self, at: Endpoint, path: str) -> bool:
        """Whether something is in this slot."""

        def read(system: Any) -> bool:
            return any(slot.path == path and slot.inserted for slot in _slots(system))

        return await self._lines.system(at, "its virtual media", read)


def _slots(system: Any) -> Iterable[Any]:
    from sushy import exceptions  # noqa: PLC0415

    try:
        media = system.virtual_media
    except (exceptions.MissingAttributeError, exceptions.ResourceNotFoundError):
        slots = []
        for manager in linked(system, "managers"):
            try:
                slots += manager.virtual_media.get_members()
            except (exceptions.MissingAttributeError, exceptions.ResourceNotFoundError):
                continue
    else:
        slots = media.get_members()
    for slot in slots:
        slot.refresh(force=True)
    return slots


def _is(slot: Any, device: MediaDevice) -> bool:
    return any(str(kind.value) in _KINDS[device] for kind in slot.media_types or ())
