"""The log as server-sent events, in this process: what comes, when, and what ends it."""

import asyncio
import gc
import json
import statistics
import time
from contextlib import AsyncExitStack
from contextlib import aclosing

import pytest

from siderite.core import eventlog
from siderite.core import metrics
from siderite.core.errors import Unauthorized
from siderite.core.errors import Unavailable
from siderite.core.store import Op
from siderite.core.transition import Cause
from siderite.core.who import Who
from siderite.events import hub as hub_module
from siderite.events import stream as stream_module
from tests.events.log import ADDRESS
from tests.events.log import NODE
from tests.events.log import OTHER
from tests.events.log import PATIENCE_S
from tests.events.log import Stream
from tests.events.log import fact
from tests.events.log import tell
from tests.support.app import PASSWORD
from tests.support.app import running


def open_streams():
    return metrics.registry.get_sample_value("siderite_streams")


def impatient(app, keep_alive_s):
    """The same program, whose streams give signs of life more often."""
    app.program.app._services["events"]._keep_alive_s = keep_alive_s


def test_old_events_come_first_and_new_ones_as_they_happen(run):
    async def story(app):
        await tell(app, fact(1), fact(2))
        async with Stream.open(app) as stream:
            headers = dict(stream.start["headers"])
            assert headers[b"content-type"] == b"text/event-stream"
            assert b"content-length" not in headers
            assert await stream.numbers(2) == [1, 2]
            await tell(app, fact(3))
            event = await stream.event()
            assert (event.id, event.type) == (3, "baremetal.node.update.end")
            answer = await app.ask("GET", f"{ADDRESS}?after=2")
            assert json.loads(event.data) == answer.json["events"][0]

    run(story)


def test_readers_go_on_from_the_number_they_name(run):
    async def story(app):
        await tell(app, *(fact(n) for n in range(1, 6)))
        async with (
            Stream.open(app, "?after=3") as asked,
            Stream.open(app, "?after=1", last=4) as resumed,
            Stream.open(app, "?after=5") as newest,
        ):
            await tell(app, fact(6))
            assert await asked.numbers(3) == [4, 5, 6]
            assert await resumed.numbers(2) == [5, 6]
            assert await newest.numbers(1) == [6]

    run(story)


def test_filters_and_projects_cut_a_stream_old_and_new(run):
    async def story(app):
        _, token, project = await app.person("reader")
        facts = [
            fact(1),
            fact(2, kind="power_set.end", project="them"),
            fact(3, resource=OTHER, project=project),
        ]
        await tell(app, *facts)
        async with (
            Stream.open(app, "?type=*.power_set.*") as by_type,
            Stream.open(app, f"?resource={NODE}") as by_resource,
            Stream.open(app, "?project=them") as by_project,
            Stream.open(app, token=token) as own,
        ):
            await tell(app, *facts, *facts)
            assert await by_type.numbers(3) == [2, 5, 8]
            assert await by_project.numbers(3) == [2, 5, 8]
            assert await by_resource.numbers(6) == [1, 2, 4, 5, 7, 8]
            assert await own.numbers(3) == [3, 6, 9]

    run(story)


def test_readers_at_different_places_of_a_long_log_all_get_it_whole(run, monkeypatch):
    monkeypatch.setattr(hub_module, "BATCH", 7)

    async def story(app):
        monkeypatch.setattr(hub_module, "KEPT", 20)
        await tell(app, *(fact(n) for n in range(60)))
        async with (
            Stream.open(app) as first,
            Stream.open(app, "?after=30") as second,
            Stream.open(app, "?after=60") as third,
        ):

            async def writer():
                for n in range(30):
                    await tell(app, fact(n), fact(n))

            _, *seen = await asyncio.gather(
                writer(), first.numbers(120), second.numbers(90), third.numbers(60)
            )
            assert seen == [list(range(n, 121)) for n in (1, 31, 61)]

    run(story)


def test_a_flood_between_two_looks_is_read_from_the_log_and_not_mixed_up_with_what_is_kept(
    run, monkeypatch
):
    monkeypatch.setattr(hub_module, "BATCH", 7)
    monkeypatch.setattr(hub_module, "KEPT", 20)

    async def story(app):
        async with Stream.open(app) as stream:
            await tell(app, *(fact(n) for n in range(5)))
            assert await stream.numbers(5) == [1, 2, 3, 4, 5]
            await tell(app, *(fact(n) for n in range(30)))
            assert await stream.numbers(30) == list(range(6, 36))

    run(story)


def test_of_facts_that_say_much_fewer_are_at_hand_and_readers_get_all(run, monkeypatch):
    monkeypatch.setattr(hub_module, "MOST_KEPT", 2000)

    async def story(app):
        async with Stream.open(app) as stream:
            await stream.sign()
            await tell(app, *(fact(f'"{n}{"x" * 400}"') for n in range(40)))
            assert await stream.numbers(40) == list(range(1, 41))
            kept = [frame for _, frame in app.program.hub._kept]
            assert 0 < sum(map(len, kept)) <= 2000

    run(story)


def test_a_look_that_failed_is_made_again(run, monkeypatch):
    """Nobody else would wake the hub: the next fact may be hours away."""
    monkeypatch.setattr(hub_module, "POLL_S", 0.01)

    async def story(app):
        hub, mishaps = app.program.hub, [OSError("away"), OSError("away")]
        look = hub._look

        async def flaky():
            if mishaps:
                raise mishaps.pop()
            await look()

        monkeypatch.setattr(hub, "_look", flaky)
        async with Stream.open(app) as stream:
            await tell(app, fact(1))
            assert await stream.numbers(1) == [1]
            assert not mishaps

    run(story)


def test_a_quiet_stream_gives_signs_of_life_with_the_number_reached(run):
    async def story(app):
        impatient(app, 0.02)
        await tell(app, fact(1))
        async with Stream.open(app, "?type=*.error") as stream:
            reached = [(await stream.sign()).id for _ in range(3)]
            assert reached == sorted(reached)
            while (sign := await stream.sign()).id != 1:
                pass
            assert sign.data == ""

    run(story)


def test_a_stream_ends_when_its_token_does(run):
    async def story(app):
        _, token, _ = await app.person("reader")
        impatient(app, 0.02)
        async with Stream.open(app, token=token) as stream:
            await stream.sign()
            gone = {"X-Subject-Token": token}
            answer = await app.ask("DELETE", "/identity/v3/auth/tokens", headers=gone)
            assert answer.status == 204
            assert await stream.event() is None

    run(story)


def test_a_stream_ends_when_its_reader_may_no_longer_see_what_is_in_it(run):
    """Who was an administrator and is a member now comes again, and sees less."""

    async def story(app):
        name, _, project = await app.person("member")
        roles = (await app.ask("GET", "/identity/v3/roles?name=admin")).json["roles"]
        user = (await app.ask("GET", f"/identity/v3/users?name={name}")).json["users"][0]
        grant = f"/identity/v3/projects/{project}/users/{user['id']}/roles/{roles[0]['id']}"
        assert (await app.ask("PUT", grant)).status == 204
        impatient(app, 0.02)
        async with Stream.open(app, token=(name, PASSWORD)) as stream:
            for _ in range(5):
                assert await stream.sign() is not None
            assert (await app.ask("DELETE", grant)).status == 204
            assert await stream.event() is None
        async with Stream.open(app, token=(name, PASSWORD)) as own:
            for _ in range(5):
                assert await own.sign() is not None

    run(story)


def test_a_stream_of_all_ends_when_its_reader_is_left_with_a_token_for_no_project(run):
    """An outside Keystone may say of the same token that its roles are others now."""
    roles = {"admin", "member"}

    class Keystone:
        async def by_token(self, token):
            return Who("u", "u", None, None, frozenset(roles))

    async def story(app):
        app.program.app._services["events"]._who = Keystone()
        impatient(app, 0.02)
        async with Stream.open(app, token="theirs") as stream:
            for _ in range(5):
                assert await stream.sign() is not None
            roles.remove("admin")
            assert await stream.event() is None

    run(story)


def test_a_stream_goes_on_while_nobody_can_tell_whether_its_reader_may_have_it(run):
    """A Keystone, or a database, that is away for a moment has not said no."""
    troubles = [Unavailable(), Unavailable(), Unauthorized()]

    class Keystone:
        is_away = False

        async def by_token(self, token):
            if self.is_away:
                raise troubles.pop(0)
            return Who("u", "u", None, None, frozenset({"admin"}))

    async def story(app):
        keystone = app.program.app._services["events"]._who = Keystone()
        impatient(app, 0.02)
        async with Stream.open(app, token="theirs") as stream:
            assert await stream.sign() is not None
            keystone.is_away = True
            assert await stream.event() is None
        assert troubles == [], "it went on until it was said that the token is not good"

    run(story)


def test_a_reader_who_is_behind_goes_on_when_the_database_is_back(run, monkeypatch):
    monkeypatch.setattr(hub_module, "BATCH", 2)
    monkeypatch.setattr(stream_module, "_AWAY_S", 0.01)
    reading, troubles = eventlog.page, [Unavailable(), Unavailable()]

    async def away_at_first(store, *asked, **how):
        if troubles:
            raise troubles.pop()
        return await reading(store, *asked, **how)

    async def welcome():
        return True

    async def story(app):
        hub = app.program.hub
        hub._kept = type(hub._kept)(maxlen=1)
        await tell(app, *(fact(n) for n in range(1, 6)))
        monkeypatch.setattr(eventlog, "page", away_at_first)
        chunks = stream_module.follow(hub, eventlog.EVERYTHING, 0, is_welcome=welcome)
        async with asyncio.timeout(PATIENCE_S), aclosing(chunks):
            text = b""
            while b"id: 5\n" not in text:
                text += await anext(chunks)
        assert [b"id: %d\n" % n in text for n in range(1, 6)] == [True] * 5
        assert troubles == []

    run(story)


def test_a_reader_who_leaves_ends_the_stream(run):
    async def story(app):
        before = open_streams()
        async with Stream.open(app) as stream:
            await stream.sign()
            assert open_streams() == before + 1
            await stream.leave()
            assert open_streams() == before
        assert app.program.hub._readers == 0

    run(story)


def test_one_user_does_not_take_all_connections_for_streams(tmp_path):
    async def story():
        async with running(tmp_path, max_connections=8) as app:
            accept = {"Accept": "text/event-stream"}
            _, other, _ = await app.person("reader")
            async with Stream.open(app) as first, Stream.open(app) as second:
                await first.sign()
                await second.sign()
                refused = await app.ask("GET", ADDRESS, headers=accept)
                assert refused.status == 409
                assert "2 streams open already" in refused.json["error"]["message"]
                async with Stream.open(app, token=other) as others:
                    await others.sign()
                await first.leave()
                async with Stream.open(app) as third:
                    await third.sign()

    asyncio.run(story())


def test_nor_by_asking_for_many_at_once(tmp_path):
    async def story():
        async with running(tmp_path, max_connections=8) as app, AsyncExitStack() as opened:
            ways = [opened.enter_async_context(Stream.open(app)) for _ in range(6)]
            answers = [stream.start["status"] for stream in await asyncio.gather(*ways)]
            assert sorted(answers) == [200, 200, 409, 409, 409, 409]

    asyncio.run(story())


def test_a_stream_that_is_given_up_before_its_first_word_does_not_count(tmp_path):
    async def story():
        async with running(tmp_path, max_connections=4) as app:
            accept = {"Accept": "text/event-stream"}
            head = await app.ask("HEAD", ADDRESS, headers=accept)
            assert head.status == 200
            lost = Stream(app, "", token=None, last=None)
            with pytest.raises(ConnectionError):
                await lost._app(lost._scope, lost._receive, gone)
            gc.collect()
            await asyncio.sleep(0.01)
            async with Stream.open(app) as stream:
                assert stream.start["status"] == 200

    async def gone(message):
        raise ConnectionError

    asyncio.run(story())


def test_closing_the_hub_ends_every_stream(run):
    async def story(app):
        async with Stream.open(app) as one, Stream.open(app) as other:
            await one.sign()
            await other.sign()
            app.program.hub.close()
            assert [await one.sign(), await other.sign()] == [None, None]
            async with asyncio.timeout(PATIENCE_S):
                await asyncio.gather(one.task, other.task)

    run(story)


def test_a_reader_that_stops_reading_holds_up_neither_commits_nor_other_readers(run):
    async def story(app):
        async with Stream.open(app) as _stuck, Stream.open(app) as reader:
            for n in range(50):
                await tell(app, fact(n))
            assert await reader.numbers(50) == list(range(1, 51))

    run(story)


def test_facts_of_another_process_are_found(tmp_path, postgres_url):
    async def story():
        async with (
            running(tmp_path / "a", postgres_url, work=True) as here,
            running(tmp_path / "b", postgres_url) as there,
            Stream.open(here) as stream,
        ):
            await stream.sign()
            await tell(there, fact(1))
            assert await stream.numbers(1) == [1]

    asyncio.run(story())


def test_a_fact_is_found_though_whoever_committed_it_was_cancelled_meanwhile(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app, Stream.open(app) as stream:
            await stream.sign()
            change = app.program.door.change(Cause())
            change.tell(fact(1))
            committing = asyncio.create_task(app.program.door.commit(change))
            await asyncio.sleep(0)
            committing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await committing
            assert await stream.numbers(1) == [1]

    asyncio.run(story())


@pytest.mark.serial
def test_a_fact_reaches_its_readers_at_once(run):
    async def story(app):
        lags = []
        async with Stream.open(app) as stream:
            await stream.sign()
            for n in range(20):
                change = app.program.door.change(Cause())
                change.tell(fact(n))
                await app.program.door.commit(change)
                committed = time.perf_counter()
                await stream.event()
                lags.append(time.perf_counter() - committed)
        assert statistics.median(lags) < 0.1, lags

    run(story)


def test_streams_end_when_the_log_goes_back_and_their_numbers_are_refused(run):
    """As after the restore of a backup, or the take-over of a replica that was behind."""

    async def story(app):
        await tell(app, *(fact(n) for n in range(1, 6)))
        async with Stream.open(app) as stream:
            assert await stream.numbers(5) == [1, 2, 3, 4, 5]
            await app.program.store.commit([Op("DELETE FROM events WHERE seq > 3")])
            app.program.hub.wake()
            assert await stream.event() is None
        answer = await app.ask("GET", ADDRESS, headers={"last-event-id": "5", **_STREAMED})
        assert (answer.status, "beyond the end" in answer.sentence) == (400, True)

    run(story)


def test_a_stream_ends_though_the_log_has_grown_past_it_again_and_says_where_to_go_on(run):
    """Under load the first look at a replica that was behind may come after many new commits."""

    async def story(app):
        hub, store = app.program.hub, app.program.store
        await tell(app, *(fact(n) for n in range(1, 6)))
        async with Stream.open(app) as stream:
            assert await stream.numbers(5) == [1, 2, 3, 4, 5]
            await store.commit([Op("UPDATE events SET message_id = 'other' WHERE seq IN (4, 5)")])
            await tell(app, *(fact(n) for n in range(6, 9)))
            hub.wake()
            said = []
            async with asyncio.timeout(PATIENCE_S):
                while (sign := await stream.sign()) is not None:
                    said.append(sign)
            assert [(sign.id, sign.data) for sign in said][-1] == (3, "")
        async with Stream.open(app, last=3) as again:
            assert await again.numbers(5) == [4, 5, 6, 7, 8]

    run(story)


def test_a_reader_whose_next_facts_are_pruned_meanwhile_is_not_led_past_them(run, monkeypatch):
    """Its stream ends; coming again with its last number it is told so (410)."""
    monkeypatch.setattr(hub_module, "BATCH", 2)
    monkeypatch.setattr(hub_module, "KEPT", 1)

    async def welcome():
        return True

    async def story(app):
        hub = app.program.hub
        hub._kept = type(hub._kept)(maxlen=1)
        await tell(app, *(fact(n) for n in range(1, 10)))
        chunks = stream_module.follow(hub, eventlog.EVERYTHING, 0, is_welcome=welcome)
        async with asyncio.timeout(PATIENCE_S), aclosing(chunks):
            await anext(chunks)
            assert b"id: 2\n" in await anext(chunks)
            await app.program.store.commit([Op("DELETE FROM events WHERE seq < 6")])
            assert [chunk async for chunk in chunks] == []
        answer = await app.ask("GET", ADDRESS, headers={"last-event-id": "2", **_STREAMED})
        assert answer.status == 410

    run(story)


def test_a_page_that_is_pruned_while_it_is_read_is_not_shown_with_a_hole(run, monkeypatch):
    async def story(app):
        await tell(app, *(fact(n) for n in range(1, 10)))
        reading = eventlog.page

        async def pruned_first(store, *asked, **how):
            await store.commit([Op("DELETE FROM events WHERE seq < 6")])
            return await reading(store, *asked, **how)

        monkeypatch.setattr(eventlog, "page", pruned_first)
        answer = await app.ask("GET", f"{ADDRESS}?after=2")
        assert (answer.status, "begins with 6" in answer.sentence) == (410, True)

    run(story)


_STREAMED = {"accept": "text/event-stream"}
