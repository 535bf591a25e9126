"""The monitor: what began, ended, failed and is open, counted from the log alone."""

import asyncio
import itertools

import msgspec
import pytest

from siderite.core import eventlog
from siderite.core import metrics
from siderite.events import monitor
from siderite.events.monitor import Monitor
from siderite.events.rows import packed
from tests.events.log import NODE
from tests.events.log import OTHER
from tests.events.log import fact
from tests.events.log import tell

ADDRESS = "/events/v1/monitor"


async def report(app, newest):
    """The report that is current to a number: operations by name."""
    async with asyncio.timeout(30):
        while True:
            answer = (await app.ask("GET", ADDRESS)).json
            if answer["current_to"] >= newest:
                assert answer["current_to"] == newest
                return {row.pop("operation"): row for row in answer["operations"]}
            await asyncio.sleep(0.02)


async def under_way(app, query=""):
    return (await app.ask("GET", f"{ADDRESS}/open{query}")).json["open"]


def test_starts_ends_and_failures_are_counted_and_what_is_open_is_told(run):
    async def story(app):
        await tell(
            app,
            fact(1, kind="power_set.start"),
            fact(2, kind="power_set.start", resource=OTHER),
            fact(3, kind="power_set.error"),
            fact(4, kind="update.start"),
            fact(5, kind="update.end"),
            fact(6, kind="power_state_corrected.success"),
        )
        found = await report(app, 6)
        power = found["baremetal.node.power_set"]
        assert power.pop("longest_open_s") >= 0
        assert power == {
            "started": 2, "ended": 0, "failed": 1, "succeeded": 0, "abandoned": 0,
            "open": 1, "overdue": 0,
        }  # fmt: skip
        update = found["baremetal.node.update"]
        assert (update["started"], update["ended"], update["open"]) == (1, 1, 0)
        assert update["longest_open_s"] is None
        assert found["baremetal.node.power_state_corrected"]["succeeded"] == 1
        (open_now,) = await under_way(app)
        assert open_now["resource"] == {"type": "node", "id": OTHER}
        assert (open_now["seq"], open_now["is_overdue"]) == (2, False)
        assert open_now["request_id"] == "req-1"
        await tell(app, fact(7, kind="power_set.end", resource=OTHER))
        found = await report(app, 7)
        assert found["baremetal.node.power_set"]["open"] == 0
        assert await under_way(app) == []

    run(story)


def test_what_shows_no_progress_is_overdue_and_prometheus_hears_of_it(run):
    async def story(app):
        await tell(app, fact(1, kind="provision_set.start"))
        found = await report(app, 1)
        assert found["baremetal.node.provision_set"]["overdue"] == 1
        (late,) = await under_way(app, "?overdue=true&operation=baremetal.node.provision_set")
        assert late["is_overdue"] is True
        assert await under_way(app, "?overdue=true&operation=baremetal.node.power_set") == []
        await app.ask("GET", "/metrics")
        labels = {"operation": "baremetal.node.provision_set", "outcome": "overdue"}
        assert metrics.registry.get_sample_value("siderite_operations", labels) == 1

    run(story, operation_overdue_s=0.0)


def test_progress_puts_off_the_time_when_it_is_overdue(app):
    """It counts from the last sign of progress, not from the beginning."""
    app.run(tell(app.app, fact(1, kind="provision_set.start")))
    app.run(tell(app.app, fact(2, kind="provision_set.success")))
    store = app.app.program.store

    async def story():
        start, success = await eventlog.read(store)
        for entry, at in ((start, 1000.0), (success, 1100.0)):
            ops = await Monitor(store, overdue_s=60.0).deal([msgspec.structs.replace(entry, at=at)])
            await store.commit(ops)
        seen = []
        for now in (1130.0, 1161.0):
            watching = Monitor(store, overdue_s=60.0, clock=lambda now=now: now)
            (row,) = (await watching.report())["operations"]
            late = await watching.under_way(overdue=True, operation=None, limit=9)
            (one,) = await watching.under_way(overdue=False, operation=None, limit=9)
            assert (len(late), one["is_overdue"]) == (row["overdue"], bool(row["overdue"]))
            seen.append((row["overdue"], row["longest_open_s"], one["open_s"], one["quiet_s"]))
        return seen

    assert app.run(story()) == [(0, 130.0, 130.0, 30.0), (1, 161.0, 161.0, 61.0)]


def test_what_was_open_when_its_resource_went_or_began_anew_is_abandoned(run):
    async def story(app):
        await tell(
            app,
            fact(1, kind="power_set.start"),
            fact(2, kind="power_set.start"),
            fact(3, kind="provision_set.start"),
            fact(4, kind="provision_set.success"),
            fact(5, kind="delete.start"),
            fact(6, kind="delete.end"),
        )
        found = await report(app, 6)
        abandoned = {name: row["abandoned"] for name, row in found.items()}
        assert abandoned == {
            "baremetal.node.power_set": 2,
            "baremetal.node.provision_set": 1,
            "baremetal.node.delete": 0,
        }
        assert await under_way(app) == []

    run(story)


class Compared(str):
    """A name that counts how often it is held against another."""

    times = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Compared.times += 1
        return str(self) == str(other)


def test_what_is_deleted_is_not_held_against_all_that_is_open(app, monkeypatch):
    """Thousands that go at once would keep requests waiting."""

    def plain(rows):
        bare = [[str(v) if isinstance(v, Compared) else v for v in row] for row in rows]
        return packed(bare)

    monkeypatch.setattr(monitor, "packed", plain)
    names = [Compared(n) for n in range(300)]
    kinds = ("power_set.start", "delete.start", "delete.end")
    heads = [
        eventlog.Head(n, f"baremetal.node.{kind}", 1.0, None, "node", name, None)
        for n, (kind, name) in enumerate(itertools.product(kinds, names), 1)
    ]
    store = app.app.program.store

    async def story():
        one = Monitor(store, overdue_s=60.0)
        await store.commit(await one.deal(heads))
        return await one.report()

    before = Compared.times
    told = app.run(story())
    assert {row["operation"]: row["abandoned"] for row in told["operations"]} == {
        "baremetal.node.delete": 0,
        "baremetal.node.power_set": 300,
    }
    assert Compared.times - before < 50 * len(names)


def test_the_count_is_the_same_whatever_way_the_log_came_in(run):
    """Batches end anywhere: what is open stands in rows between them."""

    async def story(app):
        kinds = ("start", "success", "end", "start", "error", "end", "start")
        for n, status in enumerate(kinds, 1):
            await tell(app, fact(n, kind=f"provision_set.{status}"))
            await report(app, n)
        row = (await report(app, len(kinds)))["baremetal.node.provision_set"]
        counted = [row[name] for name in ("started", "ended", "failed", "succeeded", "open")]
        assert counted == [3, 2, 1, 1, 1]

    run(story)


@pytest.mark.parametrize("path", [ADDRESS, f"{ADDRESS}/open", "/events/v1/log"])
def test_only_those_who_see_all_see_it(one_fact, path):
    _, token, _ = one_fact.person("member")
    assert one_fact.ask("GET", path, token=token).status == 403
    assert one_fact.ask("GET", path).status == 200
    assert one_fact.ask("GET", f"{path}?colour=red").status == 400


@pytest.mark.parametrize("query", ["overdue=maybe", "operation=", "operation=Power", "limit=0"])
def test_what_cannot_be_is_said(one_fact, query):
    assert one_fact.ask("GET", f"{ADDRESS}/open?{query}").status == 400


def test_a_nodes_own_story_leaves_nothing_open(run):
    async def story(app):
        uuid = await app.make_node()
        await app.ask("PUT", f"/v1/nodes/{uuid}/states/provision", {"target": "manage"})
        async with asyncio.timeout(30):
            while (await app.show(uuid))["provision_state"] != "manageable":
                await asyncio.sleep(0.02)
            while True:
                answer = (await app.ask("GET", ADDRESS)).json
                rows = {row["operation"]: row for row in answer["operations"]}
                if rows.get("baremetal.node.provision_set", {}).get("ended"):
                    break
                await asyncio.sleep(0.02)
        assert all(row["open"] == 0 for row in rows.values()), rows
        assert NODE not in str(await under_way(app))

    run(story)
