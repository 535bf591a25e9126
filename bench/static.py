"""The upper limit of reads: a bare ASGI app on the service's HTTP server, with answers in memory.

`python -m bench.static FILE PORT` serves the answers of a file that `capture` wrote; `start` runs
that in a process of its own. The server has the service's settings: uvicorn, uvloop, httptools, no
access log.
"""

import sys
from collections.abc import Awaitable
from collections.abc import Callable
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import uvicorn

from bench import capture
from bench import child
from bench import port
from bench.address import Address
from bench.child import Child

Message = MutableMapping[str, Any]

# The server writes these itself, for the service as for us.
_SERVERS_OWN = {"date", "server", "connection"}


class Static:
    """An ASGI app that knows one answer for each request target."""

    def __init__(self, answers: list[capture.Answer]) -> None:
        self._by_target: dict[tuple[str, bytes], tuple[Message, Message]] = {}
        for one in answers:
            path, _, query = one.target.partition("?")
            self._by_target[path, query.encode()] = self._messages(one)

    @staticmethod
    def _messages(answer: capture.Answer) -> tuple[Message, Message]:
        headers = [
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in answer.headers
            if name.lower() not in _SERVERS_OWN
        ]
        return (
            {"type": "http.response.start", "status": answer.status, "headers": headers},
            {"type": "http.response.body", "body": answer.body},
        )

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        if scope["method"] != "GET":
            while (await receive()).get("more_body"):
                pass
        begin, body = self._by_target[scope["path"], scope["query_string"]]
        await send(begin)
        await send(body)


def start(answers: list[capture.Answer], place: Path) -> tuple[Child, Address]:
    """Serve answers from a process of its own."""
    file = place / "answers.json"
    capture.write([*answers, capture.Answer("/ready", 200, (("content-length", "0"),), b"")], file)
    address = Address("127.0.0.1", port.free())
    command = [sys.executable, "-m", "bench.static", str(file), str(address.port)]
    return child.start(command, address, "/ready", log=place / "static.log"), address


def main(file: Path, listen: int) -> None:
    """Serve the answers of a file until told to stop."""
    answers = capture.read(file)
    first = answers[0]
    uvicorn.run(
        Static(answers),
        host="127.0.0.1",
        port=listen,
        loop="uvloop",
        http="httptools",
        lifespan="off",
        access_log=False,
        log_level="warning",
        server_header=first.has("server"),
        date_header=first.has("date"),
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
