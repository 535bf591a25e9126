"""The worker takes what is due, retries what broke and lets go of what it has when it stops."""

import asyncio
from functools import partial

import pytest

from siderite.core import leases
from siderite.core import work
from siderite.core.store import Lost
from siderite.core.store import open_store
from siderite.core.store.migrations import migrate
from siderite.core.transition import Cause
from siderite.core.transition import Door
from siderite.core.worker import Worker


async def world(handlers, story, slots=10):
    store = await open_store("sqlite://")
    await migrate(store)
    worker = Worker(store, handlers(store), owner="me", slots=slots)
    task = asyncio.create_task(worker.run())
    try:
        await story(store, worker)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await store.close()


def job(machine, kind="count"):
    return work.add(machine, "provision", kind, job="{}", now=0.0, deadline=work.FAR)


async def add(store, worker, machine, lane="provision"):
    """Have a job made through a door that knows the worker: the door."""
    door = Door(store, host="here")
    door.hands = worker
    change = door.change(Cause())
    change.work(work.add(machine, lane, "count", job="{}", now=change.now, deadline=work.FAR))
    await door.commit(change)
    return door


async def empty(store):
    async with asyncio.timeout(30):
        while (await work.depth(store))[0]:
            await asyncio.sleep(0.005)


def test_every_job_is_done_once_and_no_more_than_the_slots_at_once():
    seen, at_once, most = [], 0, 0

    def handlers(store):
        async def count(item):
            nonlocal at_once, most
            at_once += 1
            most = max(most, at_once)
            await asyncio.sleep(0.002)
            seen.append(item.machine)
            at_once -= 1
            await store.commit([work.done(item)])

        return {"count": count}

    async def story(store, worker):
        await store.commit([job(f"m{n}") for n in range(30)])
        worker.kick()
        await empty(store)

    asyncio.run(world(handlers, story, slots=4))
    assert sorted(seen) == sorted(f"m{n}" for n in range(30))
    assert most <= 4


def test_a_handler_that_breaks_is_tried_again_and_its_reason_is_shown():
    tries = []

    def handlers(store):
        async def breaks_twice(item):
            tries.append(item.attempts)
            if len(tries) < 3:
                raise ZeroDivisionError("a bug")
            await store.commit([work.done(item)])

        return {"count": breaks_twice}

    async def story(store, worker):
        await store.commit([job("m")])
        worker.kick()
        async with asyncio.timeout(10):
            while len(tries) < 1:
                await asyncio.sleep(0.005)
            while not (await work.of_machine(store, "m"))[0].reason:
                await asyncio.sleep(0.005)
        assert "ZeroDivisionError" in (await work.of_machine(store, "m"))[0].reason
        await empty(store)

    asyncio.run(world(handlers, story))
    assert tries == [0, 1, 2]


def test_a_handler_that_breaks_goes_on_from_what_it_had_committed():
    seen = []

    def handlers(store):
        async def breaks_after_a_step(item):
            seen.append((item.kind, item.job))
            if len(seen) == 1:
                kept = work.keep(item, kind="clean", job='{"index":1}', deadline=work.FAR)
                await store.commit([kept])
                raise ZeroDivisionError("a bug")
            await store.commit([work.done(item)])

        return {"count": breaks_after_a_step, "clean": breaks_after_a_step}

    async def story(store, worker):
        await store.commit([job("m")])
        worker.kick()
        await empty(store)

    asyncio.run(world(handlers, story))
    assert seen == [("count", "{}"), ("clean", '{"index":1}')]


def test_work_of_an_unknown_kind_is_kept_for_a_worker_that_knows_it():
    async def story(store, worker):
        await store.commit([job("m", kind="from the future")])
        worker.kick()
        async with asyncio.timeout(10):
            while not (await work.of_machine(store, "m"))[0].reason:
                await asyncio.sleep(0.005)

    asyncio.run(world(lambda store: {}, story))


@pytest.mark.parametrize("drain_s", [0.0, 0.1], ids=["at once", "when it may drain no longer"])
def test_a_stopped_worker_lets_go_of_what_it_has(drain_s):
    begun = asyncio.Event()

    async def story():
        store = await open_store("sqlite://")
        await migrate(store)

        async def for_ever(item):
            begun.set()
            await asyncio.sleep(3600)

        worker = Worker(store, {"count": for_ever}, owner="me", slots=1, drain_s=drain_s)
        task = asyncio.create_task(worker.run())
        await store.commit([job("m")])
        worker.kick()
        await begun.wait()
        assert await work.depth(store) == (1, 1)
        task.cancel()
        async with asyncio.timeout(20):
            await asyncio.gather(task, return_exceptions=True)
        assert await work.depth(store) == (1, 0)
        await store.close()

    asyncio.run(story())


def test_new_work_is_begun_by_the_process_that_makes_it_without_being_looked_for():
    begun = []

    def handlers(store):
        async def note(item):
            begun.append((item.machine, item.owner))
            await store.commit([work.done(item)])

        return {"count": note}

    async def story(store, worker):
        await asyncio.sleep(0.01)  # the worker has looked, and found nothing
        await add(store, worker, "m")
        assert await work.depth(store) == (1, 1), "leased in the commit that made it"
        await empty(store)

    asyncio.run(world(handlers, story))
    assert begun == [("m", "me")]


def test_work_for_a_machine_that_is_busy_waits_for_the_end_of_the_other_job():
    order = []
    go_on = asyncio.Event()

    def handlers(store):
        async def note(item):
            order.append(item.lane)
            if item.lane == "provision":
                await go_on.wait()
            await store.commit([work.done(item)])

        return {"count": note}

    async def story(store, worker):
        await asyncio.sleep(0.01)
        for lane in ("provision", "power"):
            await add(store, worker, "m", lane)
        await asyncio.sleep(0.02)
        assert order == ["provision"]
        go_on.set()
        await empty(store)

    asyncio.run(world(handlers, story))
    assert order == ["provision", "power"]


def test_a_machine_leased_elsewhere_is_not_begun_here(database_url):
    async def story():
        store = await open_store(database_url)
        await migrate(store)
        elsewhere = work.add("m", "power", "count", job="{}", now=0.0, deadline=work.FAR)
        await store.commit([elsewhere])
        assert (await leases.claim(store, "another", now=1.0, lease_s=1e10, limit=1))[0]
        worker = Worker(store, {}, owner="me", slots=10)
        task = asyncio.create_task(worker.run())
        await asyncio.sleep(0.05)
        await add(store, worker, "m")
        owners = {item.lane: item.owner for item in await work.of_machine(store, "m")}
        assert owners == {"power": "another", "provision": None}
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await store.close()

    asyncio.run(story())


@pytest.mark.parametrize("is_settled", [True, False])
def test_a_lease_that_ended_is_taken_over_unless_the_time_has_just_jumped(is_settled):
    async def story():
        store = await open_store("sqlite://")
        await migrate(store)
        await store.commit([work.add("m", "a", "count", job="{}", now=0.0, deadline=work.FAR)])
        assert (await leases.claim(store, "another", now=1.0, lease_s=10.0, limit=1))[0]
        worker = Worker(store, {}, owner="me", slots=10, is_settled=lambda: is_settled)
        task = asyncio.create_task(worker.run())
        await asyncio.sleep(0.05)
        [item] = await work.of_machine(store, "m")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await store.close()
        return item

    item = asyncio.run(story())
    assert (item.owner == "another") == (not is_settled)


@pytest.mark.parametrize("is_known_here", [True, False])
def test_who_found_nothing_leaves_to_others_what_is_new_but_not_what_nobody_takes(
    postgres_url, is_known_here
):
    now = 1000.0
    looks = []

    async def story():
        store = await open_store(postgres_url)
        await migrate(store)
        write = store.write

        async def looked(sql, args=()):
            answer = await write(sql, args)
            looks.append(sql)
            return answer

        store.write = looked
        worker = Worker(
            store, {"count": lambda item: store.commit([work.done(item)])},
            owner="me", slots=10, clock=lambda: now,
        )  # fmt: skip
        task = asyncio.create_task(worker.run())
        try:
            await hears(worker, times=3)  # the others were quicker, it seems
            await store.commit([work.add("m", "a", "count", job="{}", now=now, deadline=9e9)])
            if is_known_here:
                worker.kick()
            else:
                await hears(worker, times=3)
                assert not (await work.of_machine(store, "m"))[0].is_leased
                later()
            await empty(store)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await store.close()

    async def hears(worker, times):
        before = len(looks)
        async with asyncio.timeout(30):
            while len(looks) < before + times:
                worker.hear()
                await asyncio.sleep(0.005)

    def later():
        nonlocal now
        now += 1.0

    asyncio.run(story())


def test_a_draining_worker_ends_what_is_under_way_and_takes_nothing_new():
    begun, go_on = asyncio.Event(), asyncio.Event()
    ended = []

    async def story():
        store = await open_store("sqlite://")
        await migrate(store)

        async def step(item):
            begun.set()
            await go_on.wait()
            await store.commit([work.done(item)])
            ended.append(item.machine)

        worker = Worker(store, {"count": step}, owner="me", slots=10, drain_s=3600)
        task = asyncio.create_task(worker.run())
        await store.commit([job("m")])
        worker.kick()
        await begun.wait()
        task.cancel()
        await asyncio.sleep(0.05)
        assert worker.is_draining
        await store.commit([job("later")])
        worker.kick()
        await asyncio.sleep(0.05)
        assert not task.done(), "the step is still under way"
        go_on.set()
        await asyncio.gather(task, return_exceptions=True)
        assert ended == ["m"]
        assert await work.depth(store) == (1, 0), "the new one is left to others"
        await store.close()

    asyncio.run(story())


def test_a_draining_worker_that_is_hurried_leaves_its_steps_to_others_at_once():
    begun = asyncio.Event()

    async def story():
        store = await open_store("sqlite://")
        await migrate(store)

        async def for_ever(item):
            begun.set()
            await asyncio.sleep(3600)

        worker = Worker(store, {"count": for_ever}, owner="me", slots=1, drain_s=3600)
        task = asyncio.create_task(worker.run())
        await store.commit([job("m")])
        worker.kick()
        await begun.wait()
        task.cancel()
        await asyncio.sleep(0.05)
        assert not task.done(), "the step is still under way"
        worker.hurry()
        async with asyncio.timeout(20):
            await asyncio.gather(task, return_exceptions=True)
        assert await work.depth(store) == (1, 0)
        await store.close()

    asyncio.run(story())


def test_a_stopping_worker_keeps_its_leases_while_what_it_gives_up_comes_to_an_end(monkeypatch):
    monkeypatch.setattr("siderite.core.worker.RENEW_S", 0.01)
    begun, ended = asyncio.Event(), []

    async def story():
        store = await open_store("sqlite://")
        await migrate(store)

        async def slow_to_end(item):
            begun.set()
            try:
                await asyncio.sleep(3600)
            finally:  # as a copy that is called off between two pieces of it
                before = (await store.fetch("SELECT lease_until FROM work"))[0][0]
                async with asyncio.timeout(20):
                    while (await store.fetch("SELECT lease_until FROM work"))[0][0] == before:
                        await asyncio.sleep(0.01)
                ended.append(item.machine)

        worker = Worker(store, {"count": slow_to_end}, owner="me", slots=1)
        task = asyncio.create_task(worker.run())
        await store.commit([job("m")])
        worker.kick()
        await begun.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert ended == ["m"]
        assert await work.depth(store) == (1, 0)
        await store.close()

    asyncio.run(story())


def test_a_worker_that_is_cut_off_stops_in_time_though_its_clock_was_set_back(monkeypatch):
    monkeypatch.setattr("siderite.core.worker.LEASE_S", leases.GRACE_S + 0.3)
    monkeypatch.setattr("siderite.core.worker.RENEW_S", 0.05)
    began, stopped = asyncio.Event(), asyncio.Event()
    now = [1_000_000.0]

    async def drive(item):
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()

    async def cut_off(*args):
        raise OSError("cut off")

    async def story():
        store = await open_store("sqlite://")
        await migrate(store)
        clock = partial(now.__getitem__, 0)
        worker = Worker(store, {"count": drive}, owner="me", slots=1, clock=clock)
        await store.commit([job("one")])
        task = asyncio.create_task(worker.run())
        try:
            async with asyncio.timeout(10):
                await began.wait()
                monkeypatch.setattr(store, "write", cut_off)
                now[0] -= 3600
                await stopped.wait()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await store.close()

    asyncio.run(story())


def test_a_worker_whose_clock_was_set_back_goes_on_looking():
    clock = [1_000_000.0]
    done = asyncio.Event()

    async def story():
        store = await open_store("sqlite://")
        await migrate(store)

        async def count(item):
            await store.commit([work.done(item)])
            done.set()

        worker = Worker(store, {"count": count}, owner="me", slots=1, clock=lambda: clock[0])
        task = asyncio.create_task(worker.run())
        await asyncio.sleep(0.1)
        clock[0] -= 3600.0
        worker.due(clock[0] + 600.0)  # sooner than it was to look next, as that is an hour away now
        await store.commit([job("m")])  # as another process would: nobody here is told
        async with asyncio.timeout(10):
            await done.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await store.close()

    asyncio.run(story())


def test_what_is_claimed_after_leases_were_lost_is_not_stopped_with_those(monkeypatch):
    monkeypatch.setattr("siderite.core.worker.LEASE_S", leases.GRACE_S + 1.0)
    monkeypatch.setattr("siderite.core.worker.RENEW_S", 60.0)  # as if the database was away
    ended = []

    def handlers(store):
        async def drive(item):
            try:
                await asyncio.sleep(60 if item.machine == "before" else 0.4)
                await store.commit([work.done(item)])
                ended.append(item.machine)
            except asyncio.CancelledError:
                ended.append(f"{item.machine} was stopped")
                raise

        return {"count": drive}

    async def story(store, worker):
        await store.commit([job("before")])
        worker.kick()
        async with asyncio.timeout(20):
            while not ended:
                await asyncio.sleep(0.01)
            await store.commit([job("after")])
            worker.kick()
            while len(ended) < 2:
                await asyncio.sleep(0.01)

    asyncio.run(world(handlers, story))
    assert ended == ["before was stopped", "after"]


def _slow(monkeypatch, name, wait):
    """Have the answer of one of work's questions wait, though it is as of before."""
    ask = getattr(leases, name)

    async def slow(*args, **options):
        answer = await ask(*args, **options)
        await wait(answer)
        return answer

    monkeypatch.setattr(leases, name, slow)


def _drives_for(seconds, ended, begun=None):
    """A handler that tells how it ended."""

    async def drive(item):
        if begun is not None:
            begun.set()
        try:
            await asyncio.sleep(seconds)
            ended.append("done")
        except asyncio.CancelledError:
            ended.append("stopped")
            raise

    return lambda store: {"count": drive}


def test_a_job_that_begins_while_leases_are_renewed_goes_on(monkeypatch):
    monkeypatch.setattr("siderite.core.worker.RENEW_S", 0.02)
    begun, asked, go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()
    ended = []

    async def hold(ours):
        asked.set()
        await go_on.wait()

    async def story(store, worker):
        async with asyncio.timeout(20):
            await asked.wait()
            await store.commit([job("m")])
            worker.kick()
            await begun.wait()
            go_on.set()
            while not ended:
                await asyncio.sleep(0.01)
        assert ended == ["done"]

    _slow(monkeypatch, "renew", hold)
    asyncio.run(world(_drives_for(0.2, ended, begun), story))


def test_a_database_that_takes_seconds_to_renew_leases_does_not_cost_them(monkeypatch):
    monkeypatch.setattr("siderite.core.worker.LEASE_S", leases.GRACE_S + 1.0)
    monkeypatch.setattr("siderite.core.worker.RENEW_S", 0.2)
    ended = []

    async def story(store, worker):
        await store.commit([job("m")])
        worker.kick()
        async with asyncio.timeout(20):
            while not ended:
                await asyncio.sleep(0.01)
        assert ended == ["done"]

    # Twice as long as is between two of them.
    _slow(monkeypatch, "renew", lambda ours: asyncio.sleep(0.4))
    asyncio.run(world(_drives_for(2.5, ended), story))


def test_a_job_that_was_handed_back_while_it_was_claimed_is_not_begun(monkeypatch):
    monkeypatch.setattr("siderite.core.worker.RENEW_S", 0.02)
    handed_back = asyncio.Event()
    at_it, most = [], []

    def handlers(store):
        async def drive(item):
            at_it.append(item)
            most.append(len(at_it))
            await asyncio.sleep(0.3)
            at_it.remove(item)

        async def till_the_lease_is_gone(found):
            if found[0] and not handed_back.is_set():
                async with asyncio.timeout(20):
                    while (await work.depth(store))[1]:
                        await asyncio.sleep(0.005)
                handed_back.set()

        _slow(monkeypatch, "claim", till_the_lease_is_gone)
        return {"count": drive}

    async def story(store, worker):
        await store.commit([job("m")])
        worker.kick()
        async with asyncio.timeout(20):
            await handed_back.wait()
            while not most:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.2)

    asyncio.run(world(handlers, story))
    assert max(most) == 1, "two are at one machine"


def test_a_job_that_finds_itself_lost_after_its_end_does_not_cost_the_next_its_lease():
    begun, lost = asyncio.Event(), asyncio.Event()
    owners = []

    def handlers(store):
        async def first(item):
            await store.commit([work.done(item)])
            await begun.wait()
            asyncio.get_running_loop().call_later(0.2, lost.set)
            raise Lost("what it did after its end")

        async def second(item):
            begun.set()
            await lost.wait()
            owners.extend(one.owner for one in await work.of_machine(store, item.machine))
            await store.commit([work.done(item)])

        return {"count": first, "next": second}

    async def story(store, worker):
        later = work.add("m", "power", "next", job="{}", now=0.0, deadline=work.FAR)
        await store.commit([job("m"), later])
        worker.kick()
        await empty(store)

    asyncio.run(world(handlers, story))
    assert owners == ["me"], "somebody else could have begun it beside us"


def test_who_asks_for_what_is_a_matter_of_milliseconds_hears_that_it_is_done(monkeypatch):
    monkeypatch.setattr("siderite.core.worker.MOMENT_S", 30.0)  # this computer may be busy

    def handlers(store):
        async def quick(item):
            await store.commit([work.done(item)])

        return {"count": quick}

    async def story(store, worker):
        await asyncio.sleep(0)  # it begins to work
        for n in range(3):
            door = await add(store, worker, f"m{n}")
            await door.wait_a_moment(f"m{n}")
            assert await work.depth(store) == (0, 0)

    asyncio.run(world(handlers, story))


def test_who_asks_for_what_takes_its_time_waits_for_a_moment_once_and_then_not_at_all(monkeypatch):
    monkeypatch.setattr("siderite.core.worker.MOMENT_S", 0.01)
    begun, go_on = [], asyncio.Event()

    def handlers(store):
        async def slow(item):
            begun.append(item.machine)
            await go_on.wait()
            await store.commit([work.done(item)])

        return {"count": slow}

    async def story(store, worker):
        await asyncio.sleep(0)
        door = await add(store, worker, "first")
        await door.wait_a_moment("first")
        assert begun == ["first"] and await work.depth(store) == (1, 1)
        await asyncio.sleep(0.2)
        go_on.set()
        await empty(store)
        go_on.clear()
        await asyncio.sleep(0.01)  # the worker has heard of its end
        door = await add(store, worker, "second")
        await door.wait_a_moment("second")
        assert begun == ["first"]  # nothing was waited for
        go_on.set()
        await empty(store)

    asyncio.run(world(handlers, story))
