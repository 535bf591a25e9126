"""A look at the emptiest nodes finds what a look at all of them would, and is much smaller."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from siderite.compute import room_store
from siderite.compute.domain.aggregate import Aggregate
from siderite.compute.domain.host import Amount
from siderite.compute.domain.narrowing import names
from siderite.compute.domain.placement import Placement
from siderite.compute.domain.placement import Wanted
from siderite.compute.domain.placement import place
from siderite.compute.domain.placement import weight
from siderite.compute.record_store import AGGREGATES
from siderite.compute.usecases.fleet import aggregates
from siderite.compute.usecases.placement import kept_room
from siderite.compute.usecases.placement import placing
from siderite.compute.usecases.placement import shortlist
from siderite.compute.usecases.placement.kept_room import Kept
from siderite.compute.usecases.placement.shortlist import Shortlist
from siderite.core.ids import new_uuid
from siderite.core.store import Op
from siderite.core.times import iso
from tests.compute.crowd import host
from tests.compute.crowd import name
from tests.compute.crowd import offer
from tests.compute.records.world import World
from tests.compute.records.world import world
from tests.support.stories import Tell
from tests.support.stories import teller

SMALL = Wanted(Amount(1, 512, 1), "p")
GOLD = "CUSTOM_GOLD"
HOSTS_THERE = 60


@pytest.fixture(params=["sqlite", "postgresql"])
def tell(request: pytest.FixtureRequest, tmp_path: Path) -> Tell:
    """Tells a story, on each database."""
    db = "" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    return teller(lambda: world(tmp_path, db, use_pending_state=True))


async def put(here: World, ops: Sequence[Op]) -> None:
    for at in range(0, len(ops), 200):
        await here.app.program.store.commit(ops[at : at + 200])


async def all_are_heard_of(here: World) -> None:
    now = here.app.program.door.clock()
    await put(here, [Op("UPDATE hosts SET seen_at = ?", (now,))])


async def motley(here: World, luck: random.Random) -> None:
    """Hosts of all kinds."""
    ops = []
    for number in range(HOSTS_THERE):
        ops.append(
            host(
                name(number),
                driver=luck.choice(["simulated"] * 4 + ["libvirt"]),
                disabled=luck.random() < 0.1,
                forced_down=luck.random() < 0.1,
                conductor_group=luck.choice(["", "", "east", "west"]),
            )
        )
        used = [luck.choice([0, 0, 3, 5, 8, 16, 31, 32]) for _ in range(3)]
        more = {
            "traits": luck.choice(["", "A", "A_B", "AXB C", "A C"]),
            "vcpus_used": used[0],
            "ram_used": used[1] * 256,
            "disk_used": used[2] * 3,
            "is_available": int(luck.random() < 0.9),
        }
        if luck.random() < 0.1:
            more["disk_limit"] = more["disk_used"] = 0
        ops.append(offer(name(number), **more))
    ops.append(host("metal"))
    for number in range(20):
        busy = luck.random() < 0.5
        gold = {"resource_class": GOLD, "servers_limit": 1, "servers": int(busy)}
        ops.append(offer("metal", node=f"metal-{number}", **gold))
    some = [name(number) for number in range(HOSTS_THERE)]
    for number, said in enumerate(
        (
            {"availability_zone": "east"}, {"ssd": "true"}, {"ssd": "false"},
            {"filter_tenant_id": "p, q"}, {"filter_tenant_id": "r"},
        )
    ):  # fmt: skip
        chosen = luck.sample(some, luck.choice([2, 10, 40]))
        made = Aggregate(
            uuid=new_uuid(), created_at=iso(0), name=f"a{number}", metadata=said, hosts=chosen
        )
        ops.append(AGGREGATES.insert(made))
    await put(here, ops)
    await all_are_heard_of(here)
    silent = [Op("UPDATE hosts SET seen_at = 0 WHERE name = ?", (name(at),)) for at in (3, 4, 5)]
    await put(here, silent)


def wish(luck: random.Random) -> Wanted:
    """Some of all that may be wanted."""

    def some(most: int) -> list[str]:
        return [name(luck.randrange(HOSTS_THERE)) for _ in range(luck.randint(0, most))]

    if luck.random() < 0.1:
        node = luck.choice([None, None, "metal-3", name(1)])
        return replace(SMALL, resource_class=GOLD, node=node, avoid={"metal-2": "tried"})
    amount = Amount(luck.choice([0, 1, 4, 30]), luck.choice([0, 512, 4096]), luck.choice([0, 1]))
    fields: dict[str, Any] = {"amount": amount}
    choices: dict[str, Any] = {
        "required_traits": frozenset(luck.choice([[], ["A"], ["A_B"], ["C"], ["A", "C"]])),
        "forbidden_traits": frozenset(luck.choice([["A"], ["C"]])),
        "zone": luck.choice(["east", "nova", "nowhere"]),
        "host": luck.choice(some(1) or [None]),
        "node": luck.choice(some(1) or [None]),
        "driver": luck.choice(["simulated", "libvirt"]),
        "conductor_group": luck.choice(["east", "west"]),
        "avoid": dict.fromkeys(some(30), "tried before"),
        "same_host": frozenset(some(40)),
        "different_host": frozenset(some(40)),
        "aggregate_specs": luck.choice([{"ssd": "true"}, {"ssd": "false"}]),
        "project": luck.choice(["p", "r"]),
    }
    fields |= {what: value for what, value in choices.items() if luck.random() < 0.2}
    if luck.random() < 0.6:
        policies = ["affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity"]
        members = {one: luck.randint(1, 3) for one in some(luck.choice([5, 60, 400]))}
        fields |= {"policy": luck.choice(policies), "members": members}
        fields["max_server_per_host"] = luck.randint(1, 3)
    if "host" in fields and luck.random() < 0.5:
        fields["is_forced"] = fields["host"] is not None
    return replace(SMALL, **fields)


async def _both(
    here: World, wanted: Wanted, kept: Sequence[Kept], enough: int
) -> tuple[Placement | None, Placement]:
    ctx = here.app.program.compute.context
    atlas = await aggregates.atlas(ctx)
    found = await Shortlist(ctx, "me", kept, atlas).best(wanted, enough=enough)
    every = kept_room.less(kept, "me", await placing.candidates(ctx, wanted.resource_class))
    patience_s = ctx.settings.host_patience_s
    return found, place(wanted, every, now=ctx.door.clock(), patience_s=patience_s)


@pytest.mark.parametrize("seed", range(3))
def test_it_finds_what_a_look_at_all_would(
    tell: Tell, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    # So few that all that can happen with thousands of hosts happens with these.
    monkeypatch.setattr(shortlist, "_SOME", 4)
    monkeypatch.setattr(shortlist, "_MORE", 10)
    monkeypatch.setattr(shortlist, "_NAMED", 20)
    monkeypatch.setattr("siderite.compute.domain.narrowing._FEW", 6)
    luck = random.Random(seed)

    async def story(here: World) -> None:
        await motley(here, luck)
        ctx = here.app.program.compute.context
        every = await placing.candidates(ctx, None)
        found_by_it = 0
        for _ in range(150):
            wanted, enough = wish(luck), luck.choice([1, 5])
            kept = [
                Kept("another", luck.choice(every).uuid, Amount(luck.choice([1, 32]), 1, 1))
                for _ in range(luck.choice([0, 0, 5]))
            ]
            found, truth = await _both(here, wanted, kept, enough)
            if found is None:
                continue  # all are looked at then
            found_by_it += 1
            assert found.ranked and truth.ranked, wanted
            best, true = found.ranked[0], truth.ranked[0]
            assert weight(wanted, best) == pytest.approx(weight(wanted, true)), wanted
            assert {at.uuid for at in found.ranked} <= {at.uuid for at in truth.ranked}, wanted
            if wanted.policy is None:
                assert best.uuid == true.uuid, wanted
                assert len(found.ranked) >= min(enough, len(truth.ranked)), wanted
        assert found_by_it > 40

    tell(story)


async def crowd(here: World, count: int) -> None:
    """So many hosts, each fuller than the one before it."""
    ops = []
    for number in range(count):
        ops += [host(name(number)), offer(name(number), vcpus_limit=count * 2, vcpus_used=number)]
    await put(here, ops)
    await all_are_heard_of(here)


async def zone(here: World, named: str, numbers: range) -> None:
    hosts = [name(number) for number in numbers]
    made = Aggregate(
        uuid=new_uuid(), created_at=iso(0), name=named, hosts=hosts,
        metadata={"availability_zone": named},
    )  # fmt: skip
    await put(here, [AGGREGATES.insert(made)])


async def plan(here: World, sql: str, args: Sequence[Any]) -> str:
    """What the database would do, as it says itself."""
    explain = "EXPLAIN QUERY PLAN " if here.app.program.store.dialect == "sqlite" else "EXPLAIN "
    return str([list(row) for row in await here.app.program.store.fetch(explain + sql, args)])


BY_ROOM: tuple[dict[str, Any], ...] = (
    {},
    {"avoid": {name(1): "tried"}},
    {"zone": "east"},
    {"resource_class": GOLD},
    {"required_traits": frozenset({"A"})},
    {"forbidden_traits": frozenset({"A"})},
    {"driver": "simulated", "conductor_group": "west"},
)
BY_NAME: tuple[dict[str, Any], ...] = (
    {"host": name(7)},
    {"host": name(7), "is_forced": True},
    {"policy": "affinity", "members": {name(7): 1}},
    {"same_host": frozenset({name(7), name(8), name(9)})},
    {"node": name(7)},
    {"node": name(7), "is_forced": True},
)


def test_nodes_are_found_by_an_index(tell: Tell) -> None:
    async def story(here: World) -> None:
        await crowd(here, 400)
        await zone(here, "east", range(100, 300))
        store = here.app.program.store
        if store.dialect == "postgresql":
            await store.write("ANALYZE")
        atlas = await aggregates.atlas(here.app.program.compute.context)
        for fields in (*BY_ROOM, *BY_NAME):
            wanted = replace(SMALL, **fields)
            with here.asked() as asked:
                of = names(wanted, atlas)
                await room_store.roomiest(store, wanted, of, heard_since=0, limit=5)
            [(sql, args)] = asked
            index = "hypervisors_room" if fields in BY_ROOM else "hypervisors_node"
            told = await plan(here, sql, args)
            assert index in told, (fields, told)
            assert "Seq Scan" not in told and "SCAN v" not in told, (fields, told)
            assert index != "hypervisors_room" or "TEMP B-TREE" not in told, (fields, told)

    tell(story)


CHOICES: tuple[tuple[dict[str, Any], int], ...] = (
    ({}, 0),
    ({"avoid": {name(0): "tried"}}, 1),
    ({"host": name(300)}, 300),
    ({"node": name(299)}, 299),
    ({"zone": "east"}, 200),
    ({"policy": "affinity", "members": {name(399): 2, name(398): 1}}, 398),
    ({"policy": "soft-affinity", "members": {name(399): 2, name(398): 1}}, 399),
    ({"policy": "soft-anti-affinity", "members": {name(0): 1}}, 1),
    ({"policy": "anti-affinity", "members": {name(at): 1 for at in range(100)}}, 100),
)


def test_a_place_among_many_hosts_takes_a_look_at_few(tell: Tell) -> None:
    async def story(here: World) -> None:
        await crowd(here, 400)
        await zone(here, "east", range(200, 400))
        ctx = here.app.program.compute.context
        look = Shortlist(ctx, "me", (), await aggregates.atlas(ctx))
        for fields, best in CHOICES:
            with here.asked() as asked:
                found = await look.best(replace(SMALL, **fields), enough=1)
            assert found is not None and found.ranked[0].node == name(best), fields
            assert len(found.ranked) + len(found.refusals) <= 256, fields
            assert len(asked) <= 2, fields

    tell(story)


def test_who_finds_no_place_hears_of_all_hosts(tell: Tell) -> None:
    async def story(here: World) -> None:
        await crowd(here, 600)
        ctx = here.app.program.compute.context
        server = await here.server("p")
        large = msgspec.structs.replace(server.flavor, vcpus=1_000_000)
        found = await placing.find_place(ctx, server, flavor=large)
        assert not found.ranked and len(found.refusals) == 600
        assert "Of 600 hosts: 600 without room" in found.sentence
        assert (await placing.find_place(ctx, server)).ranked[0].node == name(0)

    tell(story)
