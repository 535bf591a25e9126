"""No list reads a whole table: what the database says it would do for each.

On PostgreSQL scans are switched off, as the sizes of tables that matter would do: where it scans
all the same, there is no other way.
"""

import asyncio
import json
import re

from siderite.core import leases
from siderite.core import work
from tests.support.app import running

LARGE = {
    "nodes", "node_states", "ports", "portgroups", "allocations", "events", "past_events", "work",
    "power_watch", "servers", "instance_actions", "server_migrations", "images", "search_docs",
}  # fmt: skip

WHOLE = (
    "/v1/nodes?limit=1000",
    "/v1/nodes/detail?limit=1000",
    "/v1/nodes?sort_key=name&limit=100",
    "/v1/ports?limit=1000",
    "/v1/portgroups",
    "/v1/allocations",
    "/compute/v2.1/os-migrations",
    "/image/v2/images",
)
"""Lists in the order of an index, from its beginning."""

NARROW = (
    "/v1/nodes/{node}",
    "/v1/nodes?limit=10&marker={node}",
    "/v1/nodes?sort_key=name&limit=10&marker={node}",
    "/v1/nodes?resource_class=a&limit=1000",
    "/v1/nodes?resource_class=a&limit=10&marker={node}",
    "/v1/nodes?provision_state=active",
    "/v1/nodes?provision_state=active&limit=10&marker={node}",
    "/v1/nodes?driver=fake-hardware",
    "/v1/nodes?owner=a",
    "/v1/nodes?lessee=a",
    "/v1/nodes?maintenance=true",
    "/v1/nodes?retired=true",
    "/v1/nodes?associated=true",
    "/v1/nodes?associated=false",
    "/v1/nodes?instance_uuid={node}",
    "/v1/nodes?fault=power%20failure",
    "/v1/nodes?shard=a",
    "/v1/nodes?conductor_group=a",
    "/v1/nodes?chassis_uuid={node}",
    "/v1/nodes?parent_node={node}",
    "/v1/nodes/{node}/ports",
    "/v1/nodes/{node}/history",
    "/v1/ports?limit=10&marker={port}",
    "/v1/ports?address=52:54:00:00:00:01",
    "/v1/ports?node={node}",
    "/v1/allocations?state=active",
    "/v1/allocations?resource_class=a",
    "/v1/allocations?node={node}",
    "/v1/allocations?owner=a",
    "/events/v1/events?after=0&limit=1000",
    "/events/v1/events?resource={node}",
    "/compute/v2.1/servers",
    "/compute/v2.1/servers/detail?limit=1000",
    "/compute/v2.1/servers/detail?all_tenants=1",
    "/compute/v2.1/servers?host=h&all_tenants=1",
    "/compute/v2.1/servers?flavor=1",
    "/compute/v2.1/servers?changes-since=2026-01-01T00:00:00Z",
    "/compute/v2.1/servers?sort_key=display_name",
    "/compute/v2.1/servers?sort_key=created_at&limit=2",
)
"""Lists that read only what they show, or a part of the table that an index holds."""

_SORTS = "power_state resource_class owner lessee fault shard instance_uuid updated_at retired"
_SERVER_SORTS = "vm_state task_state power_state host image_ref updated_at launched_at key_name"
SLIM = (
    "/v1/nodes?conductor=a&owner=b",
    "/v1/nodes?maintenance=false",
    "/v1/nodes?retired=false",
    "/v1/nodes?description_contains=a",
    "/v1/nodes?provision_state=active&maintenance=true",
    "/v1/nodes?provision_state=active&associated=true&driver=fake-hardware",
    "/v1/nodes?provision_state=active&sort_key=name&limit=10&marker={node}",
    *(f"/v1/nodes?sort_key={key}&limit=10&marker={{node}}" for key in _SORTS.split()),
    *(
        f"/compute/v2.1/servers?all_tenants={everybody}&{query}"
        for everybody in (0, 1)
        for query in (
            "status=ERROR", "vm_state=stopped", "name=a", "image=a", "tags=a", "ip=10", "locked=1",
            "task_state=deleting", "power_state=4", "user_id=a", "hostname=a", "reservation_id=r",
            "changes-since=2026-01-01T00:00:00Z", "key_name=a", "availability_zone=a",
            *(f"sort_key={key}" for key in _SERVER_SORTS.split()),
        )
    ),
)  # fmt: skip
"""Lists by what has no index of its own: SQLite reads them from one that has no documents in it,
PostgreSQL from the table, from which it keeps documents apart by itself.
"""


def test_lists_and_the_claiming_of_work_follow_indexes(bare_database_url, tmp_path):
    url = bare_database_url
    if url.startswith("postgresql"):
        url += "?enable_seqscan=off&enable_bitmapscan=off"
    problems = asyncio.run(_problems(url, tmp_path))
    assert not problems, "\n".join(problems)


async def _problems(url, place):
    async with running(place, url) as app:
        node = await app.make_node(resource_class="a")
        body = {"node_uuid": node, "address": "52:54:00:00:00:01"}
        port = (await app.ask("POST", "/v1/ports", body)).json["uuid"]
        store = app.program.store
        fetch, write = store.fetch, store.write
        asked = []

        async def listening(sql, args=()):
            asked.append((sql, tuple(args)))
            return await fetch(sql, args)

        async def writing(sql, args=()):
            asked.append((sql, tuple(args)))
            return await write(sql, args)

        store.fetch, store.write = listening, writing
        found = []
        for path in WHOLE + NARROW + (SLIM if store.dialect == "sqlite" else ()):
            asked.clear()
            headers = {"openstack-api-version": "compute 2.96"}
            answer = await app.ask("GET", path.format(node=node, port=port), headers=headers)
            assert answer.status == 200, (path, answer)
            assert any(_is_large(sql) for sql, _ in asked), path
            for sql, args in asked:
                why = await _judge(store.dialect, fetch, sql, args, narrow=path in NARROW)
                found += [f"{path}: {why}: {' '.join(sql.split())}"] if why else []
        asked.clear()
        await leases.claim(store, "me", now=1.0, lease_s=1.0, limit=9)
        await leases.claim(store, "me", now=1.0, lease_s=1.0, limit=9, pools=["a"])
        await leases.renew(store, "me", now=1.0, lease_s=1.0)
        await leases.next_due(store)
        await work.of_machine(store, node)
        for sql, args in asked:
            why = await _judge(store.dialect, fetch, sql, args, narrow=False)
            found += [f"work: {why}: {' '.join(sql.split())}"] if why else []
    return found


def _is_large(sql):
    return bool(LARGE & set(re.findall(r"(?:FROM|UPDATE) (\w+)", sql)))


async def _judge(dialect, fetch, sql, args, *, narrow):
    if not _is_large(sql):
        return None
    if dialect == "sqlite":
        lines = [row[3] for row in await fetch("EXPLAIN QUERY PLAN " + sql, args)]
        return _of_sqlite(lines, narrow=narrow, in_order="ORDER BY id" in sql)
    rows = await fetch("EXPLAIN (FORMAT JSON) " + sql, args)
    return _of_postgresql(json.loads(rows[0][0])[0]["Plan"], narrow=narrow)


def _of_sqlite(lines, *, narrow, in_order):
    for line in lines:
        scan = re.fullmatch(r"SCAN (\w+)( USING.*)?", line)
        if scan and scan[1] in LARGE and not scan[2] and (narrow or not in_order):
            return line
    # Where an index has found the rows, a few of them may be put in order.
    if "USE TEMP B-TREE FOR ORDER BY" in lines and not any(" INDEX " in one for one in lines):
        return "sorts"
    return None


def _of_postgresql(plan, *, narrow):
    if plan["Node Type"] == "Seq Scan" and plan["Relation Name"] in LARGE:
        return f"scans {plan['Relation Name']}"
    is_walk = plan["Node Type"].startswith("Index") and "Index Cond" not in plan
    if narrow and is_walk and "Filter" in plan and plan["Index Name"].endswith("_pkey"):
        return f"scans {plan['Index Name']} for {plan['Filter']}"
    if plan["Node Type"] == "Sort" and "Index Cond" not in json.dumps(plan):
        return f"sorts by {plan['Sort Key']}"
    for below in plan.get("Plans", ()):
        if why := _of_postgresql(below, narrow=narrow):
            return why
    return None
