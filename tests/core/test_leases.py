"""Who has which job, and what time counts; on both databases."""

import asyncio

from siderite.core import leases
from siderite.core import work
from tests.core.test_sequencer import other_session
from tests.core.test_work import claim
from tests.core.test_work import job
from tests.core.test_work import migrated

HOURS_S = 36000.0


def test_time_in_which_nobody_could_work_does_not_count(database_url):
    """All were down, or the database was: parked, queued and held jobs keep what they had left."""

    async def story():
        async with migrated(database_url) as store:
            await store.commit([job("held", deadline=500.0)])
            assert await claim(store, "w1", now=1.0, lease_s=10.0)
            await store.commit([job("queued", deadline=400.0, now=11.0)])
            back = 11.0 + HOURS_S
            found = await claim(store, "w2", now=back)
            left = {item.machine: item.deadline - back for item in found}
            assert left == {"held": 500.0 - 11.0, "queued": 400.0 - 11.0}
            for item in found:
                await store.commit([work.park(item, due=back + 5.0, reason="asked")])
            again = await claim(store, "w2", now=back + 6.0)
            assert [item.deadline for item in again] == [item.deadline for item in found]

    asyncio.run(story())


def test_whoever_could_not_call_back_meanwhile_has_a_respite(database_url):
    async def story():
        async with migrated(database_url) as store:
            await store.commit([job("a", deadline=500.0)])
            [held] = await claim(store)
            await store.commit([work.park(held, due=work.FAR, reason="waits for a call")])
            [late] = await claim(store, now=HOURS_S)
            assert late.deadline == HOURS_S + leases.RESPITE_S
            await store.commit([work.park(late, due=work.FAR, reason="waits for a call")])
            [over] = await claim(store, now=late.deadline + 1.0)
            assert over.deadline == late.deadline, "it had its time"

    asyncio.run(story())


def test_a_job_on_which_workers_die_has_no_more_time_than_any(database_url):
    async def story():
        async with migrated(database_url) as store:
            await store.commit([job("a", deadline=500.0)])
            now = 1.0
            while now < 600.0:
                [held] = await claim(store, "w1", now=now, lease_s=10.0)
                assert held.deadline == 500.0
                for later in range(8, 80, 8):
                    await leases.renew(store, "w1", now=now + later, lease_s=10.0)
                now += 90.0
                await leases.forget(store, now)

    asyncio.run(story())


def test_what_waits_for_nobodys_time_is_left_as_it_is(database_url):
    async def story():
        async with migrated(database_url) as store:
            await store.commit([job("a", deadline=work.FAR)])
            await store.commit([job("b", deadline=500.0, pool="there")])
            most = {"lease_s": 10.0, "limit": 9, "pools": ["here"]}
            found, _ = await leases.claim(store, "w", now=HOURS_S, **most)
            deadlines = {item.machine: item.deadline for item in found}
            assert deadlines == {"a": work.FAR, "b": 500.0}, "another group's is to be failed"

    asyncio.run(story())


def test_just_after_the_time_has_jumped_no_lease_is_taken_over(database_url):
    async def story():
        async with migrated(database_url) as store:
            await store.commit([job("a"), job("b", due=50.0)])
            assert await claim(store, "w1", now=1.0, lease_s=10.0)
            most = {"now": HOURS_S, "lease_s": 10.0, "limit": 9}
            found, _ = await leases.claim(store, "w2", takes_over=False, **most)
            assert [item.machine for item in found] == ["b"], "nobody has that one"
            found, _ = await leases.claim(store, "w2", **most)
            assert [item.machine for item in found] == ["a"]

    asyncio.run(story())


def test_a_lease_that_ended_is_not_renewed(database_url):
    async def story():
        async with migrated(database_url) as store:
            await store.commit([job("a", deadline=500.0)])
            assert await claim(store, "w1", now=1.0, lease_s=10.0)
            assert await leases.renew(store, "w1", now=HOURS_S, lease_s=10.0) == {}
            [again] = await claim(store, "w1", now=HOURS_S)
            assert again.deadline > HOURS_S

    asyncio.run(story())


_TOUCH = "UPDATE work SET attempts = 0 WHERE machine = $1"
_UNTIL = "SELECT lease_until FROM work WHERE machine = 'a'"
_WAITS = "SELECT 1 FROM pg_locks WHERE NOT granted"


def test_a_commit_that_has_some_jobs_locked_and_wants_others_gets_them(postgres_url):
    """Who renews the leases of all of them waits for it with none in hand."""

    async def story():
        async with migrated(postgres_url) as store, other_session(postgres_url) as other:
            await store.commit([job("a"), job("b")])
            held = await claim(store, "w1", now=1.0, lease_s=10.0)
            async with other.transaction():
                await other.execute(_TOUCH, "b")
                renewal = asyncio.create_task(leases.renew(store, "w1", now=5.0, lease_s=10.0))
                while await other.fetchval(_UNTIL) != 15.0 and not await store.fetch(_WAITS):
                    assert not renewal.done(), await renewal
                await other.execute(_TOUCH, "a")
                assert not renewal.done(), "one is not renewed yet"
            assert await renewal == {one.fence: one.machine for one in held}
            assert await store.fetch("SELECT DISTINCT lease_until FROM work") == [(15.0,)]

    asyncio.run(story())


def test_a_job_that_ends_while_its_lease_is_to_be_renewed_is_not_waited_for(postgres_url):
    async def story():
        async with migrated(postgres_url) as store, other_session(postgres_url) as other:
            await store.commit([job("a"), job("b")])
            a, _ = await claim(store, "w1", now=1.0, lease_s=10.0)
            async with other.transaction():
                await other.execute("DELETE FROM work WHERE machine = 'b'")
                renewal = asyncio.create_task(leases.renew(store, "w1", now=5.0, lease_s=10.0))
                while await other.fetchval(_UNTIL) != 15.0 and not await store.fetch(_WAITS):
                    assert not renewal.done(), await renewal
            assert await renewal == {a.fence: "a"}

    asyncio.run(story())
