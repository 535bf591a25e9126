"""On PostgreSQL a narrow table says which nodes are in which state, so that a node's own row can
change without an entry in any index.
"""

import asyncio

import msgspec

from siderite.baremetal.domain.node import Node
from siderite.baremetal.store import NODES
from siderite.core.store import Op
from siderite.core.store import migrations
from siderite.core.store import open_store
from siderite.core.store.migrations import migrate
from siderite.core.store.migrations import pending
from tests.support.app import running

NAME = "baremetal/0016_node_states.sql"
CHANGED = (
    "version", "doc", "body", "provision_state", "target_provision_state", "power_state",
    "updated_at", "provision_updated_at",
)  # fmt: skip
"""What a change of state changes."""


def node(number, state):
    uuid = f"{number:08d}-0000-4000-8000-000000000000"
    return Node(
        uuid=uuid,
        created_at="2026-01-01T00:00:00+00:00",
        driver="fake-hardware",
        provision_state=state,
    )


async def both(store):
    """States and nodes, by the narrow table and by the nodes."""
    narrow = await store.fetch("SELECT state, node FROM node_states ORDER BY node")
    nodes = await store.fetch("SELECT provision_state, id FROM nodes ORDER BY id")
    return [tuple(row) for row in narrow], [tuple(row) for row in nodes]


def test_it_follows_whatever_happens_to_nodes(postgres, monkeypatch):
    def earlier(done):
        return [one for one in pending(done) if one[0] != NAME]

    async def story(url):
        store = await open_store(url)
        with monkeypatch.context() as patch:
            patch.setattr(migrations, "pending", earlier)
            await migrate(store)
        old = [node(n, "available") for n in range(3)]
        for one in old:
            await store.commit([NODES.insert(one)])
        assert await migrate(store) == [NAME]
        new = [node(n, "enroll") for n in range(3, 40)]
        await asyncio.gather(*[store.commit([NODES.insert(one)]) for one in new])
        moved = [
            msgspec.structs.replace(one, version=one.version + 1, provision_state="active")
            for one in (*old, *new)
        ]
        swaps = zip((*old, *new), moved, strict=True)
        await asyncio.gather(*[store.commit([NODES.swap(*swap)]) for swap in swaps])
        narrow, nodes = await both(store)
        assert narrow == nodes
        assert len(nodes) == 40
        assert {state for state, _ in narrow} == {"active"}
        await asyncio.gather(*[store.commit([NODES.remove(one)]) for one in moved[5:]])
        await store.commit([Op("UPDATE nodes SET provision_state = 'error' WHERE id = 1", (), 1)])
        narrow, nodes = await both(store)
        assert narrow == nodes
        assert len(nodes) == 5
        await store.close()

    with postgres.fresh_database() as url:
        asyncio.run(story(url))


def test_no_index_of_nodes_has_what_a_change_of_state_changes(postgres_url):
    async def story():
        store = await open_store(postgres_url)
        await migrate(store)
        rows = await store.fetch(
            "SELECT i.indexrelid::regclass::text FROM pg_index i JOIN pg_attribute a"
            " ON a.attrelid = i.indrelid WHERE i.indrelid = 'nodes'::regclass"
            " AND pg_get_indexdef(i.indexrelid) ~ ('\\y' || a.attname || '\\y')"
            f" AND a.attname IN ({', '.join('?' * len(CHANGED))})",
            CHANGED,
        )
        await store.close()
        return [row[0] for row in rows]

    assert asyncio.run(story()) == []


def test_pages_by_state_follow_each_other(database_url, tmp_path):
    async def story():
        db = "" if database_url.startswith("sqlite") else database_url
        async with running(tmp_path, db) as app:
            for number in range(12):
                state = ("available", "active", "manageable")[number % 3]
                await app.plant(state, name=f"n{11 - number:02d}")
            for sort in ("", "&sort_key=name", "&sort_dir=desc", "&sort_key=power_state"):
                found, path = [], f"/v1/nodes?provision_state=active&limit=3{sort}"
                while path:
                    page = (await app.ask("GET", path)).json
                    found += [one["name"] for one in page["nodes"]]
                    path = page.get("next", "").partition("/baremetal")[2]
                expected = ["n10", "n07", "n04", "n01"]
                reverse = sort in ("&sort_key=name", "&sort_dir=desc")
                assert found == (expected[::-1] if reverse else expected), sort

    asyncio.run(story())
