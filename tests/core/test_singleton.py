"""A job that runs once, however many processes offer it."""

import asyncio

import pytest

from siderite.core.singleton import Singleton
from siderite.core.store import open_store
from siderite.core.store.migrations import migrate

LEASE_S = 0.3
UNTILS = "SELECT name, until FROM leases"


class Job:
    """Counts how often it is under way."""

    def __init__(self) -> None:
        self.running = 0
        self.most = 0
        self.starts = 0
        self.began = asyncio.Event()

    async def __call__(self) -> None:
        self.running += 1
        self.starts += 1
        self.most = max(self.most, self.running)
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.running -= 1


async def _untils(store):
    return dict(await store.fetch(UNTILS))


async def _began(job: Job) -> None:
    async with asyncio.timeout(20):
        await job.began.wait()


def test_only_one_process_runs_the_job_and_another_takes_over_when_it_stops(postgres_url):
    async def story():
        store = await open_store(postgres_url)
        await migrate(store)
        job = Job()
        offers = [
            asyncio.create_task(Singleton(store, "sweep", job, lease_s=LEASE_S).run())
            for _ in range(4)
        ]
        await _began(job)
        await asyncio.sleep(3 * LEASE_S)
        assert (job.running, job.starts) == (1, 1)
        for offer in offers[:3]:
            offer.cancel()
            await asyncio.gather(offer, return_exceptions=True)
        async with asyncio.timeout(20):
            while job.running != 1:
                await asyncio.sleep(0.01)
        assert job.most == 1
        offers[3].cancel()
        await asyncio.gather(*offers, return_exceptions=True)
        assert await store.fetch("SELECT * FROM leases") == []
        await store.close()

    asyncio.run(story())


def test_a_lease_whose_holder_died_ends_by_itself(postgres_url):
    async def story():
        store = await open_store(postgres_url)
        await migrate(store)
        died = Singleton(store, "sweep", Job(), lease_s=LEASE_S)
        assert await died._take()
        job = Job()
        offer = asyncio.create_task(Singleton(store, "sweep", job, lease_s=LEASE_S).run())
        await _began(job)
        assert await died._take() is False, "it comes too late"
        offer.cancel()
        await asyncio.gather(offer, return_exceptions=True)
        await store.close()

    asyncio.run(story())


def test_a_holder_that_lost_its_lease_stops(postgres_url):
    async def story():
        store = await open_store(postgres_url)
        await migrate(store)
        job = Job()
        offer = asyncio.create_task(Singleton(store, "sweep", job, lease_s=LEASE_S).run())
        await _began(job)
        await store.write(
            "UPDATE leases SET owner = 'somebody else', until = ? RETURNING name", (1e12,)
        )
        async with asyncio.timeout(20):
            while job.running:
                await asyncio.sleep(0.01)
        offer.cancel()
        await asyncio.gather(offer, return_exceptions=True)
        await store.close()

    asyncio.run(story())


def test_the_leases_of_many_jobs_are_renewed_together(postgres_url, monkeypatch):
    async def story():
        store = await open_store(postgres_url)
        await migrate(store)
        jobs = {f"job {n}": Job() for n in range(12)}
        offers = [
            asyncio.create_task(Singleton(store, name, job, lease_s=3.0).run())
            for name, job in jobs.items()
        ]
        for job in jobs.values():
            await _began(job)
        first, asked, use = await _untils(store), [], store._use

        async def counted(sql, ask):
            asked.append(sql)
            return await use(sql, ask)

        monkeypatch.setattr(store, "_use", counted)
        async with asyncio.timeout(20):
            while any(until <= first[name] for name, until in (await _untils(store)).items()):
                await asyncio.sleep(0.01)
        renewals = [sql for sql in asked if "leases" in sql and sql != UNTILS]
        assert 0 < len(renewals) < len(jobs) / 2
        for offer in offers:
            offer.cancel()
        await asyncio.gather(*offers, return_exceptions=True)
        await store.close()

    asyncio.run(story())


def test_a_holder_whose_database_falls_silent_stops_by_the_end_of_its_lease():
    class Silent:
        """A database that gives the lease once, and answers no more."""

        dialect = "postgresql"

        async def fetch(self, *_):
            return []

        async def write(self, *_):
            return [("me",)]

        async def commit(self, ops):
            if ops[0].sql.startswith("UPDATE"):
                await asyncio.Event().wait()

    async def story():
        job = Job()
        offer = asyncio.create_task(Singleton(Silent(), "sweep", job, lease_s=0.03).run())
        await _began(job)
        async with asyncio.timeout(5):
            while job.running:
                await asyncio.sleep(0.005)
        offer.cancel()
        await asyncio.gather(offer, return_exceptions=True)

    asyncio.run(story())


def test_a_job_that_fails_is_run_again(tmp_path, monkeypatch):
    monkeypatch.setattr("siderite.core.singleton.BACK_OFF_S", 0.0)

    async def story():
        store = await open_store(f"sqlite:///{tmp_path}/one.db")
        tries = []

        async def job():
            tries.append(1)
            if len(tries) < 3:
                raise RuntimeError("a bug")

        await Singleton(store, "sweep", job).run()
        assert len(tries) == 3
        await store.close()

    asyncio.run(story())


@pytest.mark.parametrize("name", ["sweep", "prune"])
def test_an_embedded_database_needs_no_lease(tmp_path, name):
    async def story():
        store = await open_store(f"sqlite:///{tmp_path}/one.db")
        job = Job()
        offer = asyncio.create_task(Singleton(store, name, job).run())
        await _began(job)
        offer.cancel()
        await asyncio.gather(offer, return_exceptions=True)
        assert job.running == 0
        await store.close()

    asyncio.run(story())
