"""A compute service's ear: takes external events over HTTP, or does what the test tells it to."""

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from http.server import ThreadingHTTPServer


class Receiver:
    """What it heard, and how it is to answer from now on.

    `mood` is `accept`, a status such as `500`, `hang`, `garbage`, or `event:404`: an event's code.
    """

    def __init__(self, port=0):
        self.mood = "accept"
        self.heard = []
        self.taken = []
        self.released = threading.Event()
        self.server = None
        self.port = port

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/v2.1"

    def start(self):
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                receiver.hear(self, body)

            def log_message(self, *args):
                pass

        ThreadingHTTPServer.allow_reuse_address = True
        self.server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_port
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def stop(self):
        if self.server is not None:
            self.released.set()
            self.server.shutdown()
            self.server.server_close()
            self.thread.join()
            self.server = None

    def hear(self, request, body):
        if request.path.endswith("/auth/tokens"):
            self.heard.append(("token", body))
            reply(request, 201, {}, {"X-Subject-Token": "a-token"})
            return
        mood = self.mood
        headers = dict(request.headers)
        self.heard.append((mood, body, headers))
        event = body["events"][0]
        if mood == "hang":
            self.released.wait(60)
            return
        if mood == "garbage":
            reply(request, 200, {"hello": "world"})
        elif mood == "accept" or mood.startswith("event:"):
            code = 200 if mood == "accept" else int(mood.partition(":")[2])
            self.taken.append((event["server_uuid"], event["tag"]))
            answer = {**event, "code": code, "status": "completed" if code == 200 else "failed"}
            reply(request, 200 if code == 200 else 207, {"events": [answer]})
        elif mood == "unknown":  # as Nova said it when power-update was new
            said = {"code": 404, "message": "No instances found for any event"}
            reply(request, 404, {"itemNotFound": said})
        else:
            reply(request, int(mood), {"error": "as told"})


def reply(request, status, body, headers=None):
    text = json.dumps(body).encode()
    request.send_response(status)
    for name, value in {**(headers or {}), "Content-Length": str(len(text))}.items():
        request.send_header(name, value)
    request.end_headers()
    request.wfile.write(text)


@contextmanager
def receiving():
    """A receiver that listens; it is stopped whatever happens."""
    receiver = Receiver()
    receiver.start()
    try:
        yield receiver
    finally:
        receiver.stop()


def wait_for(condition, patience_s=30.0):
    """Until the condition holds."""
    end = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.01)
