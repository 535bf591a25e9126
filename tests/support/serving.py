"""A small HTTP server on loopback, for what answers in a way of its own."""

import ssl
import threading
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from socketserver import BaseRequestHandler


@contextmanager
def serving(
    handler: Callable[..., BaseRequestHandler], tls: ssl.SSLContext | None = None
) -> Iterator[str]:
    """Its address, until left."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
