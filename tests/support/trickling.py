"""A server whose answers do not end: it says a little again and again, or ever more."""

import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import StreamRequestHandler

from tests.support.serving import serving


@contextmanager
def trickling(pause_s: float) -> Iterator[str]:
    """Its address, until left; without a pause it pours."""
    left = threading.Event()

    class Answers(StreamRequestHandler):
        def handle(self) -> None:
            while self.rfile.readline().strip():
                pass
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\n")
            with contextlib.suppress(OSError):
                while not left.wait(pause_s):
                    self.wfile.write(b" " if pause_s else bytes(1 << 20))

    with serving(Answers) as url:
        try:
            yield url
        finally:
            left.set()
