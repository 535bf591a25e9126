"""Rescue by a ramdisk: it is booted, given the password for its user, and left to itself.

A ramdisk that has taken the password answers nobody any more, so that its user is alone with it.
If we are stopped before its answer is noted, nobody can tell whether it has: one that stays silent
and calls no more is booted anew. The password leaves us as a hash only.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import Failed
from siderite.baremetal.domain.outcome import Outcome
from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.domain.power import PowerTarget
from siderite.baremetal.domain.steps import Family
from siderite.baremetal.domain.steps import Step
from siderite.baremetal.drivers.agent.boot import Booter
from siderite.baremetal.drivers.agent.boot import gone
from siderite.baremetal.drivers.agent.client import Agent
from siderite.baremetal.drivers.agent.client import AgentSilent
from siderite.baremetal.drivers.agent.crypt import sha512_crypt
from siderite.baremetal.drivers.contract import Endpoint

MEMORY = "agent_rescue"
STEPS = {
    Family.RESCUE: [Step("rescue", "rescue", 100)],
    Family.UNRESCUE: [
        Step("rescue", "tear_down_agent", 100, switches=PowerTarget.OFF),
        Step("rescue", "boot_instance", 80),
    ],
}
AGAIN_S = 5.0
MOST_SILENT = 12
"""So often a ramdisk that calls no more is asked before it is booted anew."""
_KEYS = ("kernel", "ramdisk", "iso")


def driver_info(info: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same, with the ramdisk for rescues in the place of that for deploys, if it names one."""
    own = {f"deploy_{key}": info.get(f"rescue_{key}") for key in _KEYS}
    return {**info, **own} if any(own.values()) else info


class Rescue:
    """The step that brings a machine into its rescue system."""

    def __init__(self, booter: Booter, agent: Agent) -> None:
        self._booter = booter
        self._agent = agent

    async def rescue(self, at: Endpoint, step: Step, token: str) -> Outcome:
        """Boot the ramdisk, give it the password, and take out what it was booted from."""
        known = at.driver_internal_info.get(MEMORY)
        memory = known if isinstance(known, dict) and known.get("token") == token else None
        if memory is not None and memory.get("told"):
            waiting = await self._booter.out(at, token)
            return waiting or Done({"power_state": "power on"}, gone())
        own = msgspec.structs.replace(at, driver_info=driver_info(at.driver_info))
        booted = await self._booter.boot(own, token)
        if not isinstance(booted, Done):
            return booted
        if memory is None:
            return Wait("the ramdisk is to be given the rescue password", 0.0,
                        remember={**booted.remember, MEMORY: _asked(at, token, 0)})  # fmt: skip
        return await self._tell(at, token, memory)

    async def _tell(self, at: Endpoint, token: str, memory: Mapping[str, Any]) -> Outcome:
        password = at.instance_info.get("rescue_password")
        if not isinstance(password, str):
            return Failed("the rescue password is gone; ask for the rescue again")
        hashed = await asyncio.to_thread(sha512_crypt, password)
        try:
            failure = await self._agent.finalize_rescue(at, hashed)
        except AgentSilent as why:
            return self._silent(at, token, memory, str(why))
        if failure is not None:
            return Failed(f"the ramdisk did not take the rescue password: {failure}")
        return Wait("the ramdisk has the rescue password", 0.0,
                    remember={MEMORY: {"token": token, "told": True}})  # fmt: skip

    def _silent(self, at: Endpoint, token: str, memory: Mapping[str, Any], why: str) -> Wait:
        heard = memory.get("heard") != at.driver_internal_info.get("agent_last_heartbeat")
        silent = 0 if heard else int(memory.get("silent", 0)) + 1
        if silent < MOST_SILENT:
            return Wait(why, AGAIN_S, remember={MEMORY: _asked(at, token, silent)})
        reason = "the ramdisk fell silent while it was given the rescue password; it boots anew"
        return Wait(reason, 0.0, remember=gone())


def _asked(at: Endpoint, token: str, silent: int) -> dict[str, Any]:
    heard = at.driver_internal_info.get("agent_last_heartbeat")
    return {"token": token, "heard": heard, "silent": silent}
