"""What tests of moves and of their interruption share."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from siderite.core.store import Op
from tests.compute.cloud import PATIENCE_S
from tests.compute.cloud import Cloud

CLAIMS = "SELECT host FROM claims WHERE server = ? ORDER BY host"
BEHIND = "SELECT 1 FROM work WHERE lane = 'evicted' AND machine LIKE ? || '@%'"
LEFT = "SELECT 1 FROM work WHERE machine = ? AND kind = 'left'"


def counted(cloud: Cloud) -> tuple[int, int]:
    """How many servers and MiB are counted."""
    limits = cloud.ask("GET", "/limits").json["limits"]["absolute"]
    return limits["totalInstancesUsed"], limits["totalRAMUsed"]


def delete(cloud: Cloud, uuid: str) -> None:
    """Delete it, and wait until it is gone."""
    cloud.script(f"server:{uuid}", latency_s={"*": 3600.0, "destroy": 0.0})
    assert cloud.ask("DELETE", f"/servers/{uuid}").status == 204
    cloud.wait(uuid, lambda seen: seen["status"] == "GONE")


def reset(cloud: Cloud, uuid: str, state: str = "active") -> None:
    """Nothing is slow any more, and an administrator says what state it is in."""
    cloud.guests.scripts.set(f"server:{uuid}", None)
    assert cloud.act(uuid, "os-resetState", {"state": state}).status == 202


def claims(cloud: Cloud, uuid: str) -> list[str]:
    """The hosts where it has a claim."""
    rows = cloud.app.run(cloud.app.app.program.store.fetch(CLAIMS, (uuid,)))
    return [str(row[0]) for row in rows]


def until(cloud: Cloud, uuid: str, sql: str, count: int) -> None:
    """Wait until so many rows are there."""

    async def look() -> None:
        async with asyncio.timeout(PATIENCE_S):
            while len(await cloud.app.app.program.store.fetch(sql, (uuid,))) != count:
                await asyncio.sleep(0.01)

    cloud.app.run(look())


def in_one_place(cloud: Cloud, uuid: str, host: str, used: Any = None) -> None:
    """Wait until the server has one claim and one guest, both here."""
    until(cloud, uuid, LEFT, 0)
    assert claims(cloud, uuid) == [host]
    assert cloud.guests.where(uuid) == [host]
    assert used is None or cloud.claimed() == used
    assert cloud.show(uuid)["OS-EXT-SRV-ATTR:host"] == host


def home_of(cloud: Cloud, uuid: str) -> str:
    """The host it is on."""
    return str(cloud.show(uuid)["OS-EXT-SRV-ATTR:host"])


def during(cloud: Cloud, uuid: str, task: str) -> None:
    """Wait until this is being done to it."""
    cloud.wait(uuid, lambda seen: seen["OS-EXT-STS:task_state"] == task)


def _path_of(cloud: Cloud, host: str) -> str:
    services = cloud.ask("GET", "/os-services", version=53).json["services"]
    return next(f"/os-services/{one['id']}" for one in services if one["host"] == host)


@contextmanager
def down(cloud: Cloud, host: str) -> Iterator[None]:
    """The host is said to be down, and does not answer."""
    path = _path_of(cloud, host)
    cloud.script(f"host:{host}", unreachable=True)
    assert cloud.ask("PUT", path, {"forced_down": True}, version=53).status == 200
    try:
        yield
    finally:
        cloud.guests.scripts.set(f"host:{host}", None)
        assert cloud.ask("PUT", path, {"forced_down": False}, version=53).status == 200


@contextmanager
def disabled(cloud: Cloud, *hosts: str) -> Iterator[None]:
    """Nothing new comes to these hosts."""
    paths = [_path_of(cloud, host) for host in hosts]
    for status in ("disabled", "enabled"):
        for path in paths:
            assert cloud.ask("PUT", path, {"status": status}, version=53).status == 200
        if status == "disabled":
            yield


def tidy_up(cloud: Cloud, *, in_s: float = 0.0) -> None:
    """What moves left is looked for now, or after a while."""
    store, now = cloud.app.app.program.store, cloud.app.app.program.compute.context.door.clock()
    op = Op("UPDATE work SET due = ? WHERE kind IN ('evicted', 'left')", (now + in_s,))
    cloud.app.run(store.commit([op]))
