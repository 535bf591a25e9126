"""Two processes on one PostgreSQL, on computers whose clocks differ by an hour."""

import os
import sqlite3
from contextlib import closing

import pytest

from tests.crash.cluster import two_at_once
from tests.crash.test_takeover import Story
from tests.support.server import running_server
from tests.wiring.test_jobs import ONCE

AHEAD_S = 3600.0
_OTHER_CLOCK = f"""
import time
ours = time.time
time.time = lambda: ours() + {AHEAD_S}
"""


@pytest.mark.serial
def test_a_process_whose_clock_is_an_hour_ahead_takes_nothing_from_another(
    tmp_path, postgres_url, monkeypatch
):
    machines = str(tmp_path / "machines.db")
    options = {"simulated_db": machines, "compute_endpoint": ""}
    for folder in ("one", "two", "clock"):
        (tmp_path / folder).mkdir()
    (tmp_path / "clock" / "sitecustomize.py").write_text(_OTHER_CLOCK)
    with running_server(
        tmp_path / "one", db=postgres_url, options=options | {"host": "one"}
    ) as one:
        story = Story(one, one, postgres_url, machines)
        story.until(lambda: set(story.leases()) == ONCE - {"events.bus"})
        before = story.leases()
        paths = [str(tmp_path / "clock"), os.environ.get("PYTHONPATH", "")]
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        with running_server(
            tmp_path / "two", db=postgres_url, options=options | {"host": "two"}
        ) as two:
            story.two = two
            assert "database's clock is followed" in two.log.read_text()
            one.script("all", latency_s={"deploy.write_image": 1.0}, audit=True)
            nodes = [story.deploying(server) for server in (one, two)]
            for node in nodes:
                story.until(lambda node=node: story.state(node) == "active")
                assert len(story.steps(node, "write_image")) == 1
            with closing(sqlite3.connect(machines)) as db, db:
                assert two_at_once(db) == []
            assert story.leases() == before, "what runs once stayed where it was"
            assert _seen_up(story, one) == _seen_up(story, two) == {"one", "two"}
            (spread,) = story.rows(
                "SELECT max(at), max(at) - min(at), extract(epoch FROM now()) FROM events"
            )
            assert spread[0] < float(spread[2]) + 1.0
            assert spread[1] < AHEAD_S / 2


def _seen_up(story, server):
    found = story.ask(server, "GET", "/conductors")["conductors"]
    return {one["hostname"] for one in found if one["alive"]}
