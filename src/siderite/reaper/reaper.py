"""Frees room for PENDING servers.

It hears of servers that found no host, takes them into its care one by one, oldest first, deletes
as few preemptible servers as its strategy says, and has the PENDING server built again. What it
cannot help becomes an error. It keeps nothing: killed at any moment, the next one (or another)
looks at what is there and goes on. Whom a server went for is written down with the server itself,
so that the limit of an hour holds for all reapers together, whenever they were started.
"""

import asyncio
import contextlib
import hashlib
import time
from collections.abc import Collection
from dataclasses import dataclass
from dataclasses import field
from datetime import UTC
from datetime import datetime
from datetime import timedelta
from typing import Any

import httpx

from siderite.core.log import get_logger
from siderite.reaper.api import Api
from siderite.reaper.api import Refused
from siderite.reaper.choose import STRATEGIES
from siderite.reaper.choose import Choice
from siderite.reaper.choose import Place
from siderite.reaper.choose import Room
from siderite.reaper.choose import Victim

log = get_logger("reaper")

CARE_S = 30
LOOK_S = 15.0
POLL_S = 0.2
PATIENCE_S = 120.0
TRIES = 3
LOST = 30
"""How often others may take the room that was freed before a server is given up."""
HOUR_S = 3600.0
NOT_FOUND, CONFLICT = 404, 409
PREEMPTIBLE = "preemptible"
GOES_FOR = "preempted_for"


@dataclass(frozen=True, slots=True)
class Rules:
    """How it goes about it."""

    name: str
    strategy: str = "strict"
    dry_run: bool = False
    per_project_and_hour: int = 0
    """How many servers may go for the servers of one project within an hour; 0: any number."""
    projects: frozenset[str] = frozenset()
    """Projects, by id, all of whose servers are preemptible."""


@dataclass
class Reaper:
    """One reaper; there may be several."""

    api: Api
    rules: Rules
    wake: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """For ever."""
        listening = asyncio.create_task(self._listen())
        try:
            while True:
                self.wake.clear()
                try:
                    await self.round()
                except (Refused, httpx.HTTPError) as why:
                    log.warning("cannot look for pending servers", error=str(why) or repr(why))
                    await asyncio.sleep(1.0)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        await self.wake.wait()
        finally:
            listening.cancel()

    async def _listen(self) -> None:
        after = 0
        while True:
            try:
                async for number in self.api.refused_placements(after):
                    after = number
                    self.wake.set()
            except (Refused, httpx.HTTPError) as why:
                log.info("lost the event stream", error=str(why) or repr(why))
                after = 0 if isinstance(why, Refused) else after
            await asyncio.sleep(1.0)

    async def round(self) -> int:
        """Look after every PENDING server, oldest first; how many there were."""
        pending = await self.api.pages("/servers/detail?all_tenants=1&status=PENDING", "servers")
        for server in sorted(pending, key=lambda one: (one["created"], one["id"])):
            try:
                await self.serve(server)
            except Refused as why:
                if why.status not in (NOT_FOUND, CONFLICT):
                    raise
                log.info("somebody else was faster", server=server["id"], why=str(why))
        return len(pending)

    async def serve(self, server: dict[str, Any]) -> None:
        """Find room for one server, or give it up."""
        tries = 0
        for _ in range(LOST):
            if not self.rules.dry_run:
                await self._care(server)
            choice = await self._choose(server)
            if self.rules.dry_run:
                print(_told(server, choice), flush=True)  # noqa: T201 - what was asked for
                return
            if choice is None:
                break
            if choice.victims and not await self._may_free(server, choice):
                log.warning("the limit of this hour is reached", project=server["tenant_id"])
                return
            await self._free(server, choice)
            await self.api.act(server["id"], "rebuild", {"imageRef": server["image"]["id"]})
            if await self._becomes(server) != "PENDING":
                return
            # Either somebody else has got the room, or it is not wanted there: that is a try.
            tries += await self._holds(choice.node, _room(server["flavor"]))
            if tries == TRIES:
                break
        await self.api.act(server["id"], "os-resetState", {"state": "error"})
        log.warning("no room can be freed: given up", server=server["id"])

    async def _care(self, server: dict[str, Any]) -> None:
        asked = {"keeper": self.rules.name, "seconds": CARE_S}
        await self.api.act(server["id"], "siderite-claimPending", asked)

    async def _choose(self, server: dict[str, Any]) -> Choice | None:
        refusals = (await self.api.ask("GET", f"/servers/{server['id']}"))["server"]["refusals"]
        nodes = {node for node, why in refusals.items() if why.startswith("without room")}
        # In this order: who goes in between is counted twice, not lost.
        victims = await self._victims()
        hosts = await self.api.pages("/os-hypervisors/detail?", "hypervisors")
        places = [
            Place(
                host["hypervisor_hostname"],
                _left(host["room"]),
                tuple(victims.get(host["hypervisor_hostname"], ())),
            )
            for host in hosts
            if host["hypervisor_hostname"] in nodes and host["state"] == "up"
        ]
        return STRATEGIES[self.rules.strategy](_room(server["flavor"]), places)

    async def _holds(self, node: str, need: Room) -> bool:
        """Whether a host has so much room now."""
        hosts = await self.api.pages("/os-hypervisors/detail?", "hypervisors")
        return any(
            _left(host["room"]).holds(need) for host in hosts if host["hypervisor_hostname"] == node
        )

    async def _victims(self) -> dict[str, list[Victim]]:
        """Preemptible servers by the host they are on."""
        found: dict[str, list[Victim]] = {}
        for one in await self.api.pages("/servers/detail?all_tenants=1", "servers"):
            node = one["OS-EXT-SRV-ATTR:hypervisor_hostname"]
            if (
                node is None
                or not is_preemptible(one, self.rules.projects)
                or one["status"] == "DELETED"
            ):
                continue
            victim = Victim(one["id"], one["name"], _room(one["flavor"]), one["created"])
            found.setdefault(node, []).append(victim)
        return found

    async def _may_free(self, server: dict[str, Any], choice: Choice) -> bool:
        """Whether so many more may go for this project. Those to go are marked first and counted
        then: of two reapers that do so at the same time at least one counts both.
        """
        limit = self.rules.per_project_and_hour
        if not limit:
            return True
        mark = mark_of(server["tenant_id"])
        for victim in choice.victims:
            body = {"metadata": {GOES_FOR: mark}}
            await self.api.ask("POST", f"/servers/{victim.uuid}/metadata", body)
        since = datetime.now(UTC) - timedelta(seconds=HOUR_S)
        path = f"/servers/detail?all_tenants=1&changes-since={since:%Y-%m-%dT%H:%M:%SZ}"
        recent = await self.api.pages(path, "servers")
        if sum(one["metadata"].get(GOES_FOR) == mark for one in recent) <= limit:
            return True
        for victim in choice.victims:
            with contextlib.suppress(Refused):
                await self.api.ask("DELETE", f"/servers/{victim.uuid}/metadata/{GOES_FOR}")
        return False

    async def _free(self, server: dict[str, Any], choice: Choice) -> None:
        for victim in choice.victims:
            log.info("goes for another", server=victim.uuid, goes_for=server["id"])
            with contextlib.suppress(Refused):
                await self.api.ask("DELETE", f"/servers/{victim.uuid}")
        deadline = time.monotonic() + PATIENCE_S
        for victim in choice.victims:
            await self._until_gone(victim.uuid, deadline)
            await self._care(server)

    async def _until_gone(self, uuid: str, deadline: float) -> None:
        while await self._is_there(uuid):
            if time.monotonic() > deadline:
                return
            await asyncio.sleep(POLL_S)

    async def _is_there(self, uuid: str) -> bool:
        try:
            return bool(await self.api.ask("GET", f"/servers/{uuid}"))
        except Refused as why:
            if why.status == NOT_FOUND:
                return False
            raise

    async def _becomes(self, server: dict[str, Any]) -> str:
        """What the server's building leads to."""
        deadline = time.monotonic() + PATIENCE_S
        status = "BUILD"
        while status == "BUILD" and time.monotonic() < deadline:
            await asyncio.sleep(POLL_S)
            shown = (await self.api.ask("GET", f"/servers/{server['id']}"))["server"]
            status = str(shown["status"])
        log.info("was built again", server=server["id"], status=status)
        return status


def mark_of(project: str) -> str:
    """What is written down with a server that goes: its owner need not know for whom."""
    return hashlib.sha256(project.encode()).hexdigest()[:16]


def is_preemptible(server: dict[str, Any], projects: Collection[str] = ()) -> bool:
    """By its project, its flavor's extra spec or its own metadata."""
    if server["tenant_id"] in projects:
        return True
    words = (
        server["flavor"].get("extra_specs", {}).get(PREEMPTIBLE, ""),
        server["metadata"].get(PREEMPTIBLE, ""),
    )
    return any(word.strip().lower() in ("true", "yes", "1") for word in words)


def _room(flavor: dict[str, Any]) -> Room:
    return Room(flavor["vcpus"], flavor["ram"], flavor["disk"] + flavor["ephemeral"])


def _left(room: dict[str, dict[str, int]]) -> Room:
    left = [room[what]["limit"] - room[what]["used"] for what in ("vcpus", "ram_mib", "disk_gib")]
    return Room(*left)


def _told(server: dict[str, Any], choice: Choice | None) -> str:
    what = f"{server['name']} ({server['id']})"
    if choice is None:
        return f"{what}: no room can be freed, it would be given up"
    if not choice.victims:
        return f"{what}: fits on {choice.node} now, it would be built there"
    names = ", ".join(f"{victim.name} ({victim.uuid})" for victim in choice.victims)
    return f"{what}: would go to {choice.node} in the place of {names}"
