"""Looks through the log for every webhook, and sends what it finds.

One task per webhook, so that a slow receiver holds up nobody else. Within a webhook, resources go
beside each other and the facts of one resource one after the other. When everything fails, the
whole webhook pauses; rows remember all that matters.
"""

import asyncio
import contextlib
import random
from collections.abc import Callable
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from siderite.core import eventlog
from siderite.core import metrics
from siderite.core.clock import now as wall_clock
from siderite.core.errors import Unavailable
from siderite.core.guard import Guard
from siderite.core.log import get_logger
from siderite.core.store import Lost
from siderite.core.store import Store
from siderite.events import views
from siderite.events.discretion import Discretion
from siderite.events.webhooks import deliveries
from siderite.events.webhooks.deliveries import Delivery
from siderite.events.webhooks.webhook import WEBHOOKS
from siderite.events.webhooks.webhook import Webhook

if TYPE_CHECKING:
    from siderite.events.webhooks.post import Post

log = get_logger("webhooks")

LOOK_S = 5.0
"""How often to look unwoken: word of what is new may be lost with a connection."""
PACE_S = 0.001
"""How long facts gather until a webhook looks, for each that there is: as all of them look, they
leave the loop to others for most of the time.
"""
CHANGED = "siderite_webhooks"
"""The signal to other processes that webhooks were made, changed or deleted, or told to send."""
AT_ONCE = 16
PAGE = 200
MOST_WAITING = 1000
"""How many deliveries a webhook may have waiting; beyond, the log itself is the queue."""
MOST_OF_FEW = 10_000
"""How many where they are of a few resources: what is refused of them holds up no others."""
LONGEST_PAUSE_S = 3600.0


class Sender:
    """Keeps a task going for each webhook that is enabled."""

    def __init__(
        self,
        store: Store,
        guard: Guard,
        *,
        timeout_s: float,
        give_up_s: float,
        discretion: Discretion | None = None,
        clock: Callable[[], float] = wall_clock,
    ) -> None:
        self._store = store
        self._guard = guard
        self._timeout_s = timeout_s
        self._give_up_s = give_up_s
        self._discretion = discretion or Discretion()
        self._clock = clock
        self._woken = asyncio.Event()
        self._tasks: dict[tuple[str, int], asyncio.Task[None]] = {}
        self._bells: dict[tuple[str, int], asyncio.Event] = {}

    def wake(self) -> None:
        """There may be new facts."""
        for bell in self._bells.values():
            bell.set()

    def look(self) -> None:
        """A webhook was made, changed or deleted, or has something to send again."""
        self._woken.set()
        self.wake()

    def tell(self) -> None:
        """The same was done here: whichever process sends hears of it."""
        self.look()
        self._store.signal(CHANGED)

    async def run(self) -> None:
        """As long as this process is the one that sends."""
        try:
            while True:
                self._woken.clear()
                try:
                    await self._reconcile()
                except Unavailable as why:  # what is on its way need not go out once more
                    log.warning("cannot look for webhooks", error=repr(why))
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        await self._woken.wait()
        finally:
            tasks = list(self._tasks.values())
            self._tasks.clear()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _reconcile(self) -> None:
        """A task for each webhook as it is now, and none for others."""
        rows = await self._store.fetch("SELECT uuid, version FROM webhooks WHERE enabled = 1")
        wanted = {(str(row[0]), int(row[1] or 0)) for row in rows}
        for key in [key for key, task in self._tasks.items() if key not in wanted or task.done()]:
            task = self._tasks.pop(key)
            self._bells.pop(key, None)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        for key in wanted - self._tasks.keys():
            bell = self._bells[key] = asyncio.Event()
            self._tasks[key] = asyncio.create_task(self._serve(key[0], bell))

    async def _serve(self, uuid: str, bell: asyncio.Event) -> None:
        webhook = await WEBHOOKS.get(self._store, uuid)
        if webhook is None:
            return
        from siderite.events.webhooks.post import Post  # noqa: PLC0415 - brings httpx

        post = Post(self._guard, timeout_s=self._timeout_s, clock=self._clock)
        mishaps = 0
        try:
            while True:
                bell.clear()
                try:
                    pause, ok = await self._round(webhook, post)
                    mishaps = 0 if ok else mishaps + 1
                except Lost:
                    pause = 0.0  # it was told to begin elsewhere, or deleted
                except Exception as why:
                    log.error("cannot serve a webhook", webhook=uuid, error=repr(why), trace=why)
                    pause, mishaps = 1.0, mishaps + 1
                if mishaps:
                    await asyncio.sleep(min(30.0, 0.25 * 2 ** min(mishaps, 8)))
                elif pause:
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(pause):
                            await bell.wait()
                            await asyncio.sleep(PACE_S * len(self._tasks))
        finally:
            await post.close()

    async def _round(self, webhook: Webhook, post: "Post") -> tuple[float, bool]:
        """Look through some of the log, send what can be sent; how long to rest, and whether
        anything got through.
        """
        count, resources = await deliveries.waiting(self._store, webhook.uuid)
        has_room = count < (MOST_OF_FEW if resources < AT_ONCE else MOST_WAITING)
        found = has_room and await self._look_through(webhook)
        now = self._clock()
        some = await deliveries.due(self._store, webhook.uuid, now=now, limit=AT_ONCE)
        if some:
            bodies = await self._bodies(webhook, some)
            # All of them, whatever becomes of one: in the next round they would go out once more.
            answers = await asyncio.gather(
                *(self._deliver(webhook, post, each, bodies.get(each.seq)) for each in some),
                return_exceptions=True,
            )
            for why in answers:
                if isinstance(why, BaseException):
                    raise why
            return 0.0, any(answers)
        if found:
            return 0.0, True
        due = await deliveries.next_due(self._store, webhook.uuid)
        return LOOK_S if due is None else max(0.01, min(LOOK_S, due - now)), True

    async def _look_through(self, webhook: Webhook) -> bool:
        """Make deliveries of the next facts; whether the log went on."""
        before = await deliveries.place(self._store, webhook.uuid)
        end = await eventlog.newest(self._store)
        if before is None or end <= before:
            return False
        start = max(before, await eventlog.oldest(self._store) - 1)
        lost = start - before if before else 0
        if lost:
            log.warning("facts were pruned unsent", webhook=webhook.uuid, count=lost)
        entries, reached = await eventlog.page(
            self._store, webhook.wanted, after=start, limit=PAGE, end=end
        )
        ops = [deliveries.looked(webhook.uuid, before=before, reached=reached, lost=lost)]
        if entries:
            dialect = self._store.dialect
            ops.append(deliveries.add(dialect, webhook.uuid, entries, self._clock()))
        await self._store.commit(ops)
        return True

    async def _bodies(self, webhook: Webhook, some: Sequence[Delivery]) -> dict[int, bytes]:
        """What the log says of each, as far as it may be told to whom the webhook belongs."""
        bodies = {each.seq: each.event.encode() for each in some if each.event is not None}
        wanted = [each.seq for each in some if each.event is None]
        for entry in await eventlog.those(self._store, wanted):
            told = entry if webhook.owner is None else self._discretion.of(entry)
            bodies[entry.seq] = views.event(told)
        return bodies

    async def _deliver(
        self, webhook: Webhook, post: "Post", delivery: Delivery, body: bytes | None
    ) -> bool:
        if body is None:
            gone = "The event was pruned from the log before it could be delivered."
            await self._store.commit(
                [
                    deliveries.given_up(
                        delivery, status=None, error=gone, now=self._clock(), event=None
                    )
                ]
            )
            return True
        answer = await post.send(webhook, delivery.message_id, delivery.event_type, body)
        now = self._clock()
        metrics.webhook("delivered" if answer.error is None else "failed")
        if answer.error is None:
            op = deliveries.delivered(delivery, status=answer.status or 0, now=now)
        elif delivery.attempts and now - delivery.since >= self._give_up_s:
            metrics.webhook("dead")
            log.warning("gave up a delivery", webhook=webhook.uuid, seq=delivery.seq)
            op = deliveries.given_up(
                delivery, status=answer.status, error=answer.error, now=now, event=body.decode()
            )
        else:
            op = deliveries.failed(
                delivery, status=answer.status, error=answer.error, now=now,
                due=now + _pause(delivery.attempts),
            )  # fmt: skip
        await self._store.commit([op])
        return answer.error is None


def _pause(attempts: int) -> float:
    """Longer each time, and not the same for all."""
    longest: float = min(LONGEST_PAUSE_S, 0.5 * 2 ** min(attempts, 20))
    return longest * random.uniform(0.8, 1.2)  # noqa: S311 - no secret


def test_event(message_id: str, webhook: str, at: str) -> bytes:
    """What the test address sends."""
    return msgspec.json.encode(
        {
            "seq": 0,
            "event_type": "siderite.webhook.test",
            "time": at,
            "publisher_id": "siderite",
            "priority": "INFO",
            "message_id": message_id,
            "request_id": None,
            "resource": {"type": "webhook", "id": webhook},
            "payload": {},
        }
    )
