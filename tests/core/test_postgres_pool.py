"""Connections are lent in order, given back whatever happens, and not used again when broken."""

import asyncio

import asyncpg
import pytest

from siderite.core.errors import Unavailable
from siderite.core.store import open_store
from siderite.core.store.migrations import migrate
from siderite.core.store.postgres_connect import Connector
from siderite.core.store.postgres_pool import PATIENCE_S as PATIENCE_S_OF_POOL
from siderite.core.store.postgres_pool import Pool

PATIENCE_S = 20


@pytest.fixture
def tell(postgres_url):
    """Tells a story about a pool of two."""

    def told(story):
        async def all_of_it():
            pool = Pool(Connector(postgres_url), 2)
            async with asyncio.timeout(PATIENCE_S):
                await story(pool)
                await pool.close()

        asyncio.run(all_of_it())

    return told


def test_who_finds_all_lent_waits_for_the_next_in_order(tell):
    async def story(pool):
        lent = [await pool.take(), await pool.take()]
        order = []

        async def ask(n):
            connection = await pool.take()
            order.append(n)
            await asyncio.sleep(0)
            pool.give_back(connection)

        asking = [asyncio.create_task(ask(n)) for n in range(5)]
        await asyncio.sleep(0)
        assert order == []
        for connection in lent:
            pool.give_back(connection)
        await asyncio.gather(*asking)
        assert order == [0, 1, 2, 3, 4]

    tell(story)


async def give_up_on_a_new_connection(pool):
    """Somebody wants one and stops waiting while it is made; the connections made from then on."""
    made, connect = [], pool._connector.connect

    async def seen(**options):
        made.append(await connect(**options))
        return made[-1]

    pool._connector.connect = seen
    early = asyncio.create_task(pool.take())
    while pool._opening is None:
        await asyncio.sleep(0)
    early.cancel()
    with pytest.raises(asyncio.CancelledError):
        await early
    return made


def test_who_stops_waiting_for_a_new_connection_leaves_it_to_others(tell):
    async def story(pool):
        made = await give_up_on_a_new_connection(pool)
        connection = await pool.take()
        assert await connection.fetchval("SELECT 1") == 1
        assert made == [connection]
        pool.give_back(connection)

    tell(story)


def test_a_pool_that_is_closed_while_it_makes_a_connection_lets_go_of_it(tell):
    found = []

    async def story(pool):
        found.append(await give_up_on_a_new_connection(pool))

    tell(story)
    assert [connection.is_closed() for connection in found[0]] == [True]


def test_a_connection_on_its_way_to_who_no_longer_wants_it_ends_with_the_pool(tell):
    async def story(pool):
        connection = await pool.take()
        waiting = asyncio.create_task(pool.take())
        await asyncio.sleep(0)
        pool.give_back(connection)
        waiting.cancel()
        await pool.close()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert connection.is_closed()

    tell(story)


def test_another_connection_is_made_only_for_who_has_waited_a_while(tell):
    async def story(pool):
        one = await pool.take()
        soon = asyncio.create_task(pool.take())
        await asyncio.sleep(0)
        pool.give_back(one)
        assert await soon is one
        another = await pool.take()
        assert another is not one, "nobody gave that one back"
        pool.give_back(one)
        pool.give_back(another)

    tell(story)


def test_connections_are_made_one_after_another(postgres_url):
    async def story():
        pool = Pool(Connector(postgres_url), 10)
        one = await pool.take()
        opened, may_open = [], asyncio.Event()
        make = pool._connector.connect

        async def slowly(**options):
            opened.append(options)
            await may_open.wait()
            return await make(**options)

        pool._connector.connect = slowly
        waiting = [asyncio.create_task(pool.take()) for _ in range(8)]
        await asyncio.sleep(PATIENCE_S_OF_POOL * 4)
        assert len(opened) == 1, "all have waited long enough, and one makes another"
        may_open.set()
        async with asyncio.timeout(PATIENCE_S):
            lent = [one, *await asyncio.gather(*waiting)]
        assert (len(opened), len(set(lent))) == (8, 9)
        for connection in lent:
            pool.give_back(connection)
        await pool.close()

    asyncio.run(story())


def test_nobody_looks_again_and_again_while_a_server_is_silent(postgres_url):
    async def story():
        pool = Pool(Connector(postgres_url), 10)
        looked, turn, speaks = [], pool._turn, asyncio.Event()

        async def silent(**_):
            await speaks.wait()
            raise OSError

        async def counted(patience_s):
            looked.append(patience_s)
            return await turn(patience_s)

        pool._connector.connect, pool._turn = silent, counted
        waiting = [asyncio.create_task(pool.take()) for _ in range(20)]
        await asyncio.sleep(PATIENCE_S_OF_POOL * 10)
        assert looked == [None] * 19
        for one in waiting:
            one.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        speaks.set()
        await pool.close()

    asyncio.run(story())


def test_a_start_makes_one_connection_for_itself_and_one_for_others(postgres_url):
    async def story():
        made, connect = [], asyncpg.connect

        async def counted(*args, **options):
            made.append(options)
            return await connect(*args, **options)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(asyncpg, "connect", counted)
            store = await open_store(postgres_url)
            await migrate(store)
            hearing = asyncio.create_task(store.listen({"heard": lambda: None}))
            await asyncio.sleep(0.1)
            assert await store.fetch("SELECT 1")
            assert len(made) == 2
            hearing.cancel()
            await asyncio.gather(hearing, return_exceptions=True)
            await store.close()

    asyncio.run(story())


def test_a_statement_goes_to_an_idle_connection_that_knows_it(tell):
    async def story(pool):
        knows, other = await pool.take("SELECT 1"), await pool.take("SELECT 2")
        pool.give_back(knows)
        pool.give_back(other)
        assert await pool.take("SELECT 1") is knows
        assert await pool.take("SELECT 1") is other
        pool.give_back(other)
        pool.give_back(knows)
        assert await pool.take("SELECT 1") is knows
        assert await pool.take("SELECT 3") is other
        pool.give_back(other)
        pool.give_back(knows)

    tell(story)


def test_whoever_stops_waiting_takes_nothing_along(tell):
    async def story(pool):
        lent = [await pool.take(), await pool.take()]
        early, late = (asyncio.create_task(pool.take()) for _ in range(2))
        await asyncio.sleep(0)
        early.cancel()
        pool.give_back(lent.pop())
        late.cancel()  # its turn has come, but it does not know yet
        await asyncio.gather(early, late, return_exceptions=True)
        pool.give_back(lent.pop())
        for connection in [await pool.take(), await pool.take()]:
            pool.give_back(connection)

    tell(story)


def test_a_connection_whose_statement_was_broken_off_is_not_used_again(postgres_url):
    async def story():
        store = await open_store(postgres_url)
        asked = asyncio.create_task(store.fetch("SELECT pg_sleep(60)"))
        await asyncio.sleep(0.1)
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        async with asyncio.timeout(PATIENCE_S):
            rows = await asyncio.gather(*(store.fetch("SELECT 1") for _ in range(30)))
        assert {row[0][0] for row in rows} == {1}
        await store.close()

    asyncio.run(story())


def test_a_statement_that_is_refused_costs_no_connection(postgres_url):
    async def story():
        store = await open_store(postgres_url)
        ours = (await store.fetch("SELECT pg_backend_pid()"))[0][0]
        with pytest.raises(asyncpg.PostgresError):
            await store.fetch("SELECT nothing")
        assert (await store.fetch("SELECT pg_backend_pid()"))[0][0] == ours
        await store.close()

    asyncio.run(story())


def test_a_connection_that_died_is_replaced(postgres, postgres_url):
    async def story():
        store = await open_store(postgres_url)
        ours = (await store.fetch("SELECT pg_backend_pid()"))[0][0]
        postgres.sql(f"SELECT pg_terminate_backend({ours}, 5000)")
        async with asyncio.timeout(PATIENCE_S):
            while True:
                try:
                    assert (await store.fetch("SELECT pg_backend_pid()"))[0][0] != ours
                    break
                except Unavailable:
                    await asyncio.sleep(0.01)
        await store.close()

    asyncio.run(story())


@pytest.mark.parametrize("limit", [1, 3])
def test_a_server_with_few_connections_for_us_is_asked_by_those_it_has(postgres, limit):
    async def story(url, name):
        store = await open_store(url.replace(f"siderite:{postgres.password}", f"{name}:x"))
        async with asyncio.timeout(PATIENCE_S):
            while True:  # until the server has noticed that the first connection is gone
                try:
                    await store.fetch("SELECT 1")
                    break
                except Unavailable:
                    await asyncio.sleep(0.1)
            for _ in range(2):
                asked = [store.write(f"SELECT {n} FROM pg_sleep(0.02)") for n in range(20)]
                assert [rows[0][0] for rows in await asyncio.gather(*asked)] == list(range(20))
            postgres.sql(
                f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{name}'",
                f"ALTER ROLE {name} CONNECTION LIMIT 0",
            )
            asked = [store.write("SELECT 1") for _ in range(20)]
            answers = await asyncio.gather(*asked, return_exceptions=True)
            assert {type(answer) for answer in answers} == {Unavailable}, "nobody waits for ever"
        await store.close()

    with postgres.fresh_database() as url:
        name = url.rpartition("/")[2]
        postgres.sql(f"CREATE ROLE {name} LOGIN PASSWORD 'x' CONNECTION LIMIT {limit}")
        postgres.sql(f"ALTER DATABASE {name} OWNER TO {name}")
        asyncio.run(story(url, name))
    postgres.sql(f"DROP ROLE {name}")


def test_those_who_wait_are_told_when_the_pool_is_closed(tell):
    async def story(pool):
        lent = [await pool.take(), await pool.take()]
        waiting = asyncio.create_task(pool.take())
        closing = asyncio.create_task(pool.close())
        await asyncio.sleep(0)
        pool.give_back(await _passed_on(pool, lent, waiting))
        await closing
        with pytest.raises(asyncpg.InterfaceError):
            await pool.take()

    async def _passed_on(pool, lent, waiting):
        for connection in lent:
            pool.give_back(connection)
        return await waiting

    tell(story)
