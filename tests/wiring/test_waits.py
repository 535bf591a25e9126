"""All that waits by the computer's clock: each room's rows are moved, what does not wait is not."""

import asyncio

import pytest

from siderite.core.store import Op
from siderite.core.store import open_store
from siderite.core.store.migrations import migrate
from siderite.core.work import FAR
from siderite.wiring.waits import SHIFTS

NOW, BACK_S = 1_794_000_000.0, 3600.0
WATCHED = {"node": "n", "pause": 8.0, "failures": 0}


def moved(at):
    return at - BACK_S


def job(since):
    return f'{{"op":"o","since":{since!r}}}'


@pytest.mark.parametrize(
    ("table", "row", "after"),
    [
        ("power_watch", WATCHED | {"due": NOW}, {"due": moved(NOW)}),
        ("power_watch", WATCHED | {"due": FAR}, {"due": FAR}),
        (
            "conductors",
            {"hostname": "h", "conductor_group": "", "drivers": "", "created_at": "then",
             "updated_at": "then", "seen_at": NOW},
            {"seen_at": moved(NOW)},
        ),
        (
            "hosts",
            {"uuid": "u", "version": 1, "doc": "{}", "body": "", "name": "h", "driver": "simulated",
             "disabled": 0, "forced_down": 0, "seen_at": 0.0},
            {"seen_at": 0.0},
        ),
        (
            "webhook_deliveries",
            {"webhook": "w", "seq": 1, "message_id": "m", "event_type": "e", "resource": "r",
             "state": "pending", "attempts": 1, "due": NOW + 9, "since": NOW},
            {"due": moved(NOW + 9), "since": moved(NOW)},
        ),
        (
            "webhook_deliveries",
            {"webhook": "w", "seq": 1, "message_id": "m", "event_type": "e", "resource": "r",
             "state": "delivered", "attempts": 1, "due": NOW, "since": NOW},
            {"due": NOW, "since": NOW},
        ),
        (
            "event_open",
            {"operation": "o", "resource": "r", "resource_type": "t", "seq": 1, "began": NOW,
             "seen": NOW + 1},
            {"began": moved(NOW), "seen": moved(NOW + 1)},
        ),
        (
            "work",
            {"machine": "m", "lane": "l", "kind": "k", "job": job(NOW),
             "due": NOW + 5, "deadline": NOW + 60, "created_at": NOW, "owner": "o",
             "lease_until": NOW + 10},
            {"due": moved(NOW + 5), "deadline": moved(NOW + 60), "created_at": moved(NOW),
             "lease_until": moved(NOW + 10), "job": job(moved(NOW))},
        ),
        (
            "work",
            {"machine": "m", "lane": "l", "kind": "k", "job": "not JSON", "due": FAR,
             "deadline": FAR, "created_at": NOW},
            {"due": FAR, "deadline": FAR, "job": "not JSON", "lease_until": None},
        ),
    ],
)  # fmt: skip
def test_what_waits_in_a_table_is_moved(table, row, after):
    async def story():
        store = await open_store("sqlite://")
        await migrate(store)
        marks = ", ".join("?" * len(row))
        sql = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})"
        await store.commit([Op(sql, tuple(row.values()), 1)])
        await store.commit([shift(BACK_S) for shift in SHIFTS])
        found = await store.fetch(f"SELECT {', '.join(after)} FROM {table}")
        await store.close()
        return dict(zip(after, found[0], strict=True))

    assert asyncio.run(story()) == after
