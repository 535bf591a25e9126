"""Takes Siderite's webhooks, checks who sent them, and prints one line per event.

    SECRET=whsec_… python webhook_receiver.py 9000

Nothing but Python is needed. `message_id` is remembered, since an event may come twice.
"""

import base64
import hmac
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler
from http.server import HTTPServer

KEY = base64.b64decode(os.environ["SECRET"].removeprefix("whsec_"))
OLD_S = 300
seen: set[str] = set()


class Receiver(BaseHTTPRequestHandler):
    """One POST is one event."""

    def do_POST(self) -> None:
        """204 if it is genuine, also the second time; 401 if not."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if not self._is_genuine(body):
            self.send_response(401)
        else:
            event = json.loads(body)
            if event["message_id"] not in seen:
                seen.add(event["message_id"])
                print(event["seq"], event["event_type"], event["resource"]["id"], flush=True)
            self.send_response(204)
        self.end_headers()

    def _is_genuine(self, body: bytes) -> bool:
        sent, when = self.headers.get("webhook-id", ""), self.headers.get("webhook-timestamp", "")
        if not when.isdigit() or abs(time.time() - int(when)) > OLD_S:
            return False
        digest = hmac.digest(KEY, f"{sent}.{when}.".encode() + body, "sha256")
        signatures = self.headers.get("webhook-signature", "").split()
        expected = "v1," + base64.b64encode(digest).decode()
        return any(hmac.compare_digest(expected, one) for one in signatures)

    def log_message(self, *_: object) -> None:
        """Quiet."""


if __name__ == "__main__":
    HTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver).serve_forever()
