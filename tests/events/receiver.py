"""A receiver of webhooks on loopback: it keeps what it is sent, and answers as the test says."""

import asyncio
import json
from contextlib import asynccontextmanager

PATIENCE_S = 30.0


class Receiver:
    """What came in, in order."""

    def __init__(self):
        self.got = []
        self.url = ""
        self.answer = lambda event: 204
        self._news = asyncio.Condition()

    async def _serve(self, reader, writer):
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *lines = head.decode().split("\r\n")[:-2]
                headers = dict(line.lower().split(": ", 1) for line in lines)
                raw = {line.split(": ", 1)[0].lower(): line.split(": ", 1)[1] for line in lines}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                event = json.loads(body)
                status = self.answer(event)
                if asyncio.iscoroutine(status):
                    status = await status
                async with self._news:
                    self.got.append((status, event, raw, body, first))
                    self._news.notify_all()
                more = f"location: {self.url}\r\n" if 300 <= status < 400 else ""
                writer.write(f"HTTP/1.1 {status} x\r\n{more}content-length: 0\r\n\r\n".encode())
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def until(self, is_enough):
        """Everything that came in, when a condition on what was taken holds."""
        async with asyncio.timeout(PATIENCE_S), self._news:
            await self._news.wait_for(lambda: is_enough(self.taken()))
        return self.taken()

    def taken(self):
        """The events that were answered with 2xx."""
        return [event for status, event, *_ in self.got if 200 <= status < 300]


@asynccontextmanager
async def receiving(ssl=None):
    """A receiver that listens."""
    receiver = Receiver()
    server = await asyncio.start_server(receiver._serve, "127.0.0.1", 0, ssl=ssl)
    receiver.url = (
        f"http{'s' if ssl else ''}://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook?a=b"
    )
    try:
        yield receiver
    finally:
        server.close()
        await asyncio.sleep(0)  # who was let in just now has a chance to be shown out
