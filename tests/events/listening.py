"""Running the oslo.messaging consumer beside a test, and what it has heard."""

import json
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

from tests.support.server import clean_environment

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 60.0


class Heard:
    """What a consumer has printed so far."""

    def __init__(self, process):
        self._process = process
        self._news = threading.Condition()
        self.all = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        for line in self._process.stdout:
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
        self._process.kill()
        self._process.wait()
        self._thread.join(10.0)
        self._process.stdout.close()


@contextmanager
def listening(url, *, exchange="ironic", topic="ironic_versioned_notifications", flags=()):
    """A consumer, ready to hear."""
    words = ["-m", "tests.events.consumer", url, exchange, topic, *flags]
    process = subprocess.Popen(
        [sys.executable, *words],
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        env=clean_environment(),
        cwd=ROOT,
    )
    heard = Heard(process)
    try:
        heard.ready()
        yield heard
    finally:
        heard.close()
