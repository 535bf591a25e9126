"""Questions about a few servers are not answered by a look at all that there are."""

import re
from pathlib import Path

from siderite.compute.usecases.placement import kept_room
from siderite.compute.usecases.placement import placing
from siderite.compute.usecases.server import due
from siderite.compute.usecases.server import power_truth
from tests.compute.records.world import World
from tests.compute.records.world import world
from tests.support.stories import teller


async def _ask(here: World) -> None:
    """Of a group, of a host, of what is due and of room that is kept."""
    ctx = here.app.program.compute.context
    host = await here.host()
    for name in ("g", "h"):
        body = {"server_group": {"name": name, "policy": "affinity"}}
        made = await here.ask("POST", "/os-server-groups", body, version=64)
    group = made.json["server_group"]["id"]
    server = await here.server("p", group=group, host=host.name)
    assert (await placing.find_place(ctx, server)).ranked
    groups = (await here.get("/os-server-groups"))["server_groups"]
    assert sorted(one["members"] for one in groups) == [[], [server.uuid]]
    shown = await here.get("/os-hypervisors/detail?with_servers=true", version=53)
    assert len(shown["hypervisors"]) == 1
    assert await power_truth.on_host(ctx, host.name)
    assert await power_truth.on_host(ctx, host.name, [server.uuid])
    assert await kept_room.kept(ctx) == []
    await here.server("p", vm_state="pending", host=None)
    await due.pending_too_long(ctx)
    await due.to_wake(ctx)
    await due.to_reclaim(ctx)
    await due.forget_old(ctx)


def test_a_few_servers_are_found_without_a_walk_over_all_that_live(tmp_path: Path) -> None:
    """PostgreSQL knows by itself that these are many; SQLite takes them for few."""

    async def story(here: World) -> None:
        store = here.app.program.store
        with here.asked() as asked:
            await _ask(here)
        found = 0
        for sql, args in asked:
            if not re.search(r"\b(?:FROM|JOIN) servers\b", sql):
                continue
            lines = [row[3] for row in await store.fetch("EXPLAIN QUERY PLAN " + sql, args)]
            for line in lines:
                walks = re.match(
                    r"SCAN (servers|s)\b|.*\((project_id=\? AND )?deleted=\?( AND id>\?)?\)", line
                )
                assert not walks, (line, sql)
            found += 1
        assert found >= 10

    teller(
        lambda: world(
            tmp_path, use_pending_state=True, wake_pending=True, pending_timeout_s=60.0,
            reclaim_interval_s=60.0,
        )
    )(story)  # fmt: skip
