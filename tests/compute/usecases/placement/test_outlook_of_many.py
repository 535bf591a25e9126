"""A forecast for many that wait: what it says, and how little it weighs for that."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from siderite.compute.domain.aggregate import Aggregate
from siderite.compute.domain.host import Hypervisor
from siderite.compute.record_store import AGGREGATES
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.placement import outlook
from siderite.core.ids import new_uuid
from siderite.core.times import iso
from tests.compute.crowd import host
from tests.compute.crowd import name
from tests.compute.crowd import offer
from tests.compute.records.world import World
from tests.compute.records.world import world
from tests.compute.usecases.placement.test_shortlist import all_are_heard_of
from tests.compute.usecases.placement.test_shortlist import put
from tests.support.stories import Tell
from tests.support.stories import teller


@pytest.fixture
def tell(tmp_path: Path) -> Tell:
    """Tells a story; the database plays no part in it."""
    return teller(lambda: world(tmp_path, "", use_pending_state=True))


@pytest.fixture
def weighed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many nodes were weighed, each time."""
    counts: list[int] = []
    place = outlook.place

    def counted(wanted: Any, candidates: Sequence[Hypervisor], **how: Any) -> Any:
        counts.append(len(candidates))
        return place(wanted, candidates, **how)

    monkeypatch.setattr(outlook, "place", counted)
    return counts


async def hosts(here: World, free: Sequence[int]) -> Context:
    """Hosts, each with room for so many servers of two vCPUs."""
    ops = []
    for number, more in enumerate(free):
        used = {"vcpus_limit": 100, "vcpus_used": 100 - 2 * more}
        ops += [host(name(number)), offer(name(number), **used)]
    await put(here, ops)
    await all_are_heard_of(here)
    ctx: Context = here.app.program.compute.context
    return replace(ctx, settings=msgspec.structs.replace(ctx.settings, wake_pending=True))


def test_nodes_are_weighed_once_for_all_who_wish_the_same(tell: Tell, weighed: list[int]) -> None:
    async def story(here: World) -> None:
        ctx = await hosts(here, [*[0] * 50, 3, *[0] * 48, 1])
        view = await outlook.look(ctx)
        taken = [
            await view.takes(await here.server(f"p{number}", vm_state="pending"))
            for number in range(30)
        ]
        assert taken == [True] * 4 + [False] * 26
        assert sum(weighed) < 100 + 3 * 30

    tell(story)


def test_each_gets_the_best_of_what_is_left(tell: Tell) -> None:
    async def story(here: World) -> None:
        ctx = await hosts(here, [2, 5, 0, 4])
        view = await outlook.look(ctx)
        for _ in range(11):
            assert await view.takes(await here.server("p", vm_state="pending"))
        # The emptiest are filled first, down to where the others are.
        [nodes] = view._there.values()
        assert [at.vcpus_used for at in nodes.values()] == [100] * 4
        assert not await view.takes(await here.server("p", vm_state="pending"))

    tell(story)


def test_hosts_for_some_projects_only_are_for_those(tell: Tell) -> None:
    async def story(here: World) -> None:
        ctx = await hosts(here, [3])
        made = Aggregate(
            uuid=new_uuid(), created_at=iso(0), name="a", hosts=[name(0)],
            metadata={"filter_tenant_id": "p"},
        )  # fmt: skip
        await put(here, [AGGREGATES.insert(made)])
        view = await outlook.look(ctx)
        found = [
            await view.takes(await here.server(project, vm_state="pending")) for project in "qpqp"
        ]
        assert found == [False, True, False, True]

    tell(story)
