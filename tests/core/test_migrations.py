"""Migrations: each runs once, in order, and old data comes along."""

import asyncio

import asyncpg

from siderite.baremetal.domain.chassis import Chassis
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.port import Port
from siderite.baremetal.store import CHASSIS
from siderite.baremetal.store import NODES
from siderite.baremetal.store import PORTS
from siderite.core import eventlog
from siderite.core import sequencer
from siderite.core.fact import Fact
from siderite.core.store import Op
from siderite.core.store import migrations
from siderite.core.store import open_store
from siderite.core.store import postgres
from siderite.core.store.migrations import for_dialect
from siderite.core.store.migrations import migrate
from siderite.core.store.migrations import pending


def test_a_second_start_runs_none(bare_database_url):
    async def story():
        store = await open_store(bare_database_url)
        assert [name for name, _ in pending(set())] == await migrate(store)
        assert await migrate(store) == []
        await store.close()

    asyncio.run(story())


def test_what_a_newer_version_did_is_seen(bare_database_url):
    async def story():
        store = await open_store(bare_database_url)
        await migrate(store)
        assert await migrations.of_the_future(store) == []
        await store.commit([Op("INSERT INTO migrations VALUES ('compute/9999_x.sql')", (), 1)])
        assert await migrations.of_the_future(store) == ["compute/9999_x.sql"]
        await store.close()

    asyncio.run(story())


def test_nodes_without_a_state_become_available(bare_database_url):
    """Seed 004: NOSTATE was NULL in the database; it is AVAILABLE from now on."""

    async def story():
        store = await open_store(bare_database_url)
        await migrate(store)
        node = Node(
            uuid="11111111-1111-4111-8111-111111111111",
            created_at="2026-01-01T00:00:00.000000+00:00",
            driver="fake-hardware",
            provision_state="available",
        )
        old = NODES.insert(node)
        # As an old release wrote it: NULL, in the column and in both texts.
        columns = old.sql.split("(")[1].split(")")[0].split(", ")
        args = [
            arg.replace('"provision_state":"available"', '"provision_state":null')
            if isinstance(arg, str)
            else arg
            for arg in old.args
        ]
        args[columns.index("provision_state")] = None
        await store.commit([Op(old.sql, tuple(args), 1)])
        name = "baremetal/0002_available_for_null.sql"
        text = dict(pending(set()))[name]
        for statement in for_dialect(text, store.dialect).split(";"):
            sql = "\n".join(line for line in statement.splitlines() if not line.startswith("--"))
            if sql.strip():
                await store.commit([Op(sql.strip())])
        assert await NODES.get(store, node.uuid) == node
        rows = await store.fetch("SELECT provision_state, body FROM nodes")
        assert rows[0][0] == "available"
        assert rows[0][1].startswith('"provision_state":"available"')
        await store.close()

    asyncio.run(story())


def test_ports_and_chassis_come_to_nodes_that_are_there(bare_database_url, monkeypatch):
    name = "baremetal/0003_ports_and_chassis.sql"

    def earlier(done: set[str]) -> list[tuple[str, str]]:
        return [item for item in pending(done) if item[0] < name or not item[0].startswith("bare")]

    async def story():
        store = await open_store(bare_database_url)
        with monkeypatch.context() as patch:
            patch.setattr(migrations, "pending", earlier)
            assert name not in await migrate(store)
        node = Node(
            uuid="11111111-1111-4111-8111-111111111111",
            created_at="2026-01-01T00:00:00.000000+00:00",
            driver="fake-hardware",
            provision_state="available",
        )
        await store.commit([NODES.insert(node)])
        assert name in await migrate(store)
        assert await NODES.get(store, node.uuid) == node
        port = Port(
            uuid=node.uuid, created_at=node.created_at, address="a", node_uuid=node.uuid
        )  # fmt: skip
        chassis = Chassis(uuid=node.uuid, created_at=node.created_at)
        await store.commit([PORTS.insert(port), CHASSIS.insert(chassis)])
        assert await PORTS.get(store, port.uuid) == port
        assert await CHASSIS.get(store, chassis.uuid) == chassis
        await store.close()

    asyncio.run(story())


def test_a_log_that_was_there_goes_on_and_is_found_by_resource(bare_database_url, monkeypatch):
    name = "core.store/0005_places.sql"

    def earlier(done: set[str]) -> list[tuple[str, str]]:
        return [item for item in pending(done) if item[0] < name or not item[0].startswith("core")]

    def facts(first: int, last: int) -> list[Op]:
        told = [Fact("x.end", "here", "node", "ab"[n % 2], f"{n}") for n in range(first, last)]
        return eventlog.record(told, at=1.0, host="here", request_id=None, actor="somebody")

    async def placed(store):
        if store.dialect == "postgresql":
            await sequencer.place(store)

    async def story():
        store = await open_store(bare_database_url)
        with monkeypatch.context() as patch:
            patch.setattr(migrations, "pending", earlier)
            assert name not in await migrate(store)
        await store.commit(facts(1, 701))
        await placed(store)
        assert name in await migrate(store)
        await store.commit(facts(701, 1101))
        await placed(store)
        found = await eventlog.of_resource(store, "b", beyond=None, limit=2000, descending=False)
        assert [each.entry.seq for each in found] == list(range(1, 1101, 2))
        assert [int(each.entry.payload) for each in found] == list(range(1, 1101, 2))
        assert {each.actor for each in found} == {"somebody"}
        await store.close()

    asyncio.run(story())


def test_a_long_migration_ends_and_processes_that_start_meanwhile_wait(postgres_url, monkeypatch):
    """However long it takes: another statement would be given up by then."""
    monkeypatch.setattr(postgres, "COMMAND_S", 0.2)
    slow = [("zz/0001_slow.sql", "SELECT pg_sleep(0.5)")]
    monkeypatch.setattr(migrations, "pending", lambda done: [] if slow[0][0] in done else slow)

    async def start():
        store = await open_store(postgres_url)
        try:
            return await migrate(store)
        finally:
            await store.close()

    async def story():
        other = await asyncpg.connect(postgres_url)
        try:
            ran = await asyncio.gather(start(), start())
            assert sorted(map(len, ran)) == [0, 1]
            await other.execute("DELETE FROM migrations WHERE name LIKE 'zz/%'")
        finally:
            await other.close()

    asyncio.run(story())
