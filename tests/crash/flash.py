"""A service killed while it flashes firmware: at the very moment when the BMC has the order and has
not answered, and at moments by chance. Every part must be flashed, and once.

    python -m tests.crash.flash --rounds 10 --db postgresql        (scripts/soak)

The BMC is `tests.lab.redfish_front`, the machine one of paper.
"""

import argparse
import random
import sys
import tempfile
import threading
import time
from pathlib import Path

import httpx

from tests.baremetal.real.life import Life
from tests.lab.redfish_front import Front
from tests.lab.redfish_front import redfish_front
from tests.lab.redfish_paper import SYSTEM
from tests.lab.redfish_paper import Paper
from tests.support.postgres import running_postgres
from tests.support.server import Server
from tests.support.server import running_server

PARTS = ("bmc", "bios", "nic:Slot1")
PATIENCE_S = 180.0


class Killer:
    """Ends the service when the BMC is told of new firmware, and now and then besides."""

    def __init__(self, server: Server, front: Front, chance: random.Random) -> None:
        self._server = server
        self._chance = chance
        self._turn = threading.Lock()
        self._armed = True
        self.kills = 0
        front.by_task = self._told

    def _told(self, method: str, path: str) -> bool:
        if "SimpleUpdate" not in path:
            return False
        if self._armed and self._chance.random() < 0.7:
            self._kill()
        return True

    def _kill(self) -> None:
        with self._turn:
            if self._server.running:
                self._server.kill()
                self.kills += 1

    def lead(self, node: Life) -> None:
        """Until the node is manageable again; the service is started as often as it must be."""
        deadline = time.monotonic() + PATIENCE_S
        left, again = 3, time.monotonic() + self._chance.uniform(0.1, 4)
        while time.monotonic() < deadline:
            if left and time.monotonic() > again:
                self._kill()
                left, again = left - 1, time.monotonic() + self._chance.uniform(1, 8)
            try:
                with self._turn:  # nobody ends it in the middle of our question
                    if not self._server.running:
                        self._server.start()
                    shown = node.show()
            except (httpx.TransportError, AssertionError):
                continue
            if shown["provision_state"] == "manageable":
                return
            assert shown["provision_state"] != "clean failed", shown["last_error"]
            time.sleep(0.05)
        raise AssertionError(f"not done in {PATIENCE_S:.0f} s; it waits: {shown['wait_reason']}")


def flash(folder: Path, db: str | None, *, rounds: int, seed: int) -> str:
    """Flash all parts in each round; what came of it, in a sentence."""
    paper, chance = Paper(), random.Random(seed)
    with redfish_front(paper) as front, running_server(folder, db=db) as server:
        info = {**front.driver_info, "redfish_system_id": SYSTEM}
        node = Life.enrol(server, driver="redfish", driver_info=info)
        node.verb("manage", "manageable")
        killer = Killer(server, front, chance)
        for number in range(1, rounds + 1):
            settings = [
                {
                    "component": part,
                    "url": f"http://files.invalid/{part[:4].rstrip(':')}-{number}.bin",
                }
                for part in PARTS
            ]
            step = {"interface": "firmware", "step": "update", "args": {"settings": settings}}
            body = {"target": "clean", "clean_steps": [step]}
            node.ask("PUT", "/states/provision", body, 202)
            killer.lead(node)
            images = [told["ImageURI"] for told in paper.flashed]
            assert images == [one["url"] for one in settings], f"round {number}: {images}"
            assert set(paper.versions.values()) == {str(number)}, paper.versions
            paper.flashed.clear()
    return f"{rounds * len(PARTS)} parts flashed, each once, over {killer.kills} kills"


def main() -> int:
    """As the command line says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--db", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    said = parser.parse_args()
    print(f"seed {said.seed}", flush=True)
    how = {"rounds": said.rounds, "seed": said.seed}
    with tempfile.TemporaryDirectory(prefix="siderite-flash-") as folder:
        if said.db == "sqlite":
            print(flash(Path(folder), None, **how))
        else:
            with running_postgres() as postgres:
                print(flash(Path(folder), postgres.url(), **how))
    return 0


if __name__ == "__main__":
    sys.exit(main())
