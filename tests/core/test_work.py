"""Durable work: leases, fences, order per machine; on both databases."""

import asyncio
from contextlib import asynccontextmanager

import asyncpg
import pytest

from siderite.core import leases
from siderite.core import work
from siderite.core.store import Lost
from siderite.core.store import Op
from siderite.core.store import open_store
from siderite.core.store.migrations import migrate
from tests.support.lending import prepare_file


@asynccontextmanager
async def migrated(url):
    await prepare_file(url)
    store = await open_store(url)
    await migrate(store)
    try:
        yield store
    finally:
        await store.close()


def job(machine, lane="provision", *, now=0.0, due=None, deadline=1000.0, kind="clean", pool=None):
    return work.add(machine, lane, kind, job="{}", now=now, due=due, deadline=deadline, pool=pool)


async def claim(store, owner="w1", *, now=1.0, lease_s=10.0, limit=100):
    found, _ = await leases.claim(store, owner, now=now, lease_s=lease_s, limit=limit)
    return sorted(found, key=lambda item: item.machine)


def test_due_work_is_claimed_once(database_url):
    async def story():
        async with migrated(database_url) as store:
            await store.commit([job("a"), job("b"), job("later", due=50.0)])
            assert [item.machine for item in await claim(store)] == ["a", "b"]
            assert await claim(store, "w2") == []

    asyncio.run(story())


def test_many_workers_share_the_work_and_none_is_given_twice(database_url):
    async def story():
        async with migrated(database_url) as store:
            for n in range(60):
                await store.commit([job(f"m{n}")])
            claims = await asyncio.gather(*(claim(store, f"w{n}", limit=10) for n in range(12)))
            machines = [item.machine for found in claims for item in found]
            assert len(machines) == len(set(machines))
            rest = await claim(store, "last")
            assert len(machines) + len(rest) == 60

    asyncio.run(story())


def test_a_job_that_breaks_is_tried_at_its_deadline_and_then_no_more_often_than_before(
    database_url,
):
    """As one of a kind that only a newer version knows."""

    async def story():
        async with migrated(database_url) as store:
            await store.commit([job("a", deadline=5.0)])
            [held] = await claim(store, now=1.0)
            await store.commit([work.again(held, due=8.0, reason="it broke")])
            [held] = await claim(store, now=5.0)
            await store.commit([work.again(held, due=9.0, reason="it broke")])
            assert await claim(store, now=6.0) == []
            assert len(await claim(store, now=9.0)) == 1

    asyncio.run(story())


def test_one_machine_is_leased_to_one_worker_at_a_time_whatever_the_lane(database_url):
    async def story():
        async with migrated(database_url) as store:
            await store.commit([job("a", "provision")])
            await store.commit([job("a", "power", kind="power")])
            first = await claim(store)
            assert [item.lane for item in first] == ["provision"]
            assert await claim(store, "w2") == []
            await store.commit([work.done(first[0])])
            assert [item.lane for item in await claim(store, "w2")] == ["power"]

    asyncio.run(story())


def test_a_dead_workers_work_is_taken_over_and_the_dead_one_is_fenced_off(database_url):
    async def story():
        async with migrated(database_url) as store:
            await store.commit([job("a")])
            [dead] = await claim(store, "dead", now=1.0, lease_s=10.0)
            assert await claim(store, "heir", now=5.0) == []
            [taken] = await claim(store, "heir", now=13.5)
            assert taken.fence > dead.fence
            with pytest.raises(Lost):
                await store.commit([work.done(dead)])
            await store.commit([work.done(taken)])

    asyncio.run(story())


@pytest.mark.parametrize("dead", ["power", "provision"])
def test_a_dead_workers_work_does_not_wait_for_other_work_that_waits_for_it(database_url, dead):
    async def story():
        async with migrated(database_url) as store:
            lanes = ("provision", "power")
            for lane in lanes:
                away = 0.0 if lane == dead else 5.0
                await store.commit([job("m", lane, due=away)])
            (held,) = await claim(store, "w1", now=1.0)
            assert held.lane == dead
            assert await claim(store, "w2", now=6.0) == [], "its lease has not ended yet"
            (taken,) = await claim(store, "w2", now=20.0)
            assert taken.lane == dead
            await store.commit([work.done(taken)])
            (rest,) = await claim(store, "w2", now=21.0)
            assert {rest.lane, dead} == set(lanes)

    asyncio.run(story())


def test_a_claim_that_the_database_lost_is_not_taken_for_a_later_one(database_url):
    """A replica without the last commits took over: the row is as it was before the claim."""

    async def story():
        async with migrated(database_url) as store:
            new = job("a")
            await store.commit([new])
            [lost] = await claim(store, "before")
            undone = "UPDATE work SET owner = NULL, lease_until = NULL, fence = ?"
            await store.commit([Op(undone, (new.job.fence,), 1)])
            [held] = await claim(store, "after")
            with pytest.raises(Lost):
                await store.commit([work.done(lost)])
            await store.commit([work.done(held)])

    asyncio.run(story())


def test_renewed_leases_are_not_taken_over(database_url):
    async def story():
        async with migrated(database_url) as store:
            await store.commit([job("a")])
            [held] = await claim(store, "w1", now=1.0)
            assert await leases.renew(store, "w1", now=9.0, lease_s=10.0) == {held.fence: "a"}
            assert await claim(store, "w2", now=12.0) == []

    asyncio.run(story())


def test_a_newer_request_fences_off_whoever_holds_the_old_job(database_url):
    async def story():
        async with migrated(database_url) as store:
            await store.commit([job("a", kind="deploy")])
            [held] = await claim(store)
            await store.commit([job("a", kind="teardown", now=2.0)])
            with pytest.raises(Lost):
                await store.commit([work.keep(held, kind="deploy", job="{}", deadline=100.0)])
            assert await claim(store, "w2", now=3.0) == [], "the old holder may still be at it"
            await store.commit([leases.release("w1", "a", 3.5)])
            assert [item.kind for item in await claim(store, "w2", now=4.0)] == ["teardown"]

    asyncio.run(story())


def test_a_dropped_job_is_gone_when_its_holder_has_let_go(database_url):
    async def story():
        async with migrated(database_url) as store:
            await store.commit([job("a"), job("b")])
            [held] = await claim(store, limit=1)
            for machine in ("a", "b"):
                await store.commit(list(work.drop(machine, "provision")))
            await store.commit([job(held.machine, "power", kind="power")])
            assert await claim(store, "w2", now=2.0) == [], "the holder may still be at it"
            with pytest.raises(Lost):
                await store.commit([work.done(held)])
            [left] = await claim(store, "w2", now=13.5)
            assert left.kind == work.GONE, "its holder has died meanwhile"
            await store.commit([work.done(left)])
            assert [item.kind for item in await claim(store, "w2", now=14.0)] == ["power"]

    asyncio.run(story())


@pytest.mark.parametrize("owner", [None, "w1"])
def test_a_job_is_dropped_that_is_claimed_or_parked_at_that_moment(postgres_url, owner):
    """Another process changes its owner, and that is not committed yet."""
    turn = "UPDATE work SET owner = $1, lease_until = 20.0 WHERE machine = 'a'"

    async def story():
        async with migrated(postgres_url) as store:
            other = await asyncpg.connect(postgres_url)
            await store.commit([job("a")])
            await other.execute(turn, None if owner else "w2")
            async with other.transaction():
                await other.execute(turn, owner)
                dropping = asyncio.create_task(store.commit(list(work.drop("a"))))
                await asyncio.sleep(0.2)
                assert not dropping.done()
            await dropping
            await other.close()
            assert [item.kind for item in await work.of_machine(store, "a")] == [work.GONE]

    asyncio.run(story())


def test_new_work_is_not_leased_in_the_place_of_what_another_holds(database_url):
    async def story():
        async with migrated(database_url) as store:
            await store.commit([job("a")])
            [held] = await claim(store)
            leased, _ = job("a", kind="teardown").leased("w2", 20.0)
            with pytest.raises(Lost):
                await store.commit([leased])
            await store.commit([work.done(held)])
            await store.commit([leased])
            assert await work.depth(store) == (1, 1)

    asyncio.run(story())


def test_parked_work_is_as_far_as_it_was_kept(database_url):
    async def story():
        async with migrated(database_url) as store:
            await store.commit([job("a")])
            [held] = await claim(store)
            await store.commit([work.keep(held, job='{"place": 1}')])
            await store.commit([work.park(held, due=2.0, reason="it boots")])
            [again] = await claim(store, now=3.0)
            assert again.job == '{"place": 1}'

    asyncio.run(story())


def test_parked_work_comes_back_when_due_or_at_its_deadline_or_when_woken(database_url):
    async def story():
        async with migrated(database_url) as store:
            await store.commit([job("a", deadline=30.0), job("b")])
            a, b = await claim(store)
            park = {"kind": "clean", "job": "{}", "reason": "the ramdisk boots"}
            await store.commit([work.park(a, due=999.0, deadline=30.0, **park)])
            await store.commit([work.park(b, due=20.0, deadline=1000.0, **park)])
            assert await claim(store, now=10.0) == []
            assert await leases.next_due(store) == 20.0
            most = {"lease_s": 10.0, "limit": 5}
            assert await leases.claim(store, "w", now=9.0, **most) == ([], 20.0)
            assert await leases.claim(store, "w", now=21.0, waited_s=2.0, **most) == ([], 20.0)
            [taken], due = await leases.claim(store, "w", now=21.0, waited_s=1.0, **most)
            assert (taken.machine, due) == ("b", 30.0)
            [late] = await claim(store, "w2", now=30.0)
            assert (late.machine, late.reason) == ("a", "the ramdisk boots")
            await store.commit([work.park(late, due=500.0, deadline=900.0, **park)])
            await store.commit([work.wake("a", "provision", 31.0)])
            assert [item.machine for item in await claim(store, now=31.0)] == ["a"]

    asyncio.run(story())


def test_jobs_that_would_look_later_look_at_once_when_they_are_hastened(database_url):
    async def story():
        async with migrated(database_url) as store:
            await store.commit([job("a"), job("b"), job("c"), job("d")])
            a, b, c, _ = sorted(await claim(store), key=lambda item: item.machine)
            park = {"kind": "clean", "job": "{}", "reason": "the BMC is away"}
            await store.commit([work.park(a, due=300.0, deadline=900.0, **park)])
            await store.commit([work.park(b, due=900.0, deadline=900.0, **park)])
            await store.commit([work.park(c, due=300.0, deadline=900.0, **park)])
            for machine in ("a", "b", "d"):
                await store.commit([work.hasten(machine, 5.0)])
            assert [item.machine for item in await claim(store, now=5.0)] == ["a"]

    asyncio.run(story())


def test_forgotten_leases_are_free_again(database_url):
    async def story():
        async with migrated(database_url) as store:
            await store.commit([job("a"), job("b")])
            await claim(store, "w1")
            assert await work.depth(store) == (2, 2)
            await leases.forget(store, 5.0, "w1")
            assert await work.depth(store) == (2, 0)

    asyncio.run(story())
