"""Booting a node's ramdisk, and getting rid of it again.

Off, medium in, on, and then the ramdisk calls (a machine that must stay on is reset in place of off
and on): how far it has come is recorded on the node
(`driver_internal_info.ramdisk`) before the next part begins, so that a crash repeats nothing that
matters. With virtual media the BMC is given an ISO image; without, the machine boots by network and
asks our iPXE address, which reads the same record.
"""

import secrets
from collections.abc import Mapping
from typing import Any

from siderite.baremetal.domain.hardware import BootDevice
from siderite.baremetal.domain.hardware import MediaDevice
from siderite.baremetal.domain.hardware import Refused
from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import Outcome
from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.drivers.agent.client import FORGET
from siderite.baremetal.drivers.agent.ramdisks import Ramdisks
from siderite.baremetal.drivers.bmc import PowerOrder
from siderite.baremetal.drivers.contract import BootDevices
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.contract import VirtualMedia
from siderite.baremetal.drivers.switch import MEMORY as RESET
from siderite.baremetal.drivers.switch import Switch

MEMORY = "ramdisk"
SILENT_S = 5.0


class Booter:
    """Boots ramdisks over a BMC."""

    def __init__(
        self,
        switch: Switch,
        boot_devices: BootDevices,
        media: VirtualMedia | None,
        ramdisks: Ramdisks,
    ) -> None:
        self._switch = switch
        self._boot_devices = boot_devices
        self._media = media
        self.ramdisks = ramdisks

    def uses_media(self, at: Endpoint) -> bool:
        """Whether the node boots from virtual media, not by network."""
        return self._media is not None and at.interfaces.get("boot") != "ipxe"

    async def boot(
        self, at: Endpoint, token: str, iso: str = "", *, inspects: bool = False
    ) -> Outcome:
        """Boot the ramdisk (or this ISO image), and wait until it calls (or has power). One that
        inspects sends what it found, which ends the wait from outside.
        """
        memory = _memory(at, token)
        if memory is None:
            fresh = {"token": token, "phase": "off", "secret": secrets.token_urlsafe(18)}
            reason = "the machine is to go off before it boots the ramdisk"
            return Wait(reason, 0.0, remember={**FORGET, MEMORY: fresh})
        if memory["phase"] == "off":
            waiting = await self._switch.toward(at, PowerOrder.OFF, token)
            if waiting is not None:
                return waiting
            record = await self._prepare(at, memory["secret"], iso, inspects=inspects)
            after = {**memory, **record, "phase": "on"}
            return Wait("the machine is to boot the ramdisk", 0.0, remember={MEMORY: after})
        called = at.driver_internal_info.get("agent_url") and at.driver_internal_info.get(
            "agent_last_heartbeat"
        )
        if inspects or not called:
            waiting = await self._switch.start(at, f"{token}/on")
            if waiting is not None:
                return waiting
            if not iso:
                return Wait("the ramdisk boots and will call", SILENT_S, callback=True)
        return Done({"power_state": "power on"}, {MEMORY: {**memory, "phase": "up"}})

    async def _prepare(
        self, at: Endpoint, secret: str, iso: str, *, inspects: bool
    ) -> dict[str, Any]:
        if self._media is None or not self.uses_media(at):
            pair = await self.ramdisks.pair(at, secret, inspects=inspects)
            await self._boot_devices.set_boot_device(at, BootDevice.PXE, persistent=False)
            return {"boot": pair}
        url = await (
            self.ramdisks.given_iso(at, iso, secret)
            if iso
            else self.ramdisks.iso(at, secret, inspects=inspects)
        )
        await self._media.insert(at, MediaDevice.CDROM, url)
        await self._boot_devices.set_boot_device(at, BootDevice.CDROM, persistent=False)
        return {}

    async def off(self, at: Endpoint, token: str) -> Wait | None:
        """Switch the machine off, medium out; None once that is so."""
        waiting = await self._switch.toward(at, PowerOrder.OFF, f"{token}/off")
        if waiting is None:
            await self._empty(at)
        return waiting

    async def give_up(self, at: Endpoint, token: str) -> None:
        """Order the machine off and take its medium out, without waiting for it to follow."""
        await self._switch.toward(at, PowerOrder.OFF, f"{token}/off")
        await self._empty(at)

    async def disk(self, at: Endpoint, token: str) -> Outcome:
        """Have the machine, which is off, boot from its disk, now and later."""
        if at.driver_internal_info.get("disk_boot") != token:
            await self._empty(at)
            await self._from_disk(at)
            return Wait("the machine is to boot its disk", 0.0, remember={"disk_boot": token})
        waiting = await self._switch.start(at, token)
        return waiting or Done({"power_state": "power on"}, {"disk_boot": None, RESET: None})

    async def _from_disk(self, at: Endpoint) -> None:
        """For good; where the BMC knows no such thing, for the next start."""
        try:
            await self._boot_devices.set_boot_device(at, BootDevice.DISK, persistent=True)
        except Refused:
            await self._boot_devices.set_boot_device(at, BootDevice.DISK, persistent=False)

    async def _empty(self, at: Endpoint) -> None:
        if self._media is not None and self.uses_media(at):
            await self._media.eject(at, MediaDevice.CDROM)
        await self.ramdisks.remove(at.node)


def gone() -> dict[str, Any]:
    """What to remember once there is no ramdisk any more."""
    return {**FORGET, MEMORY: None, RESET: None}


def belongs(at: Endpoint, token: str) -> bool:
    """Whether the node's ramdisk was booted by the work that this token is of."""
    memory = at.driver_internal_info.get(MEMORY)
    return isinstance(memory, dict) and _work(str(memory.get("token"))) == _work(token)


def _work(token: str) -> str:
    return token.rpartition("/")[0]


def _memory(at: Endpoint, token: str) -> Mapping[str, Any] | None:
    memory = at.driver_internal_info.get(MEMORY)
    return memory if isinstance(memory, dict) and memory.get("token") == token else None
