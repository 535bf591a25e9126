"""Migrations: each runs once, in order, and old data comes along."""

import asyncio

from siderite.baremetal.domain.node import Node
from siderite.baremetal.store import NODES
from siderite.core.store import Op
from siderite.core.store import open_store
from siderite.core.store.migrations import for_dialect
from siderite.core.store.migrations import migrate
from siderite.core.store.migrations import pending


def test_a_second_start_runs_none(database_url):
    async def story():
        store = await open_store(database_url)
        assert [name for name, _ in pending(set())] == await migrate(store)
        assert await migrate(store) == []
        await store.close()

    asyncio.run(story())


def test_nodes_without_a_state_become_available(database_url):
    """Seed 004: NOSTATE was NULL in the database; it is AVAILABLE from now on."""

    async def story():
        store = await open_store(database_url)
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
