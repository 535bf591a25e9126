"""Answers as a service gave them, byte for byte, and the file that hands them to the static app."""

import http.client
import json
from base64 import b64decode
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bench.address import Address
from bench.load import Request


class NotAsExpected(Exception):
    """A service answered with another status than the workload needs."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer and the request target it belongs to."""

    target: str
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @classmethod
    def taken(cls, address: Address, request: Request) -> Self:
        """Send a request and keep what comes back."""
        target = address.path(request.path)
        connection = http.client.HTTPConnection(address.host, address.port, timeout=120)
        try:
            kind = {"Content-Type": "application/json"} if request.body else {}
            connection.request(request.method, target, request.body or None, address.headers | kind)
            reply = connection.getresponse()
            body = reply.read()
        finally:
            connection.close()
        if reply.status != request.expect:
            raise NotAsExpected(
                f"{request.method} {address.root}{target} gave {reply.status}, "
                f"not {request.expect}: {body[:500].decode(errors='replace')}"
            )
        return cls(target, reply.status, tuple(reply.getheaders()), body)

    def has(self, header: str) -> bool:
        """Whether the answer carries a header."""
        return any(name.lower() == header for name, _ in self.headers)


def write(answers: list[Answer], file: Path) -> None:
    """Keep answers in a file."""
    rows = [
        {
            "target": one.target,
            "status": one.status,
            "headers": one.headers,
            "body": b64encode(one.body).decode(),
        }
        for one in answers
    ]
    file.write_text(json.dumps(rows))


def read(file: Path) -> list[Answer]:
    """The answers in a file."""
    return [
        Answer(
            row["target"],
            row["status"],
            tuple((name, value) for name, value in row["headers"]),
            b64decode(row["body"]),
        )
        for row in json.loads(file.read_text())
    ]
