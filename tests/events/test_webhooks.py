"""Webhooks: what is sent, to whom, in which order, and what becomes of what is not taken."""

import asyncio
import base64
import hashlib
import hmac
import json
import time
from types import SimpleNamespace

import pytest

from siderite.core import eventlog
from siderite.core.errors import NotFound
from siderite.core.errors import Unavailable
from siderite.core.store import Op
from siderite.core.who import Who
from siderite.events.webhooks import deliveries
from siderite.events.webhooks import sender as sender_module
from siderite.events.webhooks import web
from siderite.events.webhooks.post import Answer
from siderite.events.webhooks.sender import _pause as pause
from siderite.events.webhooks.webhook import WEBHOOKS
from tests.events.hooking import ADDRESS
from tests.events.hooking import runner
from tests.events.hooking import subscribed
from tests.events.log import NODE
from tests.events.log import OTHER
from tests.events.log import fact
from tests.events.log import tell
from tests.events.receiver import receiving
from tests.support.app import running
from tests.support.domain import domain_person


@pytest.fixture(autouse=True)
def brisk(monkeypatch):
    """Try again at once."""
    monkeypatch.setattr(sender_module, "_pause", lambda attempts: 0.01)


@pytest.fixture
def run(tmp_path, database_url):
    """Run a story with the whole program at work, and a receiver."""
    return runner(tmp_path, database_url)


async def shown(app, hook):
    return (await app.ask("GET", f"{ADDRESS}/{hook['id']}")).json


async def until(app, hook, **wanted):
    """The webhook, when it is as wanted."""
    async with asyncio.timeout(30):
        while True:
            now = await shown(app, hook)
            if all(now[name] == value for name, value in wanted.items()):
                return now
            await asyncio.sleep(0.02)


def numbers(events):
    return [event["payload"]["n"] for event in events]


def test_an_event_arrives_as_the_log_has_it_signed_with_the_secret(run):
    async def story(app, receiver):
        hook = await subscribed(app, receiver, name="mine")
        await tell(app, fact(1))
        await receiver.until(bool)
        _, event, headers, body, first = receiver.got[0]
        page = (await app.ask("GET", "/events/v1/events")).json["events"]
        assert event == page[0]
        assert first == "POST /hook?a=b HTTP/1.1"
        assert headers["siderite-event"] == event["event_type"]
        assert headers["webhook-id"] == event["message_id"]
        assert abs(int(headers["webhook-timestamp"]) - time.time()) < 60
        key = base64.b64decode(hook["secret"].removeprefix("whsec_"))
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        mac = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
        assert headers["webhook-signature"] == f"v1,{mac}"

    run(story)


def test_the_secret_is_shown_once(run):
    async def story(app, receiver):
        hook = await subscribed(app, receiver)
        again = await shown(app, hook)
        listed = (await app.ask("GET", ADDRESS)).json["webhooks"]
        assert hook.pop("secret").startswith("whsec_")
        assert (again, listed) == (hook, [hook])
        own = "whsec_" + base64.b64encode(b"x" * 32).decode()
        changed = await app.ask("PATCH", f"{ADDRESS}/{hook['id']}", {"secret": own})
        assert "secret" not in changed.json
        assert (await subscribed(app, receiver, secret=own))["secret"] == own

    run(story)


def test_the_filter_chooses(run):
    async def story(app, receiver):
        await subscribed(app, receiver, type="*.end", resource=OTHER.upper(), project="p")
        await tell(
            app,
            fact(1, resource=OTHER),
            fact(2, resource=OTHER, project="p"),
            fact(3, project="p"),
            fact(4, resource=OTHER, project="p", kind="update.start"),
            fact(5, resource=OTHER, project="p"),
        )
        assert numbers(await receiver.until(lambda got: len(got) == 2)) == [2, 5]

    run(story)


def test_what_is_not_taken_comes_again_before_what_follows_it_and_holds_up_no_other(run):
    async def story(app, receiver):
        refusals = {2: 3}

        def answer(event):
            n = event["payload"]["n"]
            refusals[n] = refusals.get(n, 0) - 1
            return 500 if refusals[n] >= 0 else 204

        receiver.answer = answer
        hook = await subscribed(app, receiver)
        facts = [fact(n, resource=(NODE, OTHER)[n % 2]) for n in range(1, 11)]
        await tell(app, *facts)
        got = await receiver.until(lambda got: len(got) >= 10)
        for resource in (NODE, OTHER):
            ours = [e["payload"]["n"] for e in got if e["resource"]["id"] == resource]
            assert ours == sorted(ours)
        assert sorted(numbers(got)) == list(range(1, 11))
        assert len(receiver.got) == 13
        await until(app, hook, pending=0)
        history = (await app.ask("GET", f"{ADDRESS}/{hook['id']}/deliveries")).json["deliveries"]
        attempts = {row["seq"]: (row["state"], row["attempts"], row["status"]) for row in history}
        assert attempts[2] == ("delivered", 4, 204)
        assert attempts[1] == ("delivered", 1, 204)

    run(story)


def test_the_history_of_deliveries_is_read_page_by_page(run):
    async def story(app, receiver):
        hook = await subscribed(app, receiver)
        await tell(app, fact(1), fact(2), fact(3))
        await until(app, hook, at=3)
        pages, path = [], f"{ADDRESS}/{hook['id']}/deliveries?limit=2"
        following = ""
        while following is not None:
            page = (await app.ask("GET", path + following)).json
            pages.append([row["seq"] for row in page["deliveries"]])
            following = None if page["next"] is None else f"&before={page['next']}"
        assert pages == [[3, 2], [1]]

    run(story)


def test_what_is_given_up_is_a_dead_letter_that_can_be_sent_again(run):
    async def story(app, receiver):
        receiver.answer = lambda event: 500 if event["payload"]["n"] == 1 else 204
        hook = await subscribed(app, receiver)
        await tell(app, fact(1), fact(2))
        assert numbers(await receiver.until(bool)) == [2]
        await until(app, hook, pending=0, dead=1)
        path = f"{ADDRESS}/{hook['id']}/deliveries"
        (dead,) = (await app.ask("GET", f"{path}?state=dead")).json["deliveries"]
        assert (dead["seq"], dead["status"], dead["attempts"]) == (1, 500, 2)
        assert "500" in dead["error"]
        receiver.answer = lambda event: 200
        assert (await app.ask("POST", f"{path}/{dead['id']}/retry")).status == 202
        assert numbers(await receiver.until(lambda got: len(got) == 2)) == [2, 1]
        await until(app, hook, pending=0, dead=0)
        assert (await app.ask("POST", f"{path}/{dead['id']}/retry")).status == 409
        assert (await app.ask("POST", f"{path}/999/retry")).status == 404

    run(story, webhook_give_up_s=0.0)


def test_events_can_be_sent_again_from_a_number(run):
    async def story(app, receiver):
        await tell(app, *(fact(n) for n in range(1, 6)))
        hook = await subscribed(app, receiver, after=3)
        assert numbers(await receiver.until(lambda got: len(got) == 2)) == [4, 5]
        await until(app, hook, pending=0)
        again = await app.ask("POST", f"{ADDRESS}/{hook['id']}/replay", {"after": 2})
        assert again.status == 202
        assert numbers(await receiver.until(lambda got: len(got) == 5)) == [4, 5, 3, 4, 5]
        ids = [event["message_id"] for event in receiver.taken()]
        assert ids[:2] == ids[3:]

    run(story)


def test_sending_again_takes_the_place_of_what_was_still_to_be_sent(app):
    hook, rounds = refused(app)
    app.run(tell(app.app, *(fact(n) for n in range(1, 5))))
    assert rounds(1)["pending"] == 4
    again = app.ask("POST", f"{ADDRESS}/{hook}/replay", {"after": 1})
    assert (again.status, again.json["at"], again.json["pending"]) == (202, 1, 0)
    assert (rounds(1)["pending"], rounds(1)["at"]) == (3, 4)


def refused(app):
    """A webhook whose receiver refuses all, and what has its sender go round so many times."""
    made = app.ask("POST", ADDRESS, {"url": "https://192.0.2.1/"}).json["id"]
    store = app.app.program.store
    sender = app.app.program.app._services["events"].webhooks.sender

    class Refusing:
        async def send(self, *_):
            return Answer(503, "no", 0.1)

    async def go_round(times):
        webhook = await WEBHOOKS.get(store, made)
        for _ in range(times):
            await sender._round(webhook, Refusing())

    def rounds(times):
        app.run(go_round(times))
        return app.ask("GET", f"{ADDRESS}/{made}").json

    return made, rounds


def test_pauses_grow_and_are_not_the_same_for_all():
    for attempts, usual in (
        (0, 0.5),
        (1, 1.0),
        (5, 16.0),
        (12, 2048.0),
        (13, 3600.0),
        (99, 3600.0),
    ):
        pauses = {pause(attempts) for _ in range(20)}
        assert all(0.8 * usual <= each <= 1.2 * usual for each in pauses)
        assert len(pauses) > 1


def test_what_waits_behind_another_has_the_sender_rest_till_that_is_due(app, monkeypatch):
    monkeypatch.setattr(sender_module, "_pause", lambda attempts: 600.0)
    hook, rounds = refused(app)
    app.run(tell(app.app, fact(1), fact(2)))
    assert rounds(1)["pending"] == 2
    sender = app.app.program.app._services["events"].webhooks.sender

    async def rest():
        return await sender._round(await WEBHOOKS.get(app.app.program.store, hook), None)

    assert app.run(rest()) == (sender_module.LOOK_S, True)


def test_what_is_on_its_way_is_not_sent_beside_itself_when_the_database_fails(app, monkeypatch):
    made = app.ask("POST", ADDRESS, {"url": "https://192.0.2.1/"}).json["id"]
    app.run(tell(app.app, fact(1), fact(2, resource=OTHER)))
    store = app.app.program.store
    sender = app.app.program.app._services["events"].webhooks.sender
    arrived = []

    class Slow:
        async def send(self, _hook, _message, _kind, body):
            if json.loads(body)["resource"]["id"] == OTHER:
                await asyncio.sleep(0.05)
            arrived.append(json.loads(body)["payload"]["n"])
            return Answer(204, None, 0.1)

    async def fail(_):
        raise Unavailable("the database is away")

    async def story():
        webhook = await WEBHOOKS.get(store, made)
        await sender._look_through(webhook)
        with monkeypatch.context() as away, pytest.raises(Unavailable):
            away.setattr(store, "commit", fail)
            await sender._round(webhook, Slow())
        assert arrived == [1, 2]

    app.run(story())


def test_what_is_on_its_way_is_not_cut_off_when_the_database_is_away(run, monkeypatch):
    going, go_on, away = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def slowly(event):
        going.set()
        await go_on.wait()
        return 204

    async def unavailable(sender):
        away.set()
        raise Unavailable

    async def story(app, receiver):
        receiver.answer = slowly
        hook = await subscribed(app, receiver)
        await tell(app, fact(1))
        async with asyncio.timeout(30):
            await going.wait()
            with monkeypatch.context() as patch:
                patch.setattr(sender_module.Sender, "_reconcile", unavailable)
                app.program.app._services["events"].webhooks.sender.look()
                await away.wait()
        for _ in range(10):  # who would be cut off has gone by then
            await asyncio.sleep(0)
        go_on.set()
        await until(app, hook, pending=0)
        assert len(receiver.got) == 1

    run(story)


def test_what_was_pruned_unsent_is_counted_once_however_much_it_is(app, monkeypatch):
    monkeypatch.setattr(eventlog, "MOST_LOOKED_AT", 2)
    app.run(tell(app.app, fact(1)))
    hook, rounds = refused(app)
    app.ask("PATCH", f"{ADDRESS}/{hook}", {"type": "baremetal.*"})
    app.run(tell(app.app, *(fact(n) for n in range(2, 11))))
    app.run(app.app.program.store.commit([Op("DELETE FROM events WHERE seq <= 8")]))
    shown = rounds(6)
    assert (shown["at"], shown["lost"], shown["pending"]) == (10, 7, 2)


def test_what_waited_for_another_has_all_its_own_time(app):
    """Its time to be given up begins with its first attempt, not when it was put in line."""
    made = app.ask("POST", ADDRESS, {"url": "https://192.0.2.1/"}).json["id"]
    app.run(tell(app.app, fact(1)))
    store = app.app.program.store

    async def story():
        entries = await eventlog.read(store)
        await store.commit([deliveries.add(store.dialect, made, entries, 5.0)])
        since = []
        for now in (100.0, 200.0):
            (one,) = await deliveries.due(store, made, now=now, limit=9)
            how = {"status": 500, "error": "x", "now": now, "due": now}
            await store.commit([deliveries.failed(one, **how)])
            (one,) = await deliveries.due(store, made, now=now, limit=9)
            since.append((one.attempts, one.since))
        return since

    assert app.run(story()) == [(1, 100.0), (2, 100.0)]


def test_only_so_much_waits_in_rows_the_log_itself_is_the_queue(app, monkeypatch):
    monkeypatch.setattr(sender_module, "MOST_WAITING", 3)
    monkeypatch.setattr(sender_module, "PAGE", 1)
    monkeypatch.setattr(sender_module, "AT_ONCE", 2)
    _, rounds = refused(app)
    app.run(tell(app.app, *(fact(n, resource=(NODE, OTHER)[n % 2]) for n in range(1, 9))))
    shown = rounds(8)
    assert (shown["at"], shown["pending"]) == (3, 3)


def test_what_is_due_is_found_at_once_however_much_waits_behind_it(app):
    """Also where PostgreSQL has not counted how much that is, or only while there was nothing."""
    store = app.app.program.store
    counted = "UPDATE pg_class SET reltuples = ?, relpages = ? WHERE relname = 'webhook_deliveries'"
    row = "'h', n, 'm', 'e', 'r' || (n % 5), 'pending', 0, 1.0, 1.0"
    numbers = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 20000)"

    async def told():
        async with asyncio.timeout(15):
            found = await deliveries.due(store, "h", now=2.0, limit=9)
            return [one.seq for one in found], await deliveries.next_due(store, "h")

    app.run(store.commit([Op(f"{deliveries._ADD}{numbers} SELECT {row} FROM c")]))
    assert app.run(told()) == ([1, 2, 3, 4, 5], 1.0)
    if store.dialect == "postgresql":
        app.run(store.commit([Op(counted, (0, 1))]))
        assert app.run(told()) == ([1, 2, 3, 4, 5], 1.0)
        app.run(store.commit([Op(counted, (-1, 0))]))


def test_of_a_few_resources_more_waits_in_rows_but_not_without_end(app, monkeypatch):
    monkeypatch.setattr(sender_module, "MOST_WAITING", 3)
    monkeypatch.setattr(sender_module, "MOST_OF_FEW", 5)
    monkeypatch.setattr(sender_module, "PAGE", 1)
    _, rounds = refused(app)
    app.run(tell(app.app, *(fact(n) for n in range(1, 9))))
    shown = rounds(8)
    assert (shown["at"], shown["pending"]) == (5, 5)


def test_a_resource_that_the_receiver_never_takes_holds_up_no_other_however_much_waits(
    run, monkeypatch
):
    monkeypatch.setattr(sender_module, "MOST_WAITING", 3)
    monkeypatch.setattr(sender_module, "_pause", lambda attempts: 600.0)

    async def story(app, receiver):
        receiver.answer = lambda event: 422 if event["resource"]["id"] == NODE else 204
        hook = await subscribed(app, receiver)
        await tell(app, *(fact(n) for n in range(1, 6)))
        await until(app, hook, pending=5)
        await tell(app, fact(6, resource=OTHER))
        assert numbers(await receiver.until(bool)) == [6]

    run(story)


def test_a_webhook_that_is_off_goes_on_where_it_was(run):
    async def story(app, receiver):
        hook = await subscribed(app, receiver)
        path = f"{ADDRESS}/{hook['id']}"
        await tell(app, fact(1))
        await receiver.until(bool)
        await until(app, hook, pending=0)
        assert (await app.ask("PATCH", path, {"enabled": False})).json["enabled"] is False
        await tell(app, fact(2))
        assert (await app.ask("PATCH", path, {"enabled": True})).status == 200
        assert numbers(await receiver.until(lambda got: len(got) == 2)) == [1, 2]
        assert (await app.ask("DELETE", path)).status == 204
        assert (await app.ask("GET", path)).status == 404
        assert (await app.ask("GET", ADDRESS)).json == {"webhooks": []}

    run(story)


def test_a_webhook_whose_task_ended_in_a_mishap_is_served_again(run, monkeypatch):
    """The database was away in the moment when it began."""
    mishaps = [OSError("away"), OSError("away")]

    async def get(store, uuid):
        if mishaps:
            raise mishaps.pop()
        return await WEBHOOKS.get(store, uuid)

    monkeypatch.setattr(sender_module, "WEBHOOKS", SimpleNamespace(get=get))
    monkeypatch.setattr(sender_module, "LOOK_S", 0.02)

    async def story(app, receiver):
        await subscribed(app, receiver)
        await tell(app, fact(1))
        assert numbers(await receiver.until(bool)) == [1]
        assert not mishaps

    run(story)


def test_facts_that_come_soon_after_each_other_are_looked_at_together(run, monkeypatch):
    """Many webhooks that each looked for each fact would leave no time to anybody."""
    monkeypatch.setattr(sender_module, "PACE_S", 0.2)
    looks, look = [], sender_module.Sender._look_through

    async def counted(sender, webhook):
        looks.append(webhook)
        return await look(sender, webhook)

    async def story(app, receiver):
        hook = await subscribed(app, receiver, type="*power_set*")
        await tell(app, fact(0, kind="power_set.end"))
        await receiver.until(bool)
        await until(app, hook, pending=0)
        monkeypatch.setattr(sender_module.Sender, "_look_through", counted)
        for n in range(1, 30):
            await tell(app, fact(n))
        await tell(app, fact(30, kind="power_set.end"))
        assert numbers(await receiver.until(lambda got: len(got) == 2)) == [0, 30]
        assert len(looks) < 15

    run(story)


def test_whichever_process_sends_hears_of_webhooks_that_are_made_at_another(
    tmp_path, postgres_url, monkeypatch
):
    monkeypatch.setattr(sender_module, "LOOK_S", 3600.0)

    async def story():
        options = {"webhook_allow": "127.0.0.0/8", "work": True}
        async with (
            receiving() as receiver,
            running(tmp_path / "a", postgres_url, **options) as one,
            running(tmp_path / "b", postgres_url, **options) as other,
        ):
            for app, number in ((one, 1), (other, 2)):
                hook = await subscribed(app, receiver)
                await tell(app, fact(number))
                assert numbers(await receiver.until(bool)) == [number]
                await until(app, hook, pending=0)
                assert (await app.ask("DELETE", f"{ADDRESS}/{hook['id']}")).status == 204
                receiver.got.clear()

    asyncio.run(story())


def test_a_test_says_what_came_of_it(run):
    async def story(app, receiver):
        hook = await subscribed(app, receiver)
        path = f"{ADDRESS}/{hook['id']}/test"
        answer = (await app.ask("POST", path)).json
        assert (answer["delivered"], answer["status"], answer["error"]) == (True, 204, None)
        assert receiver.got[0][1]["event_type"] == "siderite.webhook.test"
        receiver.answer = lambda event: 302
        answer = (await app.ask("POST", path)).json
        assert (answer["delivered"], answer["status"]) == (False, 302)
        assert "redirect" in answer["error"]
        assert len(receiver.got) == 2

    run(story)


def test_a_receiver_that_is_away_costs_only_time(tmp_path, database_url):
    async def story():
        async with receiving() as receiver:
            options = {"webhook_allow": "127.0.0.0/8", "work": True}
            async with running(tmp_path, database_url, **options) as app:
                receiver.answer = lambda event: 503
                hook = await subscribed(app, receiver)
                await tell(app, *(fact(n) for n in range(1, 8)))
                await until(app, hook, pending=7)
            receiver.answer = lambda event: 200
            async with running(tmp_path, database_url, **options) as app:
                got = await receiver.until(lambda got: len(got) >= 7)
                await until(app, hook, pending=0)
        assert numbers(got) == list(range(1, 8))

    asyncio.run(story())


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "JSON object"),
        ([], "JSON object"),
        ({"name": "x"}, "url is missing"),
        ({"url": "ftp://host/"}, "http or https"),
        ({"url": "http:///path"}, "such as https://host/path"),
        ({"url": "https://host:99999/"}, "not a URL"),
        ({"url": "https://user:pw@host/"}, "user or password"),
        ({"url": "https://ho st/"}, "printable ASCII"),
        ({"url": "https://hö.example/"}, "printable ASCII"),
        ({"url": "https://host/#x"}, "no fragment"),
        ({"url": "https://" + "h" * 3000}, "at most 2000"),
        ({"url": 7}, "url must be a text"),
        ({"url": "http://xn--/"}, "a host that cannot be"),
        ({"url": "http://xn--a.example/"}, "a host that cannot be"),
        ({"url": "http://256.1.1.1/"}, "a host that cannot be"),
        ({"url": "http://[v1.a]/"}, "a host that cannot be"),
        ({"url": "http://127.0.0.1:1/"}, "a loopback address"),
        ({"url": "http://localhost/"}, "a loopback address"),
        ({"url": "http://[::1]/"}, "a loopback address"),
        ({"url": "http://[::ffff:127.0.0.1]/"}, "a loopback address"),
        ({"url": "http://2130706433/"}, "a loopback address"),
        ({"url": "http://0.0.0.0/"}, "not the address of one machine"),
        ({"url": "http://169.254.169.254/latest"}, "a metadata service"),
        ({"url": "http://169.254.1.1/"}, "a link-local address"),
        ({"url": "http://[fe80::1]/"}, "a link-local address"),
        ({"url": "https://192.0.2.1/", "type": "instance.nothing"}, "No event has a type like"),
        ({"url": "https://192.0.2.1/", "type": "*.END"}, "lower case words"),
        ({"url": "https://192.0.2.1/", "resource": "n1"}, "no resource with the id or the name"),
        ({"url": "https://192.0.2.1/", "after": 7}, "beyond the end"),
        ({"url": "https://192.0.2.1/", "after": -1}, "number of the log"),
        ({"url": "https://192.0.2.1/", "after": True}, "number of the log"),
        ({"url": "https://192.0.2.1/", "enabled": "yes"}, "true or false"),
        ({"url": "https://192.0.2.1/", "secret": "short"}, "base64 of 24 to 64 bytes"),
        ({"url": "https://192.0.2.1/", "name": ""}, "1 to 255 characters"),
        ({"url": "https://192.0.2.1/", "colour": "red"}, "no field 'colour'"),
    ],
)
def test_what_cannot_be_is_said(one_fact, body, words):
    answer = one_fact.ask("POST", ADDRESS, body)
    assert (answer.status, words in answer.sentence) == (400, True), answer
    assert one_fact.ask("GET", ADDRESS).json == {"webhooks": []}


def test_there_are_only_so_many(one_fact, monkeypatch):
    monkeypatch.setattr(web, "MOST", 1)
    made = one_fact.ask("POST", ADDRESS, {"url": "https://192.0.2.1/"})
    try:
        answer = one_fact.ask("POST", ADDRESS, {"url": "https://192.0.2.1/"})
        assert (answer.status, "delete one first" in answer.sentence) == (409, True)
    finally:
        assert one_fact.ask("DELETE", f"{ADDRESS}/{made.json['id']}").status == 204


def test_one_project_does_not_use_up_the_webhooks_of_all(run, monkeypatch):
    monkeypatch.setattr(web, "MOST_OF_A_PROJECT", 1)

    async def story(app, receiver):
        _, token, _ = await app.person("member")
        _, other, _ = await app.person("member")
        for who, status in ((token, 201), (token, 409), (other, 201), (None, 201), (None, 201)):
            how = {"token": who} if who else {}
            answer = await app.ask("POST", ADDRESS, {"url": receiver.url}, **how)
            assert answer.status == status, answer

    run(story)


def test_a_project_has_webhooks_of_its_own_for_its_own_events(run):
    async def story(app, receiver):
        _, token, project = await app.person("member")
        _, reader, _ = await app.person("reader", project)
        _, other, _ = await app.person("member")
        body = {"url": receiver.url}
        mine = await app.ask("POST", ADDRESS, body, token=token)
        assert (mine.status, mine.json["project"]) == (201, project)
        path = f"{ADDRESS}/{mine.json['id']}"
        await tell(app, fact(1), fact(2, project=project), fact(3, project="x"))
        assert numbers(await receiver.until(bool)) == [2]
        for who, seen in ((token, 1), (reader, 1), (other, 0), (app.token, 1)):
            assert len((await app.ask("GET", ADDRESS, token=who)).json["webhooks"]) == seen
        assert (await app.ask("GET", path, token=other)).status == 404
        for method, more, data in (
            ("PATCH", "", {"enabled": False}),
            ("DELETE", "", None),
            ("POST", "/test", None),
            ("POST", "/replay", {"after": 0}),
        ):
            assert (await app.ask(method, path + more, data, token=reader)).status == 403
            assert (await app.ask(method, path + more, data, token=other)).status == 404
        for value in (None, "x"):
            refused = await app.ask("PATCH", path, {"project": value}, token=token)
            assert (refused.status, refused.json.get("project")) in ((403, None), (200, project))
        assert (await app.ask("POST", ADDRESS, body, token=reader)).status == 403
        assert (await app.ask("GET", path, token=token)).json["project"] == project

    run(story)


def test_nobody_opens_a_projects_webhook_to_what_others_do(run):
    """Its members see and change it; and one that was opened before shows no more either."""

    async def story(app, receiver):
        _, token, project = await app.person("member")
        mine = (await app.ask("POST", ADDRESS, {"url": receiver.url}, token=token)).json
        path = f"{ADDRESS}/{mine['id']}"
        for value in (None, "x"):
            refused = await app.ask("PATCH", path, {"project": value})
            assert (refused.status, project in refused.sentence) == (409, True), refused
        assert (await app.ask("PATCH", path, {"project": project, "name": "n"})).status == 200
        store = app.program.store
        before = await WEBHOOKS.get(store, mine["id"])
        opened = before.changed(0.0, {"project": None})
        await store.commit([WEBHOOKS.swap(before, opened)])
        await tell(app, fact(1), fact(2, project="x"), fact(3, project=project))
        assert numbers(await receiver.until(bool)) == [3]

    run(story)


def test_a_token_for_no_project_does_not_reach_the_webhooks_of_administrators(app):
    token = app.run(domain_person(app.app, "member"))
    url = "https://192.0.2.1/"
    hook = app.ask("POST", ADDRESS, {"url": url}).json
    path = f"{ADDRESS}/{hook['id']}"
    for method, address, body in (
        ("GET", ADDRESS, b""),
        ("POST", ADDRESS, {"url": url}),
        ("GET", path, b""),
        ("PATCH", path, {"url": "https://192.0.2.66/"}),
        ("DELETE", path, b""),
        ("POST", f"{path}/test", b""),
        ("GET", f"{path}/deliveries", b""),
    ):
        answer = app.ask(method, address, body, token=token)
        assert (answer.status, "Get one for a project" in answer.sentence) == (403, True), answer
    assert [one["url"] for one in app.ask("GET", ADDRESS).json["webhooks"]] == [url]


def test_a_webhook_of_administrators_is_not_theirs_whose_token_is_for_no_project(app):
    hook = app.ask("POST", ADDRESS, {"url": "https://192.0.2.1/"}).json
    nowhere = Who("u", "u", None, None, frozenset({"member"}))
    webhooks = app.app.program.app._services["events"].webhooks
    with pytest.raises(NotFound):
        app.run(webhooks.find(hook["id"], nowhere))
