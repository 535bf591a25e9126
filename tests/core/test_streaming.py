"""Answers that come bit by bit: they end with their client, and with its patience and ours."""

import asyncio

import pytest

from siderite.core.streaming import PIECE
from siderite.core.streaming import pour


class Client:
    """The far end: leaves when told to, takes as much as it is told to."""

    def __init__(self, takes: int | None = None) -> None:
        self.left = asyncio.Event()
        self.got: list[bytes] = []
        self.is_complete = False
        self._takes = takes

    async def receive(self) -> dict[str, str]:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, object]) -> None:
        if self._takes is not None and len(self.got) >= self._takes:
            await asyncio.Event().wait()
        assert isinstance(message["body"], bytes)
        self.got.append(message["body"])
        self.is_complete = not message.get("more_body")


class Source:
    """Chunks, as many as are asked for; knows how many were, and whether it was closed."""

    def __init__(self, count: int) -> None:
        self.made = 0
        self.is_closed = False
        self._count = count

    async def chunks(self):
        try:
            while self.made < self._count:
                self.made += 1
                yield b"x"
            if self._count > 10:
                await asyncio.Event().wait()
        finally:
            self.is_closed = True


def test_all_chunks_are_sent_and_the_answer_completed() -> None:
    async def story() -> None:
        client, source = Client(), Source(3)
        await pour(source.chunks(), client.receive, client.send)
        assert (client.got, client.is_complete) == ([b"x", b"x", b"x", b""], True)
        assert source.is_closed

    asyncio.run(story())


def test_a_client_that_leaves_ends_it() -> None:
    async def story() -> None:
        client, source = Client(), Source(11)
        pouring = asyncio.create_task(pour(source.chunks(), client.receive, client.send))
        while source.made < 11:
            await asyncio.sleep(0)
        client.left.set()
        async with asyncio.timeout(5):
            await pouring
        assert source.is_closed
        assert not client.is_complete

    asyncio.run(story())


def test_a_client_that_does_not_read_is_cut_and_nothing_is_made_ahead_for_it() -> None:
    async def story() -> None:
        client, source = Client(takes=5), Source(1000)
        async with asyncio.timeout(5):
            await pour(source.chunks(), client.receive, client.send, patience_s=0.05)
        assert (len(client.got), source.made, client.is_complete) == (5, 6, False)
        assert source.is_closed

    asyncio.run(story())


@pytest.mark.parametrize(("bytes_per_look", "is_complete"), [(PIECE, True), (PIECE - 1, False)])
def test_a_client_that_reads_on_is_not_cut_though_its_system_takes_no_more_for_long(
    bytes_per_look: int, is_complete: bool
) -> None:
    """As of who fetches an image to a slow disk: room is made in large steps."""

    class Full(Client):
        waits = 0

        async def send(self, message: dict[str, object]) -> None:
            while self.waits < 3:
                self.waits += 1
                await asyncio.Event().wait()
            await super().send(message)

    async def story() -> None:
        client, source = Full(), Source(2)

        def unread() -> int:
            return 2**22 - client.waits * bytes_per_look

        async with asyncio.timeout(5):
            await pour(source.chunks(), client.receive, client.send, unread=unread, patience_s=0.01)
        assert client.got == ([b"x", b"x", b""] if is_complete else [])
        assert client.is_complete is is_complete

    asyncio.run(story())


def test_a_source_that_breaks_leaves_the_answer_incomplete(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def broken():
        yield b"x"
        raise RuntimeError("no more")

    async def story() -> None:
        client = Client()
        await pour(broken(), client.receive, client.send)
        assert (client.got, client.is_complete) == ([b"x"], False)

    asyncio.run(story())
    assert "no more" in capsys.readouterr().err


def test_a_request_for_the_head_gets_no_chunk() -> None:
    async def story() -> None:
        client, source = Client(), Source(3)
        await pour(source.chunks(), client.receive, client.send, silent=True)
        assert (client.got, client.is_complete, source.made) == ([b""], True, 0)

    asyncio.run(story())


def test_a_client_that_reads_slowly_gets_large_chunks_whole() -> None:
    """As who fetches an image over a thin line."""

    class Slow(Client):
        async def send(self, message: dict[str, object]) -> None:
            assert isinstance(message["body"], bytes)
            await asyncio.sleep(len(message["body"]) / 2**20)  # bytes in a second
            await super().send(message)

    async def large():
        yield b"x" * 2**20
        yield b"y"

    async def story() -> None:
        client = Slow()
        async with asyncio.timeout(30):
            await pour(large(), client.receive, client.send, patience_s=0.7)
        assert b"".join(client.got) == b"x" * 2**20 + b"y"
        assert client.is_complete

    asyncio.run(story())
