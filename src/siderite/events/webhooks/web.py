"""Webhooks over HTTP."""

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Protocol

import msgspec

from siderite.core import eventlog
from siderite.core import shape
from siderite.core.check import is_whole
from siderite.core.clock import now as wall_clock
from siderite.core.errors import Busy
from siderite.core.errors import Conflict
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.guard import Guard
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import reply
from siderite.core.ids import is_uuid
from siderite.core.ids import new_uuid
from siderite.core.project import is_own
from siderite.core.store import Lost
from siderite.core.store import Store
from siderite.core.store.table import Where
from siderite.core.times import iso
from siderite.core.who import Who
from siderite.events import named
from siderite.events import query
from siderite.events.search import Search
from siderite.events.webhooks import asked
from siderite.events.webhooks import deliveries
from siderite.events.webhooks.sender import Sender
from siderite.events.webhooks.sender import test_event
from siderite.events.webhooks.webhook import WEBHOOKS
from siderite.events.webhooks.webhook import Webhook
from siderite.events.webhooks.webhook import new_secret
from siderite.events.webhooks.webhook import visible

MOST = 1000
"""Webhooks that there may be."""
MOST_OF_A_PROJECT = 100
"""So that one leaves room for others."""
TRIES = 16


class Webhooks(msgspec.Struct, frozen=True):
    """What the handlers work with."""

    store: Store
    guard: Guard
    sender: Sender
    known: Sequence[str]
    timeout_s: float

    async def find(self, ident: str, who: Who) -> Webhook:
        """A webhook that the caller may see."""
        found = await WEBHOOKS.get(self.store, ident.lower()) if is_uuid(ident) else None
        if found is None or not (who.sees_all or is_own(who, found.owner)):
            raise NotFound(f"Webhook {ident[:80]} could not be found; GET /v1/webhooks lists them.")
        return found

    async def show(self, webhooks: Sequence[Webhook]) -> list[dict[str, Any]]:
        """Webhooks as they are shown, with how far they are."""
        counts = await deliveries.counts(self.store)
        places = await deliveries.places(self.store)
        shown = []
        for webhook in webhooks:
            seq, lost = places.get(webhook.uuid, (0, 0))
            shown.append(_shown(webhook, seq, lost, counts.get(webhook.uuid, {})))
        return shown


def _shown(webhook: Webhook, seq: int, lost: int, some: Mapping[str, int]) -> dict[str, Any]:
    more = {"at": seq, "lost": lost}
    more |= {"pending": some.get("pending", 0), "dead": some.get("dead", 0)}
    return visible(webhook) | more


def shown_form() -> shape.Json:
    """The form of a webhook on the wire; a new one tells its secret."""
    found = [_shown(one, 1, 1, {}) for one in shape.both(Webhook)]
    return shape.seen(*found, found[0] | {"secret": ""})


class Home(Protocol):
    """The service whose handlers these are."""

    webhooks: Webhooks
    search: Search


async def list_all(home: Home, request: Request) -> Response:
    """GET /v1/webhooks."""
    _no_arguments(request)
    who = request.who
    where = () if who.sees_all else (Where("owner = ?", (who.project_id,)),)
    found = await WEBHOOKS.find(home.webhooks.store, *where)
    return reply({"webhooks": await home.webhooks.show(found)})


async def create(home: Home, request: Request) -> Response:
    """POST /v1/webhooks: the only answer that has the secret."""
    hooks, who = home.webhooks, request.who
    asked.may_change(who)
    said = await asked.fields(
        await request.json(), names=asked.MAKEABLE, known=hooks.known, guard=hooks.guard, who=who
    )
    if "url" not in said:
        raise Invalid("url is missing: where to send events to.")
    newest = await eventlog.newest(hooks.store)
    after = asked.number(said) if "after" in said else newest
    query.not_beyond(after, newest)
    await query.not_pruned(hooks.store, after)
    said.pop("after", None)
    said.setdefault("project", query.project(None, who))
    await _resolve(home, said, said["project"])
    secret = said.pop("secret", None) or new_secret()
    made = Webhook(
        uuid=new_uuid(), created_at=iso(wall_clock()), secret=secret,
        owner=None if who.sees_all else who.project_id, **said,
    )  # fmt: skip
    await _check_room(hooks.store, made.owner)
    await hooks.store.commit([WEBHOOKS.insert(made), deliveries.begun(made.uuid, after)])
    hooks.sender.tell()
    (shown,) = await hooks.show([made])
    return reply({**shown, "secret": secret}, 201)


async def _check_room(store: Store, owner: str | None) -> None:
    sql = "SELECT count(*), count(CASE WHEN owner = ? THEN 1 END) FROM webhooks"
    every, own = (int(count or 0) for count in (await store.fetch(sql, (owner,)))[0])
    if own >= MOST_OF_A_PROJECT:
        raise Conflict(f"Your project has {own} webhooks already; delete one first.")
    if every >= MOST:
        raise Conflict(f"There are {every} webhooks already; delete one first.")


async def _resolve(home: Home, said: dict[str, Any], project: str | None) -> None:
    """What goes by a name now is meant from now on, whatever it is called later."""
    if said.get("resource") is None:
        return
    try:
        said["resource"] = await named.resource(
            home.webhooks.store, home.search, said["resource"], project=project
        )
    except NotFound as why:
        raise Invalid(why.sentence) from why  # it is the body that is wrong, not the address


async def show(home: Home, request: Request) -> Response:
    """GET /v1/webhooks/{id}."""
    _no_arguments(request)
    found = await home.webhooks.find(request.params[0], request.who)
    (shown,) = await home.webhooks.show([found])
    return reply(shown)


async def update(home: Home, request: Request) -> Response:
    """PATCH /v1/webhooks/{id}: the fields of the body are changed."""
    hooks, who = home.webhooks, request.who
    asked.may_change(who)
    before = await hooks.find(request.params[0], who)
    said = await asked.fields(
        await request.json(), names=asked.CHANGEABLE, known=hooks.known, guard=hooks.guard, who=who
    )
    if before.owner is not None and said.get("project", before.owner) != before.owner:
        raise Conflict(
            f"The webhook belongs to project {before.owner}, whose members see and change it: it"
            " cannot be for others. Make one of your own."
        )
    await _resolve(home, said, said.get("project", before.project))
    after = before.changed(wall_clock(), said)
    await hooks.store.commit([WEBHOOKS.swap(before, after)])
    hooks.sender.tell()
    (shown,) = await hooks.show([after])
    return reply(shown)


async def delete(home: Home, request: Request) -> Response:
    """DELETE /v1/webhooks/{id}, its deliveries included."""
    hooks = home.webhooks
    asked.may_change(request.who)
    found = await hooks.find(request.params[0], request.who)
    gone = [WEBHOOKS.remove(found), deliveries.ended(found.uuid), deliveries.forgotten(found.uuid)]
    await hooks.store.commit(gone)
    hooks.sender.tell()
    return Response(status=204)


async def test(home: Home, request: Request) -> Response:
    """POST /v1/webhooks/{id}/test: send an event now, and say what came of it."""
    hooks = home.webhooks
    asked.may_change(request.who)
    found = await hooks.find(request.params[0], request.who)
    message_id = new_uuid()
    from siderite.events.webhooks.post import Post  # noqa: PLC0415 - brings httpx

    post = Post(hooks.guard, timeout_s=hooks.timeout_s, clock=wall_clock)
    try:
        body = test_event(message_id, found.uuid, iso(wall_clock()))
        answer = await post.send(found, message_id, "siderite.webhook.test", body)
    finally:
        await post.close()
    said = {"status": answer.status, "error": answer.error, "ms": answer.ms}
    return reply({"delivered": answer.error is None, **said})


def tested_form() -> shape.Json:
    """The form of what came of it."""
    return shape.wire(
        {"delivered": True, "status": 204, "error": None, "ms": 1.5},
        {"delivered": False, "status": None, "error": "", "ms": 1},
    )


async def replay(home: Home, request: Request) -> Response:
    """POST /v1/webhooks/{id}/replay: send again all that came after a number."""
    hooks = home.webhooks
    asked.may_change(request.who)
    found = await hooks.find(request.params[0], request.who)
    after = asked.number(await request.json())
    query.not_beyond(after, await eventlog.newest(hooks.store))
    await query.not_pruned(hooks.store, after)
    await _begin_again(hooks.store, found.uuid, after)
    hooks.sender.tell()
    (shown,) = await hooks.show([found])
    return reply(shown, 202)


async def _begin_again(store: Store, webhook: str, after: int) -> None:
    for _ in range(TRIES):
        before = await deliveries.place(store, webhook)
        if before is None:
            raise NotFound(f"Webhook {webhook} was deleted just now.")
        again = deliveries.looked(webhook, before=before, reached=after)
        try:
            await store.commit([again, deliveries.forgotten(webhook, "pending")])
            return
        except Lost:
            continue  # the sender looked on meanwhile
    raise Busy("The webhook is busy; try again in a moment.")


async def history(home: Home, request: Request) -> Response:
    """GET /v1/webhooks/{id}/deliveries: newest first; `state=dead` are the dead letters."""
    hooks = home.webhooks
    found = await hooks.find(request.params[0], request.who)
    said = query.arguments(request, ("before", "limit", "state"))
    state = said.get("state")
    if state not in (None, *deliveries.STATES):
        raise Invalid(f"state must be one of {', '.join(deliveries.STATES)}.")
    before = query.number("before", said["before"]) if "before" in said else None
    limit = query.limit("limit", said.get("limit", str(query.USUAL_LIMIT)))
    page = await deliveries.page(hooks.store, found.uuid, state=state, before=before, limit=limit)
    following = page[-1].id if len(page) == limit else None
    return reply({"deliveries": [deliveries.shown(each) for each in page], "next": following})


def history_form() -> shape.Json:
    """The form of a page of deliveries."""
    pending = shape.made_up(deliveries.Delivery, state="pending")
    found = [deliveries.shown(one) for one in (*shape.both(deliveries.Delivery), pending)]
    return shape.wire({"deliveries": found, "next": 1}, {"deliveries": found, "next": None})


async def retry(home: Home, request: Request) -> Response:
    """POST /v1/webhooks/{id}/deliveries/{n}/retry: a dead letter goes out again."""
    hooks = home.webhooks
    asked.may_change(request.who)
    found = await hooks.find(request.params[0], request.who)
    number = request.params[1]
    delivery = (
        await deliveries.one(hooks.store, found.uuid, int(number)) if is_whole(number) else None
    )
    if delivery is None:
        raise NotFound(f"Delivery {number[:40]} could not be found.")
    if delivery.state != "dead":
        raise Conflict(f"Delivery {number} is {delivery.state}; only dead letters are sent again.")
    if delivery.event is None:
        raise Conflict(f"What delivery {number} would say left the log before it could be sent.")
    await hooks.store.commit([deliveries.revived(delivery, wall_clock())])
    hooks.sender.tell()
    return reply(deliveries.shown(delivery) | {"state": "pending", "attempts": 0}, 202)


def retried_form() -> shape.Json:
    """The form of a delivery."""
    pending = shape.made_up(deliveries.Delivery, state="pending")
    return shape.wire(
        *(deliveries.shown(one) for one in (*shape.both(deliveries.Delivery), pending))
    )


def _no_arguments(request: Request) -> None:
    query.arguments(request, ())


_ONE = "/v1/webhooks/{id}"
ROUTES = (
    Route(
        "GET",
        "/v1/webhooks",
        list_all,
        "reader",
        gives=lambda: shape.listed("webhooks", shown_form()),
    ),
    Route("POST", "/v1/webhooks", create, "member", takes=asked.new, gives=shown_form),
    Route("GET", _ONE, show, "reader", gives=shown_form),
    Route("PATCH", _ONE, update, "member", takes=asked.change, gives=shown_form),
    Route("DELETE", _ONE, delete, "member"),
    Route("POST", _ONE + "/test", test, "member", gives=tested_form),
    Route("POST", _ONE + "/replay", replay, "member", takes=asked.place, gives=shown_form),
    Route("GET", _ONE + "/deliveries", history, "reader", gives=history_form),
    Route("POST", _ONE + "/deliveries/{n}/retry", retry, "member", gives=retried_form),
)
