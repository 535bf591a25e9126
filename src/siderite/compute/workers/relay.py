"""Asks hosts of other conductor groups by way of their workers, and answers for its own."""

from typing import Any

import msgspec

from siderite.compute.domain.host import Host
from siderite.compute.domain.network import Port
from siderite.compute.domain.server import Server
from siderite.compute.domain.talk import MigrationProgress
from siderite.compute.domain.usage import Usage
from siderite.compute.usecases.fleet import asking
from siderite.compute.usecases.fleet import hosts
from siderite.compute.usecases.fleet.asking import Answer
from siderite.compute.usecases.fleet.asking import Question
from siderite.compute.usecases.server import progress
from siderite.compute.workers.consoles import DriverConsoles
from siderite.compute.workers.hands import Hands
from siderite.compute.workers.hands import NotOurs
from siderite.compute.workers.talk import PATIENCE_S
from siderite.compute.workers.talk import DriverTalk
from siderite.core.errors import Conflict
from siderite.core.errors import NotFound
from siderite.core.errors import SideriteError
from siderite.core.work import Work

_GRACE_S = 5.0
"""For the way there and back: who checks a host waits for it, too."""


class Relay:
    """The `Talk` of all servers: of our own hosts at once, of others by their workers."""

    def __init__(self, hands: Hands, talk: DriverTalk) -> None:
        self._hands = hands
        self._talk = talk

    async def check_host(self, host: Host) -> str | None:
        if self._hands.serves(host):
            return await self._talk.check_host(host)
        return await asking.check(self._hands.ctx, host, PATIENCE_S + _GRACE_S)

    async def console_log(self, server: Server, lines: int | None) -> str:
        try:
            return await self._talk.console_log(server, lines)
        except NotOurs as why:
            return msgspec.json.decode(await self._ask(why, "log", server, lines), type=str)

    async def diagnostics(self, server: Server) -> Usage:
        try:
            return await self._talk.diagnostics(server)
        except NotOurs as why:
            return msgspec.json.decode(await self._ask(why, "diagnostics", server), type=Usage)

    async def migration(self, server: Server) -> MigrationProgress | None:
        try:
            return await self._talk.migration(server)
        except NotOurs as why:
            found = await self._ask(why, "migration", server)
            return msgspec.json.decode(found, type=MigrationProgress | None)

    async def crash_dump(self, server: Server) -> None:
        try:
            await self._talk.crash_dump(server)
        except NotOurs as why:
            await self._ask(why, "crash_dump", server)

    async def attach(self, server: Server, port: Port) -> None:
        try:
            await self._talk.attach(server, port)
        except NotOurs as why:
            await self._ask(why, "attach", server, port)

    async def detach(self, server: Server, port: Port) -> None:
        try:
            await self._talk.detach(server, port)
        except NotOurs as why:
            await self._ask(why, "detach", server, port)

    async def _ask(self, why: NotOurs, what: str, server: Server, more: Any = None) -> msgspec.Raw:
        question = Question(what, why.host.name, server.uuid, more)
        return await asking.ask(self._hands.ctx, why.host, question, PATIENCE_S)


class AskedWork:
    """The handler of what others ask. `url` is where this process's screens are; "" if it does not
    listen.
    """

    def __init__(
        self, hands: Hands, talk: DriverTalk, consoles: DriverConsoles, url: str = ""
    ) -> None:
        self._hands = hands
        self._talk = talk
        self._consoles = consoles
        self._url = url

    async def handle(self, held: Work) -> None:
        """Answer, if somebody still waits for it."""
        ctx = self._hands.ctx
        if held.kind == asking.ANSWERED or ctx.door.clock() >= held.deadline:
            await progress.abandon(ctx, held)
            return
        question = msgspec.json.decode(held.job, type=Question)
        try:
            value = await self._answer(question)
        except NotOurs as why:
            answer = Answer(error=f"{why}; it has just become so, ask again.", status=503)
        except SideriteError as why:
            answer = Answer(error=why.sentence, status=why.status)
        else:
            answer = Answer(msgspec.Raw(msgspec.json.encode(value)))
        await asking.reply(ctx, held, answer)

    async def _answer(self, question: Question) -> Any:
        ctx = self._hands.ctx
        if question.what == "check":
            host = await hosts.named(ctx, question.host)
            return "it was removed meanwhile" if host is None else await self._talk.check_host(host)
        server = await progress.load(ctx, question.server or "")
        if server is None or server.deleted:
            raise NotFound(f"Instance {question.server} could not be found.")
        match question.what:
            case "log":
                return await self._talk.console_log(server, question.more)
            case "diagnostics":
                return await self._talk.diagnostics(server)
            case "migration":
                return await self._talk.migration(server)
            case "crash_dump":
                return await self._talk.crash_dump(server)
            case "screen":
                return await self._screen(server)
        port = msgspec.convert(question.more, Port)
        change = {"attach": self._talk.attach, "detach": self._talk.detach}[question.what]
        return await change(server, port)

    async def _screen(self, server: Server) -> str | None:
        if not self._url:
            raise Conflict(
                f"Host {server.host} is asked by a worker that does not listen, so that nobody can"
                " reach the server's screen: start it with --listen, or name the host's conductor"
                " group in worker_groups of an API process that reaches it."
            )
        return await self._consoles.open_here(server, "vnc", self._url)
