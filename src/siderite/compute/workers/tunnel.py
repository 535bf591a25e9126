"""A console behind a command (`ssh -W …`): its input and output are the connection."""

import asyncio
from asyncio import StreamReader
from asyncio import StreamWriter
from asyncio.subprocess import PIPE
from asyncio.subprocess import Process
from collections.abc import Sequence
from contextlib import suppress

PATIENCE_S = 20.0
_GRACE_S = 2.0
_PIECE = 4096
_ending: set[asyncio.Task[None]] = set()


async def through(command: Sequence[str]) -> tuple[StreamReader, StreamWriter]:
    """Start the command, and wait for the first bytes from the other end, which speaks first.
    `OSError` with what the command said if they do not come.
    """
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    into, out, errors = process.stdin, process.stdout, process.stderr
    if into is None or out is None or errors is None:
        raise ConnectionError("it has no input or output")
    try:
        async with asyncio.timeout(PATIENCE_S):
            first = await out.read(_PIECE)
            said = b"" if first else await errors.read(_PIECE)
    except BaseException:
        await _end(process)
        raise
    if not first:
        await _end(process)
        words = said.decode(errors="replace").strip() or "it closed the connection"
        raise ConnectionError(" ".join(words.split()))
    out.feed_data(first)
    task = asyncio.create_task(_end_after(process, into))
    _ending.add(task)
    task.add_done_callback(_ending.discard)
    return out, into


async def _end_after(process: Process, writer: StreamWriter) -> None:
    """The command goes when whoever uses it lets go, or when it ends by itself."""
    with suppress(OSError):
        await writer.wait_closed()
    with suppress(TimeoutError):
        async with asyncio.timeout(_GRACE_S):
            await process.wait()
    await _end(process)


async def _end(process: Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()
