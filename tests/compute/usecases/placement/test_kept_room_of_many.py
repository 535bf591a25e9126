"""What is kept is found without a look at all servers that are being built."""

import json
from pathlib import Path

from siderite.compute.usecases.placement import kept_room
from tests.compute.records.world import World
from tests.compute.records.world import world
from tests.support.postgres import Postgres
from tests.support.stories import teller

THERE = 3000


async def many(here: World) -> None:
    """Copies of one server."""
    server = await here.server("p")
    store = here.app.program.store
    rows = await store.fetch(
        "SELECT column_name FROM information_schema.columns WHERE table_name = 'servers'"
        " AND column_name NOT IN ('id', 'uuid')"
    )
    names = ", ".join(str(row[0]) for row in rows)
    await store.write(
        f"INSERT INTO servers (uuid, {names}) SELECT n, {names}"
        " FROM servers CROSS JOIN generate_series(1, CAST(? AS INT)) AS n WHERE uuid = ?"
        " RETURNING 1",
        (THERE, server.uuid),
    )


def test_where_nothing_is_kept_no_server_is_looked_at(
    postgres: Postgres, postgres_url: str, tmp_path: Path
) -> None:
    """Though PostgreSQL looked at the table when none was being built, and never at the other one:
    nobody has had anything kept.
    """

    async def story(here: World) -> None:
        await many(here)
        built = "UPDATE servers SET vm_state = 'building', task_state = 'scheduling', host = NULL"
        postgres.sql("ANALYZE servers", built, url=postgres_url)
        with here.asked() as asked:
            assert await kept_room.kept(here.app.program.compute.context) == []
        [(sql, args)] = asked
        explain = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "
        [[told]] = await here.app.program.store.write(explain + sql, args)
        plan = json.loads(str(told))[0]["Plan"]
        assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 10, told

    teller(lambda: world(tmp_path, postgres_url, use_pending_state=True))(story)
