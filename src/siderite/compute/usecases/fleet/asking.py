"""A question to a host that a process of its conductor group asks: as work, whose row takes the
answer back. The client waits meanwhile; what nobody fetches is forgotten at its deadline.
"""

import asyncio
from typing import Any

import msgspec

from siderite.compute.domain.host import Host
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.fleet import hosts
from siderite.compute.usecases.server.acting import Unsupported
from siderite.core import work
from siderite.core.errors import Conflict
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.errors import SideriteError
from siderite.core.errors import Unavailable
from siderite.core.ids import new_uuid
from siderite.core.transition import Cause
from siderite.core.work import Work

KIND, ANSWERED = "ask_host", "host_answered"
_LANE = "ask"
_ERRORS: dict[int, type[SideriteError]] = {
    kind.status: kind for kind in (Invalid, NotFound, Conflict, Unsupported)
}
_LOOK_S = (0.01, 0.2)


class Question(msgspec.Struct, frozen=True):
    """`what` is asked about a host, or about a server there."""

    what: str
    host: str
    server: str | None = None
    more: Any = None


class Answer(msgspec.Struct, frozen=True):
    """What came of it: a value, or an error with its status."""

    value: msgspec.Raw = msgspec.Raw(b"null")
    error: str | None = None
    status: int = 0


async def ask(
    ctx: Context, host: Host, question: Question, patience_s: float, pool: str | None = None
) -> msgspec.Raw:
    """The answer of a process of the host's group; `pool` names only some of those processes."""
    why, is_served = await hosts.why_passed_on(ctx, host)
    if not is_served:
        raise Unavailable(f"{why[0].upper()}{why[1:]}.")
    machine = f"ask:{new_uuid()}"
    change = ctx.door.change(Cause())
    change.work(
        work.add(
            machine, _LANE, KIND, job=msgspec.json.encode(question).decode(), now=change.now,
            deadline=change.now + patience_s, reason=why, pool=pool or host.conductor_group,
        )
    )  # fmt: skip
    await ctx.door.commit(change)
    try:
        async with asyncio.timeout(patience_s):
            answer = await _answer(ctx, machine)
    except TimeoutError:
        raise Unavailable(f"{why[0].upper()}{why[1:]}; none has answered.") from None
    finally:
        await ctx.door.store.commit(work.drop(machine))
    if answer.error is not None:
        raise _ERRORS.get(answer.status, Unavailable)(answer.error)
    return answer.value


async def check(ctx: Context, host: Host, patience_s: float) -> str | None:
    """Have a host asked what it offers; why it cannot be used, if it cannot."""
    try:
        found = await ask(ctx, host, Question("check", host.name), patience_s)
    except SideriteError as why:
        return why.sentence
    return msgspec.json.decode(found, type=str | None)


async def _answer(ctx: Context, machine: str) -> Answer:
    pause, longest = _LOOK_S
    while True:
        await asyncio.sleep(pause)
        pause = min(2 * pause, longest)
        for item in await work.of_machine(ctx.door.store, machine):
            if item.kind == ANSWERED:
                return msgspec.json.decode(item.job, type=Answer)


async def reply(ctx: Context, held: Work, answer: Answer) -> None:
    """Leave the answer where it is looked for."""
    change = ctx.door.change(Cause())
    change.put(
        work.park(
            held, kind=ANSWERED, job=msgspec.json.encode(answer).decode(), due=held.deadline,
            reason=held.reason,
        )
    )  # fmt: skip
    await ctx.door.commit(change)
