"""Pruning: old facts go, unless a reader with a place has not had them, and then not for ever."""

import asyncio
import re

import pytest

from siderite.core import eventlog
from siderite.core.store import Lost
from siderite.core.store import Op
from siderite.events import follower as following
from siderite.events import place
from siderite.events import retention
from siderite.events.follower import Follower
from siderite.events.retention import Retention
from siderite.events.webhooks import deliveries
from siderite.events.webhooks.webhook import WEBHOOKS
from tests.events.log import ADDRESS
from tests.events.log import fact
from tests.events.log import tell
from tests.support.app import running

DAY = 86400.0


@pytest.fixture
def run(tmp_path, database_url):
    def begin(story):
        async def all_of_it():
            async with running(tmp_path, database_url) as app:
                await story(app)

        asyncio.run(all_of_it())

    return begin


def later(app, days, *, keep=30.0, unread=90.0):
    """Retention as it will be in so many days."""
    return Retention(
        app.program.store,
        keep_s=keep * DAY,
        keep_unread_s=unread * DAY,
        history_s=7 * DAY,
        clock=lambda: app.program.door.clock() + days * DAY,
    )


async def numbers(app):
    return [entry.seq for entry in await eventlog.read(app.program.store)]


async def dealt(app, *seqs):
    """A webhook that has been dealt these facts: its id, and the first to be delivered."""
    made = await app.ask("POST", "/events/v1/webhooks", {"url": "https://192.0.2.1/"})
    store, hook = app.program.store, made.json["id"]
    entries = await eventlog.those(store, seqs)
    await store.commit([deliveries.add(store.dialect, hook, entries, 0.0)])
    (first,) = await deliveries.due(store, hook, now=1.0, limit=9)
    return hook, first


async def at(app, name, seq):
    """A reader with a place."""
    store = app.program.store
    before = await place.seq(store, name, begin_at=0, now=0.0)
    await store.commit([place.moved(name, before=before, after=seq, now=0.0)])


def test_old_facts_go_and_the_newest_stays(run):
    async def story(app):
        await tell(app, *(fact(n) for n in range(1, 6)))
        assert (await later(app, 29).prune()).removed == 0
        assert (await later(app, 31).prune()).removed == 4
        assert await numbers(app) == [5]
        await tell(app, fact(6))
        assert await numbers(app) == [5, 6]
        assert (await later(app, 999, keep=0.0).prune()).removed == 0

    run(story)


@pytest.mark.parametrize("chunk", [2, 1000])
def test_facts_told_by_a_clock_that_was_set_back_since_are_as_old_as_what_follows(
    run, monkeypatch, chunk
):
    monkeypatch.setattr(retention, "CHUNK", chunk)

    async def story(app):
        await tell(app, *(fact(n) for n in range(1, 9)))
        ahead = "UPDATE events SET at = at + ? WHERE seq BETWEEN 2 AND 6"
        await app.program.store.commit([Op(ahead, (999 * DAY,))])
        assert (await later(app, 29).prune()).removed == 0
        assert (await later(app, 31).prune()).removed == 7
        assert await numbers(app) == [8]

    run(story)


def test_what_a_reader_has_not_had_stays_up_to_a_limit_and_that_is_told(run):
    async def story(app):
        await tell(app, *(fact(n) for n in range(1, 6)))
        await at(app, "bus", 2)
        await at(app, "search", 5)
        pruned = await later(app, 31).prune()
        assert (pruned.removed, pruned.unread) == (2, 0)
        assert await numbers(app) == [3, 4, 5]
        assert (await later(app, 9999, unread=0.0).prune()).removed == 0
        assert (await later(app, 91, keep=100.0).prune()).removed == 0, "nothing goes before that"
        pruned = await later(app, 91).prune()
        assert (pruned.removed, pruned.unread) == (2, 2)
        assert await numbers(app) == [5]

    run(story)


def test_a_reader_that_lost_something_goes_on_and_says_so(run):
    async def story(app):
        await tell(app, *(fact(n) for n in range(1, 6)))
        await at(app, "bus", 2)
        await later(app, 91).prune()
        seen = []

        async def deal(entries):
            seen.extend(entry.seq for entry in entries)
            return []

        task = asyncio.create_task(Follower(app.program.store, "bus", eventlog.read, deal).run())
        async with asyncio.timeout(30):
            while await place.seq_of(app.program.store, "bus") != 5:
                await asyncio.sleep(0.01)
        task.cancel()
        assert seen == [5]
        report = (await app.ask("GET", "/events/v1/log")).json
        (bus,) = report["readers"]
        assert (bus["name"], bus["at"], bus["behind"], bus["lost"]) == ("bus", 5, 0, 2)
        assert (report["oldest"], report["newest"]) == (5, 5)

    run(story)


def test_what_is_pruned_while_a_reader_is_at_it_is_lost_too(run, monkeypatch):
    monkeypatch.setattr(following, "READ_AT_ONCE", 2)

    async def story(app):
        await tell(app, *(fact(n) for n in range(1, 9)))
        await at(app, "bus", 2)
        store = app.program.store

        async def read(store, *, after, limit):
            some = await eventlog.read(store, after=after, limit=limit)
            await store.commit([Op("DELETE FROM events WHERE seq <= 6")])
            return some

        async def deal(entries):
            assert [entry.seq for entry in entries] == [3, 4, 7, 8]
            return []

        task = asyncio.create_task(Follower(store, "bus", read, deal).run())
        async with asyncio.timeout(30):
            while await place.seq_of(store, "bus") != 8:
                await asyncio.sleep(0.01)
        task.cancel()
        assert [one.lost for one in await place.standings(store) if one.name == "bus"] == [2]

    run(story)


def test_of_two_that_follow_by_one_name_one_loses(run):
    async def story(app):
        await tell(app, fact(1), fact(2))
        await at(app, "bus", 1)
        store = app.program.store
        with pytest.raises(Lost):
            await store.commit([place.moved("bus", before=0, after=2, now=0.0)])
        assert await place.seq_of(store, "bus") == 1

    run(story)


def test_one_that_got_on_again_begins_with_short_pauses_again(run, monkeypatch):
    monkeypatch.setattr(following, "BACK_OFF_S", (0.0, 0.0, 3600.0))

    async def story(app):
        mishaps = [OSError(), OSError()]

        async def deal(entries):
            if mishaps:
                raise mishaps.pop()
            return []

        follower = Follower(app.program.store, "bus", eventlog.read, deal)
        task = asyncio.create_task(follower.run())
        try:
            async with asyncio.timeout(30):
                for n in (1, 2):
                    mishaps[:] = [OSError(), OSError()]
                    await tell(app, fact(n))
                    while await place.seq_of(app.program.store, "bus") != n:
                        follower.wake()
                        await asyncio.sleep(0.01)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    run(story)


def test_what_left_the_log_unsent_cannot_be_sent_again_and_that_is_said(run):
    async def story(app):
        await tell(app, fact(1))
        store, (hook, first) = app.program.store, await dealt(app, 1)
        gone = deliveries.given_up(first, status=None, error="gone", now=1.0, event=None)
        await store.commit([gone])
        path = f"/events/v1/webhooks/{hook}/deliveries/{first.id}/retry"
        answer = await app.ask("POST", path)
        assert (answer.status, "left the log" in answer.sentence) == (409, True)

    run(story)


def test_an_undelivered_webhook_keeps_its_facts(run):
    async def story(app):
        await tell(app, *(fact(n) for n in range(1, 6)))
        made = await app.ask(
            "POST", "/events/v1/webhooks", {"url": "https://192.0.2.1/", "after": 3}
        )
        assert made.status == 201
        assert (await later(app, 31).prune()).removed == 3
        (reader,) = await later(app, 31).readers()
        assert (reader.name, reader.seq) == (f"webhook {made.json['id']}", 3)
        assert (await app.ask("DELETE", f"/events/v1/webhooks/{made.json['id']}")).status == 204
        assert (await later(app, 31).prune()).removed == 1

    run(story)


def test_a_reader_that_is_gone_is_behind_in_no_metric(run):
    async def behind(app):
        page = (await app.ask("GET", "/metrics")).body.decode()
        return [line for line in page.splitlines() if 'log_behind{reader="webhook"}' in line]

    async def story(app):
        await tell(app, fact(1), fact(2))
        hook, _ = await dealt(app, 1)
        assert await behind(app)
        assert (await app.ask("DELETE", f"/events/v1/webhooks/{hook}")).status == 204
        assert not await behind(app)

    run(story)


def test_past_deliveries_go_a_few_at_a_time(run, monkeypatch):
    monkeypatch.setattr(retention, "CHUNK", 2)

    async def story(app):
        store, went = app.program.store, []
        await tell(app, *(fact(n) for n in range(1, 8)))
        hook, _ = await dealt(app, *range(1, 8))
        for moment in (0.0, 0.0, 0.0, 0.0, 0.0, app.program.door.clock()):
            (first,) = await deliveries.due(store, hook, now=1.0, limit=9)
            await store.commit([deliveries.delivered(first, status=200, now=moment)])
        write = store.write

        async def spied(sql, args=()):
            went.append(len(rows := await write(sql, args)))
            return rows

        monkeypatch.setattr(store, "write", spied)
        await later(app, 1).prune()
        left = await deliveries.page(store, hook, state=None, before=None, limit=9)
        assert ([one.seq for one in left], went) == ([7, 6], [2, 2, 1, 0])

    run(story)


def test_what_a_webhook_has_been_dealt_but_not_delivered_stays(run):
    """It is beyond it in the log, but the receiver has not had it."""

    async def story(app):
        await tell(app, *(fact(n) for n in range(1, 6)))
        store, (hook, first) = app.program.store, await dealt(app, 3, 4)
        assert (await later(app, 31).prune()).removed == 2
        assert await numbers(app) == [3, 4, 5]
        await store.commit([deliveries.delivered(first, status=200, now=0.0)])
        assert (await later(app, 31).prune()).removed == 1
        assert await deliveries.one(store, hook, first.id) is None  # past deliveries go too

    run(story)


def test_what_was_tried_and_is_to_be_tried_again_is_not_forgotten_with_the_past(run):
    async def story(app):
        await tell(app, fact(1))
        store, (hook, first) = app.program.store, await dealt(app, 1)
        tried = deliveries.failed(first, status=500, error="no", now=1.0, due=2.0)
        await store.commit([tried])
        await later(app, 8).prune()
        left = await deliveries.one(store, hook, first.id)
        assert (left.state, left.attempts) == ("pending", 1)

    run(story)


def test_a_webhook_that_lost_something_goes_on_and_says_so(run):
    async def story(app):
        await tell(app, *(fact(n) for n in range(1, 6)))
        body = {"url": "https://192.0.2.1/", "after": 2}
        path = "/events/v1/webhooks"
        path += "/" + (await app.ask("POST", path, body)).json["id"]
        assert (await later(app, 91).prune()).unread == 2
        sender = app.program.app._services["events"].webhooks.sender
        hook = await WEBHOOKS.get(app.program.store, path.rpartition("/")[2])
        assert await sender._look_through(hook) is True
        shown = (await app.ask("GET", path)).json
        assert (shown["at"], shown["lost"], shown["pending"]) == (5, 2, 1)

    run(story)


def test_who_asks_for_what_is_gone_is_told(run):
    async def story(app):
        await tell(app, *(fact(n) for n in range(1, 6)))
        await later(app, 31).prune()
        for accept in ("application/json", "text/event-stream"):
            answer = await app.ask("GET", f"{ADDRESS}?after=2", headers={"Accept": accept})
            assert (answer.status, "begins with 5" in answer.sentence) == (410, True)
        hook = {"url": "https://192.0.2.1/"}
        made = await app.ask("POST", "/events/v1/webhooks", {**hook, "after": 4})
        again = f"/events/v1/webhooks/{made.json['id']}/replay"
        for path, body in (("/events/v1/webhooks", {**hook, "after": 2}), (again, {"after": 2})):
            answer = await app.ask("POST", path, body)
            assert (answer.status, "begins with 5" in answer.sentence) == (410, True), answer
        for after in (0, 4, 5):
            assert (await app.ask("GET", f"{ADDRESS}?after={after}")).status == 200

    run(story)


MANY = """
INSERT INTO events (seq, message_id, event_type, at, publisher_id, priority, resource_type,
  resource, payload) SELECT n, n, 'a.b.start', 0, 'p', 'INFO', 'node', n % 500, '{}'
FROM generate_series(1, 20000) AS n RETURNING 1
"""


def test_what_goes_is_found_by_its_numbers_however_much_went_before(
    tmp_path, postgres, postgres_url
):
    """PostgreSQL last looked when nothing had gone: nearly all of the log was before these then."""

    async def story():
        async with running(tmp_path, postgres_url) as app:
            store = app.program.store
            await store.write(MANY)
            postgres.sql("ANALYZE events", url=postgres_url)
            commit, asked = store.commit, []

            async def listening(ops):
                asked.append(ops)
                await commit(ops)

            store.commit = listening
            now = app.program.door.clock
            kept = Retention(
                store, keep_s=DAY, keep_unread_s=0.0, history_s=DAY, remembered=["node"], clock=now
            )
            assert (await kept.prune()).removed == 19999
            return [op for ops in asked for op in ops if "FROM events" in op.sql]

    *_, remembered, forgotten, gone = asyncio.run(story())
    for op in (remembered, forgotten, gone):
        args = iter(op.args)
        sql = re.sub(r"\?", lambda _, args=args: repr(next(args)), op.sql)
        plan = postgres.sql(f"EXPLAIN {sql}", url=postgres_url)
        assert "Seq Scan on events" not in plan, plan
