"""The machine's power is not what the record says: what becomes of it, in one commit.

Two tell us: another service by `power-update`, and our own look at the hosts. Both go through the
same compare-and-swap on the server's row, and a reading counts only if the row has not changed
since before it was taken; so whichever comes first, the last truth wins.
"""

from collections.abc import Sequence

import msgspec

from siderite.compute import store as rows
from siderite.compute.domain import facts
from siderite.compute.domain.job import ActionEvent
from siderite.compute.domain.job import events_text
from siderite.compute.domain.power import Power
from siderite.compute.domain.power_truth import Verdict
from siderite.compute.domain.power_truth import policy_of
from siderite.compute.domain.power_truth import settle
from siderite.compute.domain.server import Server
from siderite.compute.domain.server_machine import Event
from siderite.compute.domain.server_machine import V
from siderite.compute.store import SERVERS
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.context import actor
from siderite.compute.usecases.server import acting
from siderite.compute.usecases.server import announced
from siderite.compute.usecases.server import leaving
from siderite.compute.usecases.server.acting import Ask
from siderite.core import work
from siderite.core.ids import new_request_id
from siderite.core.log import get_logger
from siderite.core.store import indexed
from siderite.core.times import iso
from siderite.core.transition import Cause
from siderite.core.transition import Change
from siderite.core.transition import apply
from siderite.core.work import Work

log = get_logger("power")

TAGS = {"POWER_ON": Power.RUNNING, "POWER_OFF": Power.SHUTDOWN}
_WELL, _BAD, _MISSING, _NO_HOST = 200, 400, 404, 422
_ACTIONS = {Power.RUNNING: ("start", "power_on"), Power.SHUTDOWN: ("stop", "power_off")}
_UPDATE = "compute_power_update"
_SYNC = "compute__sync_instance_power_state"
_MISSED = (
    "its machine is gone from its host, and was not started: it may run on another host, on the"
    " same disk; look there, and reboot the server hard if it does not"
)


async def power_update(ctx: Context, uuid: str, tag: str, cause: Cause) -> int:
    """Another service says that a server's machine was switched; the code of the answer."""
    power = TAGS.get(tag)
    if power is None:
        return _BAD

    async def decide(change: Change) -> int:
        found = await SERVERS.get(ctx.door.store, uuid)
        if found is None or found.deleted:
            return _MISSING
        if found.host is None:
            return _NO_HOST
        card = ctx.cards.get(found.driver or "")
        if card is None or not card.can("power_update"):
            log.error(
                "driver takes no power updates", driver=found.driver, server=found.uuid, tag=tag
            )
            why = f"driver {found.driver} takes no power updates; nothing was changed"
            _noted(change, found, power, error=why)
            fact = _ACTIONS[power][1]
            if found.task_state is None:  # else it may be in the middle of one of that name
                told = msgspec.structs.replace(found, by=actor(change.cause))
                change.tell(
                    facts.phase(fact, "start", told), facts.phase(fact, "error", told, why=why)
                )
            return _WELL
        why_not = _gate(found, power)
        if why_not is not None:
            if announced.may_be_news(found, power):
                change.put(announced.look_later(found, tag, change.now))
                why_not += "; its machine is looked at when that is done"
            _noted(change, found, power, details=why_not)
            return _WELL
        _follow(ctx, change, found, power, event=_UPDATE, why=f"{tag} was announced")
        return _WELL

    return await ctx.door.attempt(cause, uuid, decide)


async def confirmed(ctx: Context, held: Work, server: Server, tag: str) -> None:
    """What was announced of a server while something was done to it has proved true, when its row
    had this version; the look at it ends with that. If it changed since, the reading is old, and
    the machine is looked at again.
    """
    power = TAGS[tag]

    async def decide(change: Change) -> None:
        now = await SERVERS.get(ctx.door.store, server.uuid)
        if now is not None and now.version != server.version:
            due = change.now + announced.SOON_S
            change.work(work.park(held, due=due, reason=held.reason))
            return
        change.put(work.done(held))
        if now is not None and _gate(now, power) is None:
            _follow(ctx, change, now, power, event=_UPDATE, why=f"{tag} was announced meanwhile")

    await ctx.door.attempt(Cause(), server.uuid, decide, held=held)


def _gate(server: Server, power: Power) -> str | None:
    """Why an announced change of power changes nothing, if so."""
    if server.task_state is not None:
        return f"nothing to do: the server is {server.task_state}"
    needed = V.STOPPED if power is Power.RUNNING else V.ACTIVE
    if server.vm_state != needed:
        return f"nothing to do: the server is {server.vm_state}, not {needed}"
    return None


class Recorded(msgspec.Struct, frozen=True):
    """A server as its row says, before its host is asked."""

    uuid: str
    version: int
    vm_state: str
    task_state: str | None
    power_state: int


class Reading(msgspec.Struct, frozen=True):
    """What a host says of a server."""

    power: Power
    is_gone: bool = False
    """The host has no such guest: somebody took its definition away too."""

    @property
    def words(self) -> str:
        """As a person reads it."""
        return "gone from its host" if self.is_gone else self.power.word


async def on_host(ctx: Context, host: str, only: Sequence[str] | None = None) -> list[Recorded]:
    """The servers of a host, or some of them."""
    store = ctx.door.store
    index = indexed(store, "servers_host" if only is None else "servers_uuid_key")
    sql = "SELECT uuid, version, vm_state, task_state, power_state"
    sql += f" FROM servers {index} WHERE host = ? AND deleted = 0"
    args = [host]
    if only is not None:
        sql += f" AND uuid IN ({', '.join('?' * len(only))})"
        args += only
    return [Recorded(*row) for row in await store.fetch(sql, args)]  # type: ignore[arg-type]


async def found(ctx: Context, uuid: str, version: int, reading: Reading) -> Verdict:
    """A server's machine was seen in a power state, when its row had this version."""
    seen = reading.power

    async def decide(change: Change) -> Verdict:
        server = await SERVERS.get(ctx.door.store, uuid)
        if server is None or server.deleted or server.version != version:
            return Verdict.NOTHING  # it changed since: the reading is old
        if reading.is_gone and await leaving.is_open(ctx, server):
            return Verdict.NOTHING  # it may be at the other end of a move that failed
        policy = policy_of(server.metadata, ctx.settings.power_policy)
        verdict = settle(
            server.vm_state, server.task_state, server.power, seen, policy, is_gone=reading.is_gone
        )
        match verdict:
            case Verdict.NOTE | Verdict.MISSED:
                after = server.changed(change.now, {"power_state": int(seen)})
                change.put(SERVERS.swap(server, after))
                change.tell(facts.update(server, after))
                if verdict is Verdict.MISSED:
                    _noted(change, server, Power.RUNNING, event=_SYNC, error=_MISSED)
            case Verdict.POWERED_ON | Verdict.POWERED_OFF:
                to = Power.RUNNING if verdict is Verdict.POWERED_ON else Power.SHUTDOWN
                why = f"its machine was found {reading.words}"
                _follow(ctx, change, server, to, event=_SYNC, why=why)
            case Verdict.START | Verdict.STOP:
                kind = "reboot_hard" if verdict is Verdict.START else "force_stop"
                acting.begin(ctx, change, server, Ask(kind))
            case Verdict.NOTHING:
                pass
        return verdict

    return await ctx.door.attempt(Cause(), uuid, decide)


def _follow(
    ctx: Context, change: Change, server: Server, power: Power, *, event: str, why: str
) -> None:
    """The record follows the machine."""
    action, fact = _ACTIONS[power]
    by, task = actor(change.cause), f"powering-{fact.removeprefix('power_')}"
    begun = server.changed(change.now, {"task_state": task, "by": by})
    change.tell(facts.phase(fact, "start", begun))
    moved = Event.POWERED_ON if power is Power.RUNNING else Event.POWERED_OFF
    applied = apply(change, ctx.rules, server, moved, changes={"power_state": int(power), "by": by})
    change.tell(facts.phase(fact, "end", applied.value))
    at = iso(change.now)
    done = ActionEvent(event, at, at, "Success", server.host, why)
    _recorded(change, server, action, done)


def _noted(
    change: Change, server: Server, power: Power, *,
    event: str = _UPDATE, details: str | None = None, error: str | None = None,
) -> None:  # fmt: skip
    """News after which nothing was done, with the reason."""
    at = iso(change.now)
    result = "Success" if error is None else "Error"
    done = ActionEvent(event, at, at, result, server.host, error or details)
    _recorded(change, server, _ACTIONS[power][0], done, failed=error is not None)


def _recorded(
    change: Change, server: Server, action: str, event: ActionEvent, *, failed: bool = False
) -> None:
    request_id = change.cause.request_id or new_request_id()
    change.put(
        rows.action_begins(
            server.uuid, request_id=request_id, action=action, user=change.cause.user,
            project=change.cause.project, at=event.start_time, events=events_text([event]),
            message="Error" if failed else None,
        )
    )  # fmt: skip
