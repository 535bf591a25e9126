"""A web server on loopback that images are fetched from; it can be slow, break off and redirect."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from http.server import ThreadingHTTPServer


class Mirror:
    """What it has, and what it was asked for."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.files: dict[str, bytes] = {}
        self.redirects: dict[str, str] = {}
        self.answers: list[int] = []
        """Statuses in place of the next files; 0 is half a file and then nothing more."""
        self.asked: list[str] = []
        self.half = threading.Event()
        """Half of a file was sent."""
        self.open = threading.Event()
        """The other half may be sent."""
        self.open.set()

    def at(self, path: str, data: bytes) -> str:
        """The address of a new file."""
        self.files[path] = data
        return f"http://127.0.0.1:{self.port}{path}"


def _handler(mirror: Mirror) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            mirror.asked.append(self.path)
            path = self.path.partition("?")[0]
            status = mirror.answers.pop(0) if mirror.answers else 200
            if path in mirror.redirects:
                self._say(302, {"Location": mirror.redirects[path], "Content-Length": "0"})
            elif status > 200 or path not in mirror.files:
                self._say(status if status > 200 else 404, {"Content-Length": "0"})
            else:
                self._send(mirror.files[path], whole=status == 200)

        def _say(self, status: int, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()

        def _send(self, data: bytes, *, whole: bool) -> None:
            self._say(200, {"Content-Length": str(len(data))})
            middle = len(data) // 2
            try:
                self.wfile.write(data[:middle])
                self.wfile.flush()
                mirror.half.set()
                if whole and mirror.open.wait(60):
                    self.wfile.write(data[middle:])
                else:
                    self.close_connection = True
            except ConnectionError:
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    return Handler


@contextmanager
def mirroring() -> Iterator[Mirror]:
    """A server, until left."""
    mirror = Mirror(0)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(mirror))
    server.daemon_threads = True
    mirror.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield mirror
    finally:
        mirror.open.set()
        server.shutdown()
        thread.join()
        server.server_close()
