"""A receiver of webhooks as others write one: a process of its own, that writes down what it took.

    python -m tests.crash.hook_receiver LOG REFUSALS        prints its port

REFUSALS is a file with JSON: `chance` of a 503, and `resources` that are always refused.
"""

import json
import random
import sys
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any


class Hook(BaseHTTPRequestHandler):
    """Takes an event, or does not."""

    protocol_version = "HTTP/1.1"
    log: Path
    refusals: Path
    lock = threading.Lock()

    def do_POST(self) -> None:
        length = int(self.headers["content-length"])
        body = self.rfile.read(length)
        if len(body) < length:  # its sender died over it
            self.close_connection = True
            return
        event = json.loads(body)
        refused = json.loads(self.refusals.read_text())
        status = 204
        if event["resource"]["id"] in refused["resources"] or random.random() < refused["chance"]:
            status = 503
        else:
            line = json.dumps({"id": self.headers["webhook-id"], "event": event})
            with self.lock, self.log.open("a") as file:
                file.write(line + "\n")
        with suppress(ConnectionError):
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

    def log_message(self, *_: Any) -> None:
        """What it took is all that it has to say."""


class Server(ThreadingHTTPServer):
    """Clients that die are no news."""

    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """The next one comes."""


def main() -> None:
    Hook.log, Hook.refusals = Path(sys.argv[1]), Path(sys.argv[2])
    with Server(("127.0.0.1", 0), Hook) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
