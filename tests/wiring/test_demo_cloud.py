"""A first start that is killed at each commit of filling in the simulated cloud and fleet."""

import asyncio

import pytest

from siderite import demo
from siderite.wiring.demo_cloud import fill_cloud
from tests.support.app import standing


class Killed(BaseException):
    """As a process ends: nothing after it is done."""


@pytest.mark.parametrize("filling", [demo.fill, fill_cloud])
def test_what_was_killed_while_it_filled_in_a_demo_goes_on_at_the_next_start(
    tmp_path, monkeypatch, filling
):
    monkeypatch.setattr(demo, "_live", lambda *_: asyncio.sleep(0))
    with standing(tmp_path, demo=True, demo_nodes=5) as app:
        store, [fill] = app.app.program.store, _jobs(app, filling)
        commit = store.commit
        for commits in range(30):
            allowed = iter([True] * commits)

            async def one_commit(ops, allowed=allowed):
                if not next(allowed, False):
                    raise Killed
                await commit(ops)

            monkeypatch.setattr(store, "commit", one_commit)
            try:
                app.run(fill())
                break
            except Killed:
                continue
        if filling is demo.fill:
            names = [node["name"] for node in app.ask("GET", "/v1/nodes").json["nodes"]]
            assert names == [f"r01-n0{number}" for number in range(1, 6)]
            return
        images = app.ask("GET", "/image/v2/images").json["images"]
        assert [(one["name"], one["status"]) for one in images] == [("tiny", "active")]
        assert len(app.ask("GET", "/compute/v2.1/flavors").json["flavors"]) == 4
        rows = app.run(store.fetch("SELECT name FROM hosts ORDER BY id"))
        assert [row[0] for row in rows] == ["sim-1", "sim-2", "sim-3", "sim-4"]


def _jobs(app, filling):
    return [job for job in app.app.program.jobs if getattr(job, "func", None) is filling]
