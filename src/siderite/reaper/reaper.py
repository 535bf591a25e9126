"""Frees room for PENDING servers.

It hears of servers that found no host, takes them into its care, oldest first and several at once
where they do not compete (`turns`), and has each built again: if there is still no room, after
deleting as few preemptible servers as its strategy says. What it cannot help becomes an error. It
keeps nothing: killed at any moment, the next one (or another) looks at what is there and goes on.
Whom a server went for is written down with the server itself, so that administrators can see it
afterwards and the limit of an hour holds for all reapers together, whenever they were started.
"""

import asyncio
import contextlib
import time
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from typing import Any

import httpx

from siderite.core.log import get_logger
from siderite.reaper import asks
from siderite.reaper.api import Api
from siderite.reaper.api import Refused
from siderite.reaper.asks import NOT_FOUND
from siderite.reaper.choose import STRATEGIES
from siderite.reaper.choose import Choice
from siderite.reaper.choose import Place
from siderite.reaper.choose import Room
from siderite.reaper.choose import Victim
from siderite.reaper.choose import strict
from siderite.reaper.limit import may_free
from siderite.reaper.passed_over import PassedOver
from siderite.reaper.rules import Rules
from siderite.reaper.shown import CARRIES
from siderite.reaper.shown import FULL
from siderite.reaper.shown import LACKS
from siderite.reaper.shown import NODE
from siderite.reaper.shown import carried_by
from siderite.reaper.shown import comes
from siderite.reaper.shown import is_bare_metal
from siderite.reaper.shown import is_preemptible
from siderite.reaper.shown import left
from siderite.reaper.shown import room_of
from siderite.reaper.shown import size_of
from siderite.reaper.shown import told
from siderite.reaper.shown import wanted
from siderite.reaper.turns import Turns

log = get_logger("reaper")

CARE_S = 30
LOOK_S = 15.0
AGAIN_S = 1.0
POLL_S = 0.2
LONGEST_POLL_S = 5.0
PATIENCE_S = 120.0
GONE_S = 600.0
"""How long one that is to go may take, before its room is not counted on any more."""
STUCK_S = 3600.0
TRIES = 3
MAKING_ROOM_S = 6 * 3600.0
"""How long room is made on a node, cleaning included: compute gives up no server before that."""
LOST = 30
"""How often others may take the room that was freed before a server is given up."""
CONFLICT = 409
NEVER = (400, 403)
"""A rebuild that is refused so (its image is gone, the quota is exceeded) is refused again."""
GOES_FOR_SERVER = "preempted_for_server"


@dataclass
class Reaper:
    """One reaper; there may be several."""

    api: Api
    rules: Rules
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    _turns: Turns = field(default_factory=Turns)
    _is_news: bool = True
    _counting: asyncio.Lock = field(default_factory=asyncio.Lock)
    _later: PassedOver = field(default_factory=PassedOver)
    """Servers for which nothing can be done for the moment."""
    _stuck: PassedOver = field(default_factory=PassedOver)
    """Servers that were to go and did not, and nodes that were left and cannot be had: their room
    is not counted on until somebody may have mended them.
    """

    async def run(self) -> None:
        """For ever."""
        listening = asyncio.create_task(self._listen())
        waiting: list[dict[str, Any]] = []
        look_again = 0.0
        try:
            while True:
                self.wake.clear()
                try:
                    if self._is_news or time.monotonic() >= look_again:
                        self._is_news = False
                        waiting = await self._pending()
                        look_again = time.monotonic() + LOOK_S
                except Exception as why:
                    log.warning("cannot look for pending servers", error=str(why) or repr(why))
                    look_again = 0.0
                    await asyncio.sleep(AGAIN_S)
                waiting = self._begin(waiting)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(max(0.0, look_again - time.monotonic())):
                        await self.wake.wait()
        finally:
            listening.cancel()
            await self._turns.end()

    def _hear(self) -> None:
        self._is_news = True
        self.wake.set()

    async def _listen(self) -> None:
        after: int | None = None
        while True:
            try:
                if after is None:  # who waits by now is in the list
                    after = await self.api.newest_event()
                    self._hear()
                async for number in self.api.refused_placements(after):
                    after = number
                    self._hear()
            except Exception as why:
                log.info("lost the event stream", error=str(why) or repr(why))
                after = after if isinstance(why, httpx.HTTPError) else None
            await asyncio.sleep(AGAIN_S)

    async def round(self) -> int:
        """Look after every PENDING server, oldest first; how many there were."""
        pending = waiting = await self._pending()
        try:
            while waiting or self._turns.taken:
                self.wake.clear()
                waiting = self._begin(waiting)
                await self.wake.wait()
        finally:
            await self._turns.end()
        return len(pending)

    async def _pending(self) -> list[dict[str, Any]]:
        found = await self.api.pages(f"{asks.IN_ORDER}&status=PENDING", "servers")
        return [server for server in found if server["id"] not in self._later]

    def _begin(self, waiting: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Begin with those whose turn it is; the others."""
        return self._turns.begin(waiting, self._serve_safely, self.wake.set)

    async def _serve_safely(self, server: dict[str, Any]) -> None:
        """One that cannot be served must not keep others from it."""
        try:
            await self.serve(server)
        except Refused as why:
            if why.status in (NOT_FOUND, CONFLICT):
                log.info("somebody else was faster", server=server["id"], why=str(why))
                return
            log.error("cannot look after a server", server=server["id"], error=str(why))
            self._later.add(server["id"], LOOK_S)
        except Exception as why:
            error = str(why) or repr(why)
            log.warning("cannot look after a server", server=server["id"], error=error)

    async def serve(self, server: dict[str, Any]) -> None:
        """Find room for one server, or give it up."""
        tries, was_tried = 0, False
        turn = self._turns.of(server)
        for _ in range(LOST):
            if not self.rules.dry_run:
                await self._care(server)
            choice, going = await self._choose(server)
            if self.rules.dry_run:
                print(told(server, choice), flush=True)  # noqa: T201 - what was asked for
                return
            others = self._turns.chosen_by_others(turn) & turn.hosts
            if choice is None and (others or turn.may_be_left):
                self._later.add(server["id"], LOOK_S)
                return  # what others have chosen may yet be left to it
            if not was_tried and (choice is None or choice.victims):
                # Nobody goes, and it is not given up, before it is known that it may be built, and
                # that no host has room by now.
                was_tried = True
                if self._turns.is_early(turn):
                    self._is_news = True
                    return  # somebody before it is about to be built: it has its turn afterwards
            elif choice is None:
                break
            elif not await self._may_free(server, choice):
                log.warning("the limit of this hour is reached", project=server["tenant_id"])
                self._later.add(server["id"], LOOK_S)
                return
            elif not await self._free(server, choice, going):
                continue
            if await self._built(server) != "PENDING":
                return
            # Either somebody else has got the room, or it is not wanted there: that is a try.
            if choice is not None:
                tries += await self._holds(server, choice.node)
            if tries == TRIES:
                break
        await self._give_up(server, "no room can be freed")

    async def _give_up(self, server: dict[str, Any], why: str) -> None:
        await self._care(server)  # not one that somebody else has, or is building by now
        await self.api.act(server["id"], "os-resetState", {"state": "error"})
        log.warning("given up", server=server["id"], why=why)

    async def _care(self, server: dict[str, Any], **more: Any) -> None:
        asked = {"keeper": self.rules.name, "seconds": CARE_S, **more}
        await asks.care(self.api, server["id"], asked)

    async def _choose(self, server: dict[str, Any]) -> tuple[Choice | None, tuple[str, ...]]:
        """Who goes, and who is on the way out there already."""
        turn = self._turns.of(server)
        turn.chosen = None
        shown = (await self.api.ask("GET", f"/servers/{server['id']}"))["server"]
        turn.hosts = wanted(shown)
        need, places = await self._places(server, shown["refusals"])
        # Nothing is awaited from here on: what this one chooses, no other does.
        taken = self._turns.chosen_by_others(turn)
        places = [place for place in places if place.node not in taken]
        turn.may_be_left = any(place.is_kept for place in places)
        choice = STRATEGIES[self.rules.strategy](need, places)
        most = self.rules.per_project_and_hour
        if choice is not None and 0 < most < len(choice.victims):
            choice = strict(need, places)
        if choice is None or 0 < most < len(choice.victims):
            return None, ()
        turn.chosen = choice.node
        self.wake.set()
        place = next(one for one in places if one.node == choice.node)
        return choice, place.going

    async def _places(
        self, server: dict[str, Any], refusals: Mapping[str, str]
    ) -> tuple[Room, list[Place]]:
        """What the server needs, and the hosts that lack only that."""
        is_whole = is_bare_metal(server)
        nodes = {node for node, why in refusals.items() if why.startswith(LACKS)}
        nodes = {node for node in nodes if node not in self._stuck}
        # In this order: who goes in between is counted twice, not lost.
        there = await asks.there(self.api, nodes)
        hosts = await asks.hypervisors(self.api, nodes)
        found = []
        for host in hosts:
            node = host["hypervisor_hostname"]
            on_it = there[node]
            if (host["state"], host["status"]) != ("up", "enabled"):
                continue
            if refusals[node].startswith(CARRIES) and not on_it:
                continue  # somebody else's
            leaving = [one for one in on_it if one["OS-EXT-STS:task_state"] == "deleting"]
            going = [one for one in leaving if one["id"] not in self._stuck]
            free = NODE if not on_it else Room(0, 0, 0)
            kept = [one for one in host.get("kept", ()) if one["server"] != server["id"]]
            is_begun = len(kept) < len(host.get("kept", ()))
            if not is_whole:
                free = left(host["room"])
            for some in kept:
                free -= NODE if is_whole else room_of(some)
            for one in going:
                free += size_of(one, is_whole=is_whole)
            victims = [
                Victim(one["id"], one["name"], size_of(one, is_whole=is_whole), one["came"])
                for one in on_it
                if one not in leaving and self._may_go_for(one, server)
            ]
            uuids = tuple(str(one["id"]) for one in going)
            found.append(Place(node, free, tuple(victims), uuids, bool(kept), is_begun))
        return size_of(server, is_whole=is_whole), found

    def _may_go_for(self, one: dict[str, Any], server: dict[str, Any]) -> bool:
        """A preemptible server goes for those that are not."""
        projects = self.rules.projects
        if one["id"] in self._stuck:
            return False
        return is_preemptible(one, projects) and not is_preemptible(server, projects)

    async def _holds(self, server: dict[str, Any], node: str) -> bool:
        """Whether a host has room for the server now, whoever may have been faster."""
        need, places = await self._places(server, {node: FULL})
        return any(place.free.holds(need) and not place.going for place in places)

    async def _may_free(self, server: dict[str, Any], choice: Choice) -> bool:
        async with self._counting:
            return await may_free(self.api, self.rules.per_project_and_hour, server, choice)

    async def _free(self, server: dict[str, Any], choice: Choice, going: Collection[str]) -> bool:
        """Have them deleted, and wait for that; False if one of them may stay after all. That it
        begins is said first, and again before each: nobody goes for a server that was just given up
        or deleted, and it is not given up from the first one on.
        """
        making = {"making_room": True, "node": choice.node}
        until = time.monotonic() + MAKING_ROOM_S
        for victim in choice.victims:
            await self._care(server, **making)
            found = await self._found(victim.uuid)
            if found is not None and not self._may_go_for(found, server):
                return False
            log.info("goes for another", server=victim.uuid, goes_for=server["id"])
            with contextlib.suppress(Refused):  # in some states it takes none
                mark = {"metadata": {GOES_FOR_SERVER: server["id"]}}
                await self.api.ask("POST", f"/servers/{victim.uuid}/metadata", mark)
            try:
                await self.api.act(victim.uuid, "forceDelete")
            except Refused as why:
                if why.status not in (NOT_FOUND, CONFLICT):
                    raise
        await self._care(server, **making)
        deadline = time.monotonic() + GONE_S
        with self._turns.waiting(server, self.wake.set):
            leaving = (*(victim.uuid for victim in choice.victims), *going)
            for uuid in leaving:
                if not await self._goes(uuid, server, deadline):
                    log.warning("does not go", server=uuid, goes_for=server["id"])
                    self._stuck.add(uuid, STUCK_S)
            is_there = await self._is_available(choice.node, server, leaving, until=until)
        await self._care(server)
        return is_there

    async def _is_available(
        self, node: str, server: dict[str, Any], leaving: Collection[str], *, until: float
    ) -> bool:
        """Whether what was left can be had, which of a node means that it is clean. One that went,
        or that somebody else has taken, is not waited for.
        """
        began = time.monotonic()
        while is_bare_metal(server):
            host = await asks.hypervisor(self.api, node)
            if host is None:
                return False
            if host.get("is_available", True):  # an older API does not say
                break
            is_late = time.monotonic() > until
            if is_late or not comes(host, leaving):
                log.warning("node cannot be had", node=node, why=host["why_not"])
                taker = carried_by(host)
                if is_late or taker is None or await self._found(taker) is None:
                    self._stuck.add(node, STUCK_S)  # a server of ours is seen there anyway
                return False
            await self._care(server)
            await asyncio.sleep(max(POLL_S, min(LONGEST_POLL_S, (time.monotonic() - began) / 10)))
        return True

    async def _goes(self, uuid: str, server: dict[str, Any], deadline: float) -> bool:
        """Whether somebody goes: of a node that is cleaned, which may take hours, that is believed
        in the end. Meanwhile the PENDING one stays in our care.
        """
        began = time.monotonic()
        care_again = began + CARE_S / 3
        while (found := await self._found(uuid)) is not None:
            if found["OS-EXT-STS:task_state"] != "deleting":
                return False
            if time.monotonic() > deadline:
                return is_bare_metal(server)
            if time.monotonic() > care_again:
                await self._care(server)
                care_again = time.monotonic() + CARE_S / 3
            # What takes long is looked at less often.
            await asyncio.sleep(max(POLL_S, min(LONGEST_POLL_S, (time.monotonic() - began) / 10)))
        return True

    async def _found(self, uuid: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = (await self.api.ask("GET", f"/servers/{uuid}"))["server"]
        except Refused as why:
            if why.status == NOT_FOUND:
                return None
            raise
        return found

    async def _built(self, server: dict[str, Any]) -> str:
        """Have the server built; what that leads to."""
        try:
            await self.api.act(server["id"], "rebuild", {"imageRef": server["image"]["id"]})
        except Refused as why:
            if why.status not in NEVER:
                raise
            await self._give_up(server, f"it cannot be built: {why}")
            return "ERROR"
        deadline = time.monotonic() + PATIENCE_S
        turn, status = self._turns.of(server), "BUILD"
        while status == "BUILD" and time.monotonic() < deadline:
            await asyncio.sleep(POLL_S)
            shown = (await self.api.ask("GET", f"/servers/{server['id']}"))["server"]
            status = str(shown["status"])
            if shown["OS-EXT-SRV-ATTR:host"] is not None and not turn.is_placed:
                turn.is_placed = True  # its room is its own from now on
                self.wake.set()
        log.info("was built again", server=server["id"], status=status)
        return status
