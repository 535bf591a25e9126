"""Talking to a node's ramdisk: ironic-python-agent, or what speaks as it does.

The ramdisk told us its address and has its token (both in `driver_internal_info`). It numbers its
commands and does not say what they were for: so the commands it has are noted before a step is
given, and the step's own afterwards. One that was given right before a crash is the new one among
its commands, and is not given twice.
"""

import asyncio
import ssl
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import Failed
from siderite.baremetal.domain.outcome import Outcome
from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.domain.secrets import hidden
from siderite.baremetal.domain.secrets import mask
from siderite.baremetal.domain.secrets import without
from siderite.baremetal.domain.steps import Family
from siderite.baremetal.domain.steps import Step
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.words import storable
from siderite.core.clock import now
from siderite.core.times import iso

FORGET: dict[str, Any] = dict.fromkeys(
    (
        "agent_url",
        "agent_secret_token",
        "agent_secret_token_pregenerated",
        "agent_last_heartbeat",
        "agent_version",
        "agent_verify_ca",
        "agent_status",
        "agent_status_message",
        "agent_command",
        "agent_rescue",
    )
)
"""What is known of a ramdisk, to be forgotten when another is about to boot."""

_COMMANDS = {
    Family.DEPLOY: "deploy.execute_deploy_step",
    Family.CLEAN: "clean.execute_clean_step",
    Family.SERVICE: "service.execute_service_step",
}
_COMMAND = "agent_command"
_AGAIN_S = 5.0
CALLS_S = 300.0
"""The longest that a ramdisk goes without a call, by what it is told when it looks its node up."""
_PARTS = 3
"""All of an answer may take so many times as long as the ramdisk may say nothing."""
_CONFLICT = 409
_LONGEST = 400


class AgentSilent(Exception):
    """The ramdisk does not answer, or not with sense; it may yet."""


def silent(at: Endpoint, why: AgentSilent) -> Wait:
    """It is asked again soon. One that has not called for long either may be gone, as when somebody
    has switched the machine off meanwhile: then the node waits for its call, and no longer than it
    waits for any.
    """
    info = at.driver_internal_info
    called = str(info.get("agent_last_heartbeat") or "") > iso(now() - CALLS_S)
    is_away = not (called and info.get("agent_url"))
    return Wait(str(why), _AGAIN_S, callback=is_away, is_away=is_away)


class Agent:
    """The commands of ramdisks."""

    def __init__(self, *, timeout_s: float = 30.0) -> None:
        self._timeout_s = timeout_s

    async def step(self, at: Endpoint, family: Family, step: Step, token: str) -> Outcome:
        """Have the ramdisk run a step, or tell how that run is going."""
        name = f"{step.interface}.{step.step}"
        order = _COMMANDS[family]
        try:
            commands = await self._commands(at)
            found, noted = _ours(at, commands, token, order)
            if not noted:
                known = [command.get("id") for command in commands]
                noting = {_COMMAND: {"token": token, "before": known}}
                return Wait(f"the ramdisk is to do {name}", 0.0, remember=noting)
            if found is None:
                params = {"step": _wire(step), "node": _node(at), "ports": []}
                found = await self._order(at, order, params)
        except AgentSilent as why:
            return silent(at, why)
        status = found.get("command_status")
        if status == "RUNNING":
            given = {_COMMAND: {"token": token, "id": found.get("id")}}
            return Wait(f"the ramdisk is busy with {name}", _AGAIN_S, callback=True, remember=given)
        if status == "SUCCEEDED":
            return Done()
        return Failed(f"the ramdisk says of {name}: {_error(found, *hidden(step.args))}")

    async def tell(self, at: Endpoint, command: str, **params: Any) -> None:
        """Give a command and wait for its end; AgentSilent if that did not work."""
        found = await self._order(at, command, params, wait=True)
        if found.get("command_status") not in ("SUCCEEDED", "RUNNING"):
            raise AgentSilent(f"the ramdisk says of {command}: {_error(found)}")

    async def finalize_rescue(self, at: Endpoint, hashed: str) -> str | None:
        """Have the ramdisk take a user's password, by its hash, and serve nobody but that user from
        now on; what it has against that, if it has.
        """
        params = {"rescue_password": hashed, "hashed": True}
        found = await self._order(at, "rescue.finalize_rescue", params, wait=True)
        if found.get("command_status") == "SUCCEEDED":
            return None
        return _error(found, hashed)

    async def _commands(self, at: Endpoint) -> list[dict[str, Any]]:
        answer = await self._ask(at, "GET", None, {})
        commands = answer.get("commands")
        known = commands if isinstance(commands, list) else []
        return [command for command in known if isinstance(command, dict)]

    async def _order(
        self, at: Endpoint, name: str, params: Mapping[str, Any], *, wait: bool = False
    ) -> dict[str, Any]:
        query = {"wait": "true" if wait else "false"}
        return await self._ask(at, "POST", {"name": name, "params": params}, query)

    async def _ask(
        self, at: Endpoint, method: str, body: Any, query: Mapping[str, str]
    ) -> dict[str, Any]:
        import httpx  # noqa: PLC0415 - simulated machines do without

        base = str(at.driver_internal_info.get("agent_url") or "").rstrip("/")
        if not base:
            raise AgentSilent("the ramdisk has not said yet where it is")
        token = at.driver_internal_info.get("agent_secret_token")
        if token:  # newer ones want it for every question
            query = {**query, "agent_token": str(token)}
        try:
            async with (
                httpx.AsyncClient(
                    verify=_trust(at), timeout=self._timeout_s, trust_env=False
                ) as client,
                # httpx would let one that says a little again and again go on for ever.
                asyncio.timeout(_PARTS * self._timeout_s),
            ):
                answer = await client.request(
                    method, f"{base}/v1/commands/", json=body, params=query
                )
        except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError, TimeoutError) as why:
            raise AgentSilent(
                f"the ramdisk at {base} does not answer ({type(why).__name__})"
            ) from why
        if answer.status_code == _CONFLICT:
            raise AgentSilent(f"the ramdisk at {base} is busy with something else")
        if answer.is_error:
            raise AgentSilent(f"the ramdisk at {base} answers HTTP {answer.status_code}")
        try:
            said = answer.json()
        except ValueError as why:
            raise AgentSilent(f"the ramdisk at {base} answers what is not JSON") from why
        return storable(said) if isinstance(said, dict) else {}


def _trust(at: Endpoint) -> ssl.SSLContext:
    """The ramdisk makes its own certificate, and sends it with its calls."""
    return _trust_in(str(at.driver_internal_info.get("agent_verify_ca") or ""))


@lru_cache(256)
def _trust_in(certificate: str) -> ssl.SSLContext:
    """Kept, for it takes many times as long to make as a call does."""
    import httpx  # noqa: PLC0415

    if not certificate:
        return httpx.create_ssl_context(trust_env=False)
    return ssl.create_default_context(cadata=certificate.encode("ascii", "replace").decode())


def _ours(
    at: Endpoint, commands: list[dict[str, Any]], token: str, order: str
) -> tuple[dict[str, Any] | None, bool]:
    """The command of this run, if it was given; and whether it was noted what was there before."""
    memory = at.driver_internal_info.get(_COMMAND)
    if not isinstance(memory, dict) or memory.get("token") != token:
        return None, False
    if "id" in memory:
        found = next((one for one in commands if one.get("id") == memory["id"]), None)
        return found, found is not None  # an agent that began anew knows nothing of it
    before = memory.get("before") or ()
    new = [one for one in commands if one.get("id") not in before]
    names = (order, order.rpartition(".")[2])  # as it was given, or without the extension
    return next((one for one in new if one.get("command_name") in names), None), True


def _wire(step: Step) -> dict[str, Any]:
    return {
        "interface": step.interface,
        "step": step.step,
        "priority": step.priority,
        "args": step.args,
    }


def _node(at: Endpoint) -> dict[str, Any]:
    """The node as a ramdisk needs it: no BMC, no secrets."""
    return {
        "uuid": at.node,
        "properties": dict(at.properties),
        "instance_info": {k: v for k, v in at.instance_info.items() if k != "configdrive"},
        "driver_info": {},
        "driver_internal_info": {},
    }


def _error(command: Mapping[str, Any], *secrets: str) -> str:
    """In the ramdisk's words, which may repeat what it was told, addresses of images included."""
    error = command.get("command_error")
    if isinstance(error, dict):
        error = error.get("details") or error.get("message") or error.get("error") or error
    text = str(error or command.get("command_status"))
    said: str = mask(without(text, secrets))
    return said[:_LONGEST]
