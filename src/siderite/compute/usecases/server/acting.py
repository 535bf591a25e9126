"""Something is asked of a server: the machine moves, the action is recorded and the work follows,
in one commit.
"""

from collections.abc import Callable
from collections.abc import Iterable
from typing import Any

import msgspec

from siderite.compute import store as rows
from siderite.compute.domain import facts
from siderite.compute.domain.job import ActionEvent
from siderite.compute.domain.job import Job
from siderite.compute.domain.job import events_text
from siderite.compute.domain.job import job_of
from siderite.compute.domain.job import job_text
from siderite.compute.domain.server import Server
from siderite.compute.domain.server_machine import ACTIONS
from siderite.compute.domain.server_machine import BY_EVENT
from siderite.compute.domain.server_machine import SERVER
from siderite.compute.domain.server_machine import Event
from siderite.compute.domain.server_machine import joined
from siderite.compute.domain.shutdown import Shutdown
from siderite.compute.domain.shutdown import timeout_of
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.context import actor
from siderite.compute.usecases.server import find
from siderite.compute.usecases.server import interrupting
from siderite.compute.usecases.server import unwanted
from siderite.compute.usecases.server.kinds import KINDS
from siderite.compute.usecases.server.kinds import Kind
from siderite.compute.usecases.server.kinds import work_kind
from siderite.core import work
from siderite.core.errors import Busy
from siderite.core.errors import Conflict
from siderite.core.errors import SideriteError
from siderite.core.ids import new_request_id
from siderite.core.ids import new_uuid
from siderite.core.store import Op
from siderite.core.times import iso
from siderite.core.transition import Cause
from siderite.core.transition import Change
from siderite.core.transition import apply
from siderite.core.who import Who

_ASKED = frozenset(action.event for action in ACTIONS) - {"force_stop"}
"""What a client can ask for; one of them only follows from what is seen of the machine."""
_DOWN_AGAIN_S = 10


class Unsupported(SideriteError):
    """The host of this server cannot do that."""

    code = "compute.unsupported"
    status = 501


class Ask(msgspec.Struct, frozen=True):
    """One request. `prepare` looks at the server as it is and gives the changes that go with the
    move, what the work must know, and further rows.
    """

    kind: str
    args: dict[str, Any] = msgspec.field(default_factory=dict)
    prepare: Callable[[Server, Change], tuple[dict[str, Any], dict[str, Any], list[Op]]] | None = (
        None
    )
    is_hard: bool = False
    """No clean shutdown."""
    check: Callable[[Server], None] = lambda server: None


async def ask(ctx: Context, uuid: str, wish: Ask, *, who: Who, cause: Cause) -> Server:
    """Have something done to a server; the work follows."""

    async def decide(change: Change) -> Server:
        server = await find.server(ctx, uuid, who)
        kind = KINDS[wish.kind]
        if not kind.ignores_lock:
            check_lock(server, who)
        wish.check(server)
        if hurries(server, wish):
            return await hurry(ctx, change, server, wish)
        check_state(server, kind.event, kind.word or kind.action)
        check_place(ctx, server, kind)
        await check_up(ctx, server, kind)
        unfilled = await interrupting.give_up(ctx, change, server, for_action=kind.action)
        change.put(*unwanted.given_up(server, unfilled, change.now))
        return begin(ctx, change, server, wish)

    return await ctx.door.attempt(cause, uuid, decide)


def hurries(server: Server, wish: Ask) -> bool:
    """Whether a hard request overrides the soft shutdown of the same action under way."""
    action = BY_EVENT.get(KINDS[wish.kind].event)
    return (
        wish.is_hard
        and action is not None
        and action.clean
        and server.task_state == action.tasks[0]
        and SERVER.can(server.state, Event.HURRY)
    )


async def hurry(
    ctx: Context, change: Change, server: Server, wish: Ask, changes: dict[str, Any] | None = None
) -> Server:
    """The guest gets no more time; the work goes on from where it is, with what was asked last."""
    kind = KINDS[wish.kind]
    for item in await work.of_machine(ctx.door.store, server.uuid):
        if item.lane != ctx.rules.lane:
            continue
        job = job_of(item.job)
        if not _is_still_asked(job, kind, wish):
            break
        hard = msgspec.structs.replace(job.shutdown or Shutdown(), timeout_s=0.0)
        why = "a hard shutdown was asked for meanwhile"
        change.put(note(change, server, kind.action))
        job = msgspec.structs.replace(job, shutdown=hard).with_args(**wish.args)
        return apply(
            change, ctx.rules, server, Event.HURRY, kind=item.kind, reason=why, job=job_text(job),
            changes={**(changes or {}), "wait_reason": why},
        ).value  # fmt: skip
    raise busy(server, kind.word or kind.action)


def _is_still_asked(job: Job, kind: Kind, wish: Ask) -> bool:
    """Whether the work is the same action, to the same end, and its guest may still be up."""
    if job.shutdown is None or job.shutdown.ended is not None or job.action != kind.action:
        return False
    if wish.kind == "shelve" and "image" in wish.args:
        return False  # both came at once, and each brings an image: the first one's is the one
    # A place was chosen for these, or is about to be.
    return all(job.args.get(key) == wish.args.get(key) for key in ("flavor", "host"))


def check_lock(server: Server, who: Who) -> None:
    """A locked server is for administrators only."""
    if server.locked and not who.is_admin:
        raise Conflict(f"Instance {server.uuid} is locked. Unlock it first, if you may.")


def busy(server: Server, word: str) -> Busy:
    """The refusal while something else is done to a server, in the words that clients know."""
    return Busy(
        f"Cannot '{word}' instance {server.uuid} while it is in task_state {server.task_state}."
        " Try again when that is done."
    )


def not_in_state(server: Server, word: str, states: Iterable[str] = ()) -> Conflict:
    """The refusal of what a server's state does not allow, in the words that clients know: with
    those that do, or what else is legal.
    """
    legal = sorted(event for event in SERVER.events(server.state) if event in _ASKED)
    remedy = f"Legal here: {', '.join([*legal, 'delete'])}."
    if states:
        remedy = f"It can in {', '.join(sorted(states))}."
    return Conflict(
        f"Cannot '{word}' instance {server.uuid} while it is in vm_state {server.vm_state}."
        f" {remedy}"
    )


def check_state(server: Server, event: str, word: str) -> None:
    """Refuse what the machine's table does not allow."""
    if SERVER.can(server.state, event):
        return
    if server.task_state is not None and SERVER.can(joined(server.vm_state, None), event):
        raise busy(server, word)
    raise not_in_state(server, word)


def not_ready(server: Server, why: str) -> Conflict:
    """The refusal of what no host can be asked for, in the words that clients know."""
    return Conflict(f"Instance {server.uuid} is not ready. {why}; see its state and fault.")


def check_host(server: Server) -> None:
    """Refuse what takes a host if there is none."""
    if server.host is None and server.shelved_image is not None:
        raise Conflict(
            f"Instance {server.uuid} is not ready. It was shelved and has no host: unshelve it; if"
            " its state was reset to active, have that reset to error first."
        )
    if server.host is None:
        raise not_ready(server, "It has no host")


def check_place(ctx: Context, server: Server, kind: Kind) -> None:
    """Refuse what takes a host if there is none, or one that cannot do it."""
    if kind.needs_host:
        check_host(server)
    card = ctx.cards.get(server.driver or "")
    if kind.ability is not None and card is not None and not card.can(kind.ability):
        able = {one.action for one in KINDS.values() if one.ability and card.can(one.ability)}
        raise Unsupported(
            f"Driver {card.name} of instance {server.uuid} cannot {kind.word or kind.action}."
            f" Beside start, stop, reboot, rebuild and delete, it can: {', '.join(sorted(able))}."
        )


async def is_down(ctx: Context, host: str | None) -> bool | None:
    """Whether a host is taken for down; None if there is no such host."""
    rows = await ctx.door.store.fetch(
        "SELECT forced_down, seen_at FROM hosts WHERE name = ?", (host,)
    )
    if not rows:
        return None
    silent_s = ctx.door.clock() - float(rows[0][1] or 0)
    return bool(rows[0][0]) or silent_s > ctx.settings.host_patience_s


def cannot_leave(server: Server) -> str:
    """Why a guest whose host is down cannot leave it alive."""
    return (
        f"Compute service of {server.host} is unavailable at this time: the server's host is down."
        " Ask again when it is back, or evacuate the server."
    )


async def check_up(ctx: Context, server: Server, kind: Kind) -> None:
    """Refuse to bring away from a host what is there while that is down: it would only wait, and
    nobody could evacuate the server meanwhile.
    """
    if kind.brings_away and await is_down(ctx, server.host):
        raise Conflict(
            f"Cannot '{kind.word or kind.action}' instance {server.uuid} while its host is down."
            " Ask again when that is back, or have an administrator evacuate the server.",
            retry_after_s=_DOWN_AGAIN_S,
        )


def begin(ctx: Context, change: Change, server: Server, wish: Ask) -> Server:
    """The move, the action, the start fact and the work, put into the change."""
    kind = KINDS[wish.kind]
    cause = change.cause
    request_id = cause.request_id or new_request_id()
    changes, more_args, ops = wish.prepare(server, change) if wish.prepare else ({}, {}, [])
    at = iso(change.now)
    job = Job(
        op=new_uuid(), action=kind.action, request_id=request_id, began=at,
        args={**wish.args, **more_args},
        shutdown=shutdown_of(ctx, server, wish),
        events=[ActionEvent(kind.compute_event, at, host=server.host)],
    )  # fmt: skip
    changes = {
        "by": actor(cause),
        "wait_reason": f"{kind.action} was asked for",
        **changes,
    }
    applied = apply(
        change, ctx.rules, server, kind.event, job=job_text(job), kind=work_kind(wish.kind),
        changes=changes, reason=changes["wait_reason"],
    )  # fmt: skip
    for op in ops:
        change.put(op)
    change.put(
        rows.action_begins(
            server.uuid, request_id=request_id, action=kind.action, user=cause.user,
            project=cause.project, at=at, events=events_text(job.events),
        )
    )  # fmt: skip
    if kind.fact is not None:
        change.tell(facts.phase(kind.fact, "start", applied.value, asked=job.args))
    return applied.value


def shutdown_of(ctx: Context, server: Server, wish: Ask) -> Shutdown | None:
    """How a server is to be shut down, if it is: by its image's word, else by the options."""
    settings = ctx.settings
    interval = settings.shutdown_retry_interval_s
    if wish.kind == "reboot":
        return Shutdown(timeout_s=settings.soft_reboot_timeout_s, interval_s=interval)
    if not KINDS[wish.kind].clean:
        return None
    properties = {} if server.image is None else server.image.properties
    timeout = 0.0 if wish.is_hard else timeout_of(properties, settings.shutdown_timeout_s)
    return Shutdown(timeout_s=timeout, interval_s=interval)


def note(change: Change, server: Server, action: str, event: str | None = None) -> Op:
    """An action that is over in its own commit, for the list of actions."""
    at = iso(change.now)
    events = [] if event is None else [ActionEvent(event, at, at, "Success", server.host)]
    return rows.action_begins(
        server.uuid, request_id=change.cause.request_id or new_request_id(), action=action,
        user=change.cause.user, project=change.cause.project, at=at, events=events_text(events),
    )  # fmt: skip
