"""Servers on whole machines: each is a node of a bare metal API, ours or an Ironic's.

The node is the memory of all that is under way: its `instance_uuid` says whose it is, its provision
state how far it is. So every call asks the node first, does the next thing, and answers `Wait`
until the node is where it should be. Cleaning afterwards is the node's own affair: it is offered
again when it is done.
"""

import math
from collections.abc import Awaitable
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

from siderite.compute.domain.driver_card import DriverCard
from siderite.compute.domain.outcome import Done
from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.outcome import Outcome
from siderite.compute.domain.outcome import Wait
from siderite.compute.domain.power import Power
from siderite.compute.drivers.baremetal_api import BaremetalApi
from siderite.compute.drivers.baremetal_api import NotNow
from siderite.compute.drivers.baremetal_api import Refused
from siderite.compute.drivers.baremetal_node import Node
from siderite.compute.drivers.baremetal_node import config_drive
from siderite.compute.drivers.baremetal_node import image_words
from siderite.compute.drivers.baremetal_node import offer
from siderite.compute.drivers.baremetal_node import reservation
from siderite.compute.drivers.contract import At
from siderite.compute.drivers.contract import Driver
from siderite.compute.drivers.contract import Guest
from siderite.compute.drivers.contract import Inventory
from siderite.core.ids import new_secret

_SOON_AVAILABLE = ("deleting", "cleaning", "clean wait")
"""A node that somebody has left is on its way through these, by itself."""
CARD = DriverCard("baremetal", frozenset({"rescue", "power_update"}))
AGAIN_IN_S = 1.0
BUSY_AGAIN_IN_S = 5.0
SOFT_OFF_S = 10
"""How long an Ironic waits for a system that was asked to shut down, before it can be asked again.
Siderite asks it again by itself, and pulls the plug when the time is over: it gets all there is.
"""
_OFFERED = "uuid,resource_class,traits,properties,provision_state,maintenance,instance_uuid"
_RUN = "siderite_run"
"""In a node's instance_info: the rebuild that was asked for, and the state that it began from."""
_RESET = "siderite_reset"
"""The same for a reboot: when the node's power was last changed by order, before this one. A
process that is killed right after the order finds another time there, and gives it no second time.
"""
_ASTRAY = ("rescue", "rescue failed", "unrescue failed")
"""Where a node is that runs a rescue system, or should have."""
_POWER = {"power on": Power.RUNNING, "power off": Power.SHUTDOWN}

Apis = Callable[[At], BaremetalApi]


def baremetal_driver(apis: Apis) -> Driver:
    """The driver; `apis` gives the API of a host."""
    servers = _Servers(apis)
    return Driver(card=CARD, life=servers, power=servers, rescue=servers)


class _Servers:
    """The contract's `Life`, `PowerSwitch` and `Rescue`."""

    def __init__(self, apis: Apis) -> None:
        self._apis = apis
        self._rebooted: set[str] = set()
        self._told: set[str] = set()

    # Life

    async def capacity(self, at: At) -> list[Inventory] | Wait | Failed:
        try:
            return [
                offer(node)
                async for node in self._apis(at).nodes(_OFFERED)
                if node.get("resource_class")
            ]
        except NotNow as why:
            return Wait(str(why), BUSY_AGAIN_IN_S)
        except Refused as why:
            return Failed(str(why))

    async def spawn(self, at: At, guest: Guest, token: str) -> Outcome:
        async def work(api: BaremetalApi, node: Node) -> Outcome:
            state, carried = node["provision_state"], node["instance_uuid"]
            if carried not in (None, guest.uuid):
                return Failed(f"node {node['uuid']} carries server {carried} already")
            if state == "available":
                await api.patch(node["uuid"], *reservation(node, guest))
                await api.provision(node["uuid"], "active", configdrive=config_drive(guest))
                return _under_way(node, "is being deployed")
            if carried is None and state in _SOON_AVAILABLE:
                return _under_way(node, f"is {state}")
            if carried is None:
                return Failed(f"node {node['uuid']} is {state}, not available")
            return await self._deployed(api, node, guest)

        return await self._with_node(at, guest, work)

    async def _deployed(self, api: BaremetalApi, node: Node, guest: Guest) -> Outcome:
        state = node["provision_state"]
        if state == "active":
            if guest.is_running:
                return Done()
            return await _switched(api, node, "power off")
        if "fail" in state or state == "error":
            return Failed(
                f"node {node['uuid']} is {state}: {node.get('last_error') or 'no reason'}"
            )
        return _under_way(node, f"is {state}")

    async def rebuild(self, at: At, guest: Guest, token: str) -> Outcome:
        async def work(api: BaremetalApi, node: Node) -> Outcome:
            if node["instance_uuid"] != guest.uuid:
                return Failed(f"server {guest.uuid} has no node any more")
            if (astray := await self._astray(api, node, token)) is not None:
                return astray
            run = node.get("instance_info", {}).get(_RUN) or {}
            began = node.get("provision_updated_at")
            if run.get("id") == token and run.get("since") != began:
                return await self._deployed(api, node, guest)
            if node["provision_state"] not in ("active", "deploy failed", "error"):
                return _under_way(node, f"is {node['provision_state']}")
            if run.get("id") != token:
                noted = {"id": token, "since": began}
                await api.patch(
                    node["uuid"],
                    ("add", f"/instance_info/{_RUN}", noted),
                    *(("add", f"/instance_info/{k}", v) for k, v in image_words(guest).items()),
                )
            await api.provision(node["uuid"], "rebuild", configdrive=config_drive(guest))
            return _under_way(node, "is being rebuilt")

        return await self._with_node(at, guest, work)

    async def leave(self, at: At, guest: Guest, to: At, token: str) -> Outcome:
        return await self.destroy(at, guest, token)

    async def destroy(self, at: At, guest: Guest, token: str) -> Outcome:
        async def work(api: BaremetalApi, node: Node) -> Outcome:
            state = node["provision_state"]
            if state == "available":
                await api.patch(
                    node["uuid"], ("remove", "/instance_uuid", None), ("add", "/instance_info", {})
                )
                return Done()
            if state in _SOON_AVAILABLE:
                return _under_way(node, f"is {state}")
            await api.provision(node["uuid"], "deleted")
            return _under_way(node, "is being torn down")

        return await self._with_node(at, guest, work, left=Done())

    async def state(self, at: At, guest: Guest) -> Power | None:
        try:
            node = await self._apis(at).node_of(guest.uuid)
        except (NotNow, Refused):
            return Power.NOSTATE
        return None if node is None else _power(node)

    async def states(self, at: At) -> Mapping[str, Power] | None:
        fields = "uuid,instance_uuid,power_state,maintenance"
        try:
            return {
                str(node["instance_uuid"]): _power(node)
                async for node in self._apis(at).nodes(fields, "&associated=true")
                if node["instance_uuid"]
            }
        except (NotNow, Refused):
            return None

    # Power

    async def on(self, at: At, guest: Guest, token: str) -> Outcome:
        async def work(api: BaremetalApi, node: Node) -> Outcome:
            astray = await self._astray(api, node, token)
            return astray or await _switched(api, node, "power on")

        return await self._with_own(at, guest, work)

    async def off(self, at: At, guest: Guest, token: str) -> Outcome:
        async def work(api: BaremetalApi, node: Node) -> Outcome:
            goes_to = node.get("target_power_state")
            if goes_to is None and node["power_state"] == "power off":
                self._told.discard(token)
                return Done()
            if goes_to == "power on" or (goes_to is not None and token in self._told):
                return _under_way(node, f"goes to {goes_to}")
            # Perhaps only its system was asked to: this overrules it.
            await api.power(node["uuid"], "power off")
            self._told.add(token)
            return _under_way(node, "is told to power off")

        return await self._with_own(at, guest, work)

    async def signal(self, at: At, guest: Guest, left_s: float, token: str) -> Outcome:
        async def work(api: BaremetalApi, node: Node) -> Outcome:
            if node["power_state"] != "power off" and node.get("target_power_state") is None:
                timeout_s = max(1, math.ceil(left_s)) if api.is_ours else SOFT_OFF_S
                await api.power(node["uuid"], "soft power off", timeout=timeout_s)
            return Done()

        return await self._with_own(at, guest, work)

    async def reset(self, at: At, guest: Guest, token: str) -> Outcome:
        async def work(api: BaremetalApi, node: Node) -> Outcome:
            if (astray := await self._astray(api, node, token)) is not None:
                return astray
            if node.get("target_power_state") is not None:
                return _under_way(node, f"goes to {node['target_power_state']}")
            if token not in self._rebooted and not _was_switched(node, token):
                if (node.get("instance_info") or {}).get(_RESET, {}).get("id") != token:
                    noted = {"id": token, "since": _last_switched(node)}
                    await api.patch(node["uuid"], ("add", f"/instance_info/{_RESET}", noted))
                await api.power(node["uuid"], "rebooting")
                self._rebooted.add(token)
                return _under_way(node, "is rebooting")
            if node["power_state"] != "power on":
                return await _switched(api, node, "power on")
            self._rebooted.discard(token)
            return Done()

        return await self._with_own(at, guest, work)

    # Rescue

    async def rescue(self, at: At, guest: Guest, image: str | None, token: str) -> Outcome:
        word = guest.admin_password or new_secret(12)
        return await self._led(at, guest, token, "rescue", rescue_password=word)

    async def unrescue(self, at: At, guest: Guest, token: str) -> Outcome:
        return await self._led(at, guest, token, "unrescue")

    async def _astray(self, api: BaremetalApi, node: Node, token: str) -> Outcome | None:
        """None once a node runs no rescue system: its server is not rescued, for that failed, or
        was given up.
        """
        state = node["provision_state"]
        if state in ("rescuing", "rescue wait", "unrescuing"):
            return _under_way(node, f"is {state}")
        if state not in _ASTRAY:
            self._told.discard(token)
            return None
        if token in self._told and state == "unrescue failed":
            return self._failed(node, token)
        await api.provision(node["uuid"], "unrescue")
        self._told.add(token)
        return _under_way(node, "is told to unrescue")

    def _failed(self, node: Node, token: str) -> Failed:
        self._told.discard(token)
        why = node.get("last_error") or "no reason"
        return Failed(f"node {node['uuid']} is {node['provision_state']}: {why}")

    async def _led(self, at: At, guest: Guest, token: str, verb: str, **more: Any) -> Outcome:
        async def work(api: BaremetalApi, node: Node) -> Outcome:
            state, was_told = node["provision_state"], token in self._told
            if state == ("rescue" if verb == "rescue" else "active"):
                self._told.discard(token)
                return Done()
            # What had failed before this was asked for is tried once more.
            may_try = state in _ASTRAY and not was_told
            if state.endswith("failed") and not may_try:
                return self._failed(node, token)
            if state != "active" and not may_try:
                return _under_way(node, f"is {state}")
            await api.provision(node["uuid"], verb, **more)
            self._told.add(token)
            return _under_way(node, f"is told to {verb}")

        return await self._with_own(at, guest, work)

    async def _with_own(
        self, at: At, guest: Guest, work: Callable[[BaremetalApi, Node], Awaitable[Outcome]]
    ) -> Outcome:
        """Do it with the server's node, if that is still the server's."""

        async def own(api: BaremetalApi, node: Node) -> Outcome:
            if node["instance_uuid"] != guest.uuid:
                return Failed(f"node {node['uuid']} does not carry server {guest.uuid} any more")
            return await work(api, node)

        return await self._with_node(at, guest, own)

    async def _with_node(
        self,
        at: At,
        guest: Guest,
        work: Callable[[BaremetalApi, Node], Awaitable[Outcome]],
        left: Outcome | None = None,
    ) -> Outcome:
        """`left` is the answer if there is no such node, or if it carries the server no more,
        whoever works on it.
        """
        api = self._apis(at)
        try:
            node = await api.node(guest.node)
            if node is None:
                gone = Failed(f"the bare metal API at {api.endpoint} has no node {guest.node}")
                return left or gone
            if left is not None and node["instance_uuid"] != guest.uuid:
                return left
            if node.get("maintenance"):
                why = node.get("maintenance_reason") or "no reason given"
                return Wait(f"node {node['uuid']} is in maintenance: {why}", 30.0)
            return await work(api, node)
        except NotNow as why:
            return Wait(str(why), BUSY_AGAIN_IN_S)
        except Refused as why:
            return Failed(str(why))


async def _switched(api: BaremetalApi, node: Node, to: str) -> Outcome:
    """Done when the node has this power; it is asked for once."""
    if node.get("target_power_state") is not None:
        return _under_way(node, f"goes to {node['target_power_state']}")
    if node["power_state"] == to:
        return Done()
    await api.power(node["uuid"], to)
    return _under_way(node, f"is told to {to}")


def _last_switched(node: Node) -> str | None:
    """When a change of the node's power was last begun, as Ironic and we note it."""
    said = (node.get("driver_internal_info") or {}).get("last_power_state_change")
    return None if said is None else str(said)


def _was_switched(node: Node, token: str) -> bool:
    """Whether the node took an order of power since this reboot was noted."""
    noted = (node.get("instance_info") or {}).get(_RESET) or {}
    return noted.get("id") == token and noted.get("since") != _last_switched(node)


def _power(node: Node) -> Power:
    if node.get("maintenance"):
        return Power.NOSTATE
    return _POWER.get(node.get("power_state") or "", Power.NOSTATE)


def _under_way(node: Node, what: str) -> Wait:
    return Wait(f"node {node['uuid']} {what}", AGAIN_IN_S)
