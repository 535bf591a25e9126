"""The computer's clock is set by an hour, while the service runs or is down: what waits for seconds
waits for seconds.
"""

import os
import sqlite3
import time
from contextlib import closing

import pytest

from tests.crash.test_downtime import ask
from tests.crash.test_downtime import until
from tests.support.server import running_server

HOUR_S = 3600.0
PATIENCE_S = 60.0
INTERVAL_S = 8.0
STEP_S = 5.0
"""Longer than it takes until the service looks at the clock again."""
_SET = """
import time
ours = time.time

def theirs():
    with open({path!r}) as file:
        return ours() + float(file.read())

time.time = theirs
"""


class Watch:
    """The clock that the process goes by."""

    def __init__(self, folder, monkeypatch):
        folder.mkdir()
        self._file = folder / "ahead_s"
        self.ahead_s = 0.0
        self.set(0.0)
        (folder / "sitecustomize.py").write_text(_SET.format(path=str(self._file)))
        paths = [str(folder), os.environ.get("PYTHONPATH", "")]
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))

    def set(self, by_s):
        """Set it forward by so much."""
        self.ahead_s += by_s
        new = self._file.with_suffix(".new")
        new.write_text(str(self.ahead_s))
        new.replace(self._file)

    def now(self):
        return time.time() + self.ahead_s


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("is_down", "ramdisk", "by_s"),
    [(False, False, -HOUR_S), (False, True, -HOUR_S), (False, True, HOUR_S), (True, True, -HOUR_S)],
)
def test_a_deploy_goes_on_when_the_clock_is_set(tmp_path, monkeypatch, is_down, ramdisk, by_s):
    watch = Watch(tmp_path / "clock", monkeypatch)
    options = {"power_watch_interval_s": str(INTERVAL_S)}
    with running_server(tmp_path, options=options) as server:
        server.script("all", latency_s={"*": STEP_S}, ramdisk=ramdisk)
        old = server.headers("1.10")
        node = ask(server, "POST", "nodes", {"driver": "fake-hardware"}, old)
        path = f"nodes/{node['uuid']}"
        target = {"target": "active"}
        ask(server, "PUT", f"{path}/states/provision", target, server.headers("1.900"))
        until(server, path, lambda shown: shown["provision_state"] not in ("available", "active"))
        if is_down:
            server.kill()
        watch.set(by_s)
        if is_down:
            server.start()
        began = time.monotonic()
        ends = ("active", "deploy failed")
        shown = until(server, path, lambda shown: shown["provision_state"] in ends)
        assert (shown["provision_state"], shown["last_error"]) == ("active", None)
        assert time.monotonic() - began < PATIENCE_S
        with closing(sqlite3.connect(server.data / "siderite.db")) as db, db:
            (told,) = db.execute("SELECT at FROM events ORDER BY seq DESC LIMIT 1").fetchone()
            (due,) = db.execute("SELECT max(due) FROM power_watch").fetchone()
        assert abs(told - watch.now()) < PATIENCE_S, "what happens now has the time that it is"
        assert due < watch.now() + 2 * INTERVAL_S, "its power is read as often as before"
