"""Two processes on one PostgreSQL: one is killed and the other has everything within 15 seconds;
one is stopped, and leaves when the steps under way have come to their ends.
"""

import asyncio
import sqlite3
import time
from contextlib import closing

import asyncpg
import pytest

from tests.support.server import running_server
from tests.wiring.test_jobs import ONCE

WITHIN_S = 15.0
STEP_S = 3.0
SCRIPT = {"latency_s": {"deploy.write_image": STEP_S, "*": 0.0}, "audit": True}
PATIENCE_S = 120.0


class Story:
    """The two processes, and what their database says of them."""

    def __init__(self, one, two, db, machines):
        self.one, self.two, self._db, self._machines = one, two, db, machines

    def rows(self, sql):
        async def ask():
            connection = await asyncpg.connect(self._db)
            try:
                return [tuple(row) for row in await connection.fetch(sql)]
            finally:
                await connection.close()

        return asyncio.run(ask())

    def until(self, claim, patience_s=PATIENCE_S):
        """Wait for something to be so; how long it took."""
        began = time.monotonic()
        while not claim():
            assert time.monotonic() - began < patience_s, self.two.last_words()
            time.sleep(0.05)
        return time.monotonic() - began

    def leases(self):
        return dict(self.rows("SELECT name, owner FROM leases WHERE name <> 'health'"))

    def workers(self):
        """Which of the two has work, by name."""
        owners = self.rows("SELECT owner FROM work WHERE owner IS NOT NULL")
        return {row[0].split(":")[0] for row in owners}

    def ask(self, server, method, path, body=None):
        reply = server.api.request(
            method, f"/baremetal/v1{path}", json=body, headers=server.headers("1.109")
        )
        assert reply.status_code < 300, reply.text
        return reply.json() if reply.content else None

    def state(self, node):
        return self.ask(self.two, "GET", f"/nodes/{node}/states")["provision_state"]

    def deploying(self, server):
        """A node in the middle of a long step, by one of the two."""
        node = self.ask(server, "POST", "/nodes", {"driver": "fake-hardware"})["uuid"]
        for verb, reached in (("manage", "manageable"), ("provide", "available")):
            self.verb(server, node, verb)
            self.until(lambda reached=reached: self.state(node) == reached)
        self.verb(server, node, "active")
        self.until(lambda: self.steps(node, "write_image"))
        return node

    def verb(self, server, node, verb):
        self.ask(server, "PUT", f"/nodes/{node}/states/provision", {"target": verb})

    def steps(self, node, step):
        """The runs of a step that the machine remembers."""
        with closing(sqlite3.connect(self._machines)) as db, db:
            sql = "SELECT token FROM runs WHERE node = ? AND what LIKE ?"
            return db.execute(sql, (node, f"%{step}%")).fetchall()


@pytest.mark.serial
def test_a_process_that_dies_is_replaced_in_time_and_one_that_stops_leaves_in_time(
    tmp_path, postgres_url
):
    machines = str(tmp_path / "machines.db")
    options = {"simulated_db": machines, "power_watch_interval_s": "0.5", "compute_endpoint": ""}
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    named = [options | {"host": folder.name} for folder in folders]
    with running_server(folders[0], db=postgres_url, options=named[0]) as one:
        expected = ONCE - {"events.bus"}  # there is no bus
        story = Story(one, one, postgres_url, machines)
        story.until(lambda: set(story.leases()) == expected)
        with running_server(folders[1], db=postgres_url, options=named[1]) as two:
            story.two = two
            _killed(story)
            one.start()
            _stopped(story)


def _killed(story):
    """All that runs once, and the work under way, is the other's within the time."""
    story.one.script("all", **SCRIPT)
    node = story.deploying(story.one)
    before = story.leases()
    assert story.workers() <= {"one"}, "it was asked, so it works"
    story.one.kill()
    began = time.monotonic()

    def moved():
        now = story.leases()
        return now.keys() == before.keys() and not now.items() & before.items()

    story.until(moved)
    assert time.monotonic() - began < WITHIN_S
    story.until(lambda: story.state(node) == "active")
    assert time.monotonic() - began < WITHIN_S + STEP_S
    assert len(story.steps(node, "write_image")) == 1, "the step was not run again"


def _stopped(story):
    """It leaves once its step has ended; nothing fails, nothing is run again."""
    node = story.deploying(story.two)
    began = time.monotonic()
    assert story.two.stop() == 0
    assert time.monotonic() - began < STEP_S + 5.0
    story.two = story.one
    story.until(lambda: story.state(node) == "active", WITHIN_S)
    assert len(story.steps(node, "write_image")) == 1, "the step was not run again"
    shown = story.ask(story.one, "GET", f"/nodes/{node}")
    assert shown["last_error"] is None
    story.until(lambda: set(story.leases()) == ONCE - {"events.bus"}, WITHIN_S)
