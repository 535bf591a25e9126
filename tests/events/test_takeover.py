"""Two processes at the index for a moment: what the late one still writes must not stay."""

import asyncio
import contextlib
import json

import pytest

from siderite.core import eventlog
from siderite.core.fact import Fact
from siderite.core.ids import new_uuid
from siderite.core.store import Lost
from siderite.events import pace
from siderite.events import place
from siderite.events import search
from siderite.events.follower import Follower
from siderite.events.search import Question
from siderite.events.search import Search
from tests.events.log import NODE
from tests.events.log import fact
from tests.events.log import tell
from tests.support.app import running


def named(name, what="update.end"):
    payload = json.dumps({"ironic_object.data": {"name": name}})
    return Fact(f"baremetal.node.{what}", "ironic-api", "node", NODE, payload)


async def three_parts(app):
    """A log about so many that the index writes them in three commits; the node is in the second
    of them.
    """
    size = search.AT_ONCE[app.program.store.dialect]
    others = [fact(n, resource=new_uuid()) for n in range(2 * size)]
    await tell(app, *others[:size], named("old"), *others[size:])
    await place.seq(app.program.store, search.NAME, begin_at=0, now=0.0)


async def names(store):
    """The node's, as the index has it."""
    found, _, _ = await Search(store).find(Question(limit=1000))
    return [json.loads(bytes(one["data"]))["name"] for one in found if one["id"] == NODE]


async def caught_up(store):
    """As the process that took over does it."""
    follower = Follower(store, search.NAME, eventlog.heads, Search(store).deal, batch=10_000)
    task = asyncio.create_task(follower.run())
    newest = await eventlog.newest(store)
    async with asyncio.timeout(30):
        while await place.seq_of(store, search.NAME) != newest:
            await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize(("what", "left"), [("update.end", ["new"]), ("delete.end", [])])
def test_who_is_late_to_the_index_writes_nothing_old(
    tmp_path, database_url, monkeypatch, what, left
):
    async def story():
        async with running(tmp_path, database_url) as app:
            store = app.program.store
            await three_parts(app)

            async def taken_over(_):
                monkeypatch.undo()
                await tell(app, named("new", what))
                await caught_up(store)

            monkeypatch.setattr(pace, "breath", taken_over)
            with contextlib.suppress(Lost):
                await Search(store).deal(await eventlog.heads(store))
            return await names(store)

    assert asyncio.run(story()) == left


@pytest.mark.parametrize(("what", "left"), [("update.end", ["new"]), ("delete.end", [])])
def test_so_it_is_while_the_other_is_still_at_it(tmp_path, database_url, monkeypatch, what, left):
    async def story():
        async with running(tmp_path, database_url) as app:
            store, ended, breaths = app.program.store, asyncio.Event(), 0
            await three_parts(app)
            other = None

            async def breath(_):
                nonlocal other, breaths
                breaths += 1
                if breaths == 1:  # one has written its first part: the other begins
                    await tell(app, named("new", what))
                    other = asyncio.create_task(caught_up(store))
                    while breaths < 3:
                        await asyncio.sleep(0.01)
                elif breaths == 3:  # the other has written its second
                    await ended.wait()

            monkeypatch.setattr(pace, "breath", breath)
            with contextlib.suppress(Lost):
                await Search(store).deal(await eventlog.heads(store))
            ended.set()
            await other
            return await names(store)

    assert asyncio.run(story()) == left
