"""Putting facts into the log of a program in this process, and reading its answers."""

import asyncio
import base64
from contextlib import aclosing
from contextlib import asynccontextmanager
from dataclasses import dataclass

from siderite.core import sequencer
from siderite.core.fact import Fact
from siderite.core.transition import Cause
from siderite.wiring.events import FACTS
from tests.support.app import scope

ADDRESS = "/events/v1/events"
NODE = "1be26c0b-03f2-4d2e-ae87-c02d7f33c123"
OTHER = "2be26c0b-03f2-4d2e-ae87-c02d7f33c123"
PATIENCE_S = 20.0


def fact(n, *, kind="update.end", resource=NODE, project=None):
    priority = "ERROR" if kind.endswith(".error") else "INFO"
    return Fact(
        f"baremetal.node.{kind}", "ironic-api", "node", resource, f'{{"n":{n}}}', priority, project
    )


async def tell(app, *facts):
    """Commit each fact by itself, through the door, and give it its place."""
    for each in facts:
        change = app.program.door.change(Cause("req-1"))
        change.tell(each)
        await app.program.door.commit(change)
    if app.program.store.dialect == "postgresql":
        await sequencer.place(app.program.store, FACTS)


@dataclass
class Event:
    """A server-sent event as its reader understands it; without data it is a sign of life."""

    id: int
    type: str
    data: str


class Parser:
    """Lines of a stream, put together again to events."""

    def __init__(self):
        self._fields = {}

    def line(self, text):
        """The event that this line completes."""
        if text:
            name, _, value = text.partition(": ")
            assert name in ("", "id", "event", "data"), text
            assert name not in self._fields, text
            self._fields[name] = value
            return None
        fields, self._fields = self._fields, {}
        return Event(int(fields["id"]), fields.get("event", ""), fields.get("data", ""))


def _proof(token):
    """The header that a token, or a name with a password, comes in."""
    if isinstance(token, tuple):
        return b"authorization", b"Basic " + base64.b64encode(":".join(token).encode())
    return b"x-auth-token", token.encode()


class Stream:
    """A stream of a program in this process, read when the test says so."""

    def __init__(self, app, query, *, token, last):
        sent = [(b"accept", b"text/event-stream"), _proof(token or app.token)]
        if last is not None:
            sent.append((b"last-event-id", b"%d" % last))
        self._scope = scope("GET", ADDRESS + query, sent)
        self._app = app.program.app
        self._left = asyncio.Event()
        self._sent = asyncio.Queue(1)
        self._parser = Parser()
        self._lines = []
        self.start = None
        self.task = None

    async def _receive(self):
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def message(self):
        """What the program sends next."""
        async with asyncio.timeout(PATIENCE_S):
            return await self._sent.get()

    async def sign(self):
        """The next event or sign of life; None at the end of the stream."""
        while True:
            while self._lines:
                event = self._parser.line(self._lines.pop(0))
                if event is not None:
                    return event
            message = await self.message()
            if not message.get("more_body"):
                return None
            self._lines = message["body"].decode().split("\n")[:-1]

    async def event(self):
        """The next event."""
        async with asyncio.timeout(PATIENCE_S):  # signs of life may come for ever
            while (sign := await self.sign()) is not None:
                if sign.data:
                    return sign
        return None

    async def numbers(self, count):
        """The numbers of the next events."""
        return [(await self.event()).id for _ in range(count)]

    async def leave(self):
        """The client hangs up; returns when the program has noticed."""
        self._left.set()
        async with asyncio.timeout(PATIENCE_S):
            await self.task

    @classmethod
    @asynccontextmanager
    async def open(cls, app, query="", *, token=None, last=None):
        """Ask as admin unless a token is given, and wait for the head of the answer."""
        stream = cls(app, query, token=token, last=last)
        stream.task = asyncio.create_task(
            stream._app(stream._scope, stream._receive, stream._sent.put)
        )
        stream.start = await stream.message()
        async with aclosing(stream):
            yield stream

    async def aclose(self):
        """End it from outside, as the server does with what it gives up."""
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
