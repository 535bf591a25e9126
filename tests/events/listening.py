"""Running oslo.messaging consumers beside a test, and what they have heard."""

import atexit
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from tests.support.server import clean_environment

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 60.0


class Heard:
    """What a consumer has told so far."""

    def __init__(self, connection):
        self._connection = connection
        self._news = threading.Condition()
        self.all = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        with self._connection.makefile("r") as lines:
            for line in lines:
                with self._news:
                    self.all.append(json.loads(line))
                    self._news.notify_all()

    def until(self, is_enough, patience_s=PATIENCE_S):
        """Everything heard, when a condition on it holds; duplicates by message id removed."""
        with self._news:
            assert self._news.wait_for(lambda: is_enough(self.once()), patience_s), len(self.all)
            return self.once()

    def once(self):
        """Without what came again with the same message id."""
        told = {said["message_id"]: said for said in self.all if "message_id" in said}
        return list(told.values())

    def ready(self):
        with self._news:
            assert self._news.wait_for(lambda: bool(self.all), PATIENCE_S)

    def close(self):
        self._connection.shutdown(socket.SHUT_WR)  # and it ends, whatever it does just then
        self._thread.join(10.0)
        self._connection.close()


@cache
def _consumers():
    """The address of the process that makes consumers; there until this one ends."""
    folder = tempfile.mkdtemp(prefix="siderite-hear-")
    address = f"{folder}/socket"  # short: the path of a socket may have 107 characters
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.events.consumer", address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=clean_environment(),
        cwd=ROOT,
    )

    def end():
        process.kill()
        process.communicate()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    assert process.stdout.readline() == b"ready\n", "the consumer does not load"
    return address


@contextmanager
def listening(url, *, exchange="ironic", topic="ironic_versioned_notifications", durable=True):
    """A consumer, ready to hear."""
    wanted = {"url": url, "exchange": exchange, "topic": topic, "durable": durable}
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(_consumers())
    connection.sendall(json.dumps(wanted).encode() + b"\n")
    heard = Heard(connection)
    try:
        heard.ready()
        yield heard
    finally:
        heard.close()
