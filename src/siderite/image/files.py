"""The directory that images' data is in: written piece by piece, checksummed, and swept.

A writer holds a lock on its file from its making until a record speaks of it (or it is given up),
so that a file without a record and without a lock is a leftover of a crash. Nothing here keeps
more than a piece in memory, and all of it runs in threads.
"""

import asyncio
import errno
import fcntl
import hashlib
import os
import re
import threading
from collections.abc import AsyncGenerator
from collections.abc import AsyncIterator
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from siderite.core.disk import sync
from siderite.core.errors import TooLarge
from siderite.core.errors import Unavailable
from siderite.core.log import get_logger
from siderite.image.domain.content import HEAD_BYTES
from siderite.image.domain.image import HASH

log = get_logger("image")

PIECE = 1024 * 1024
_ZEROS = bytes(PIECE)
_OURS = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.[0-9a-f]{8}\Z")
"""An image's id and a word of chance: what a writer's file is called (`transfer.writing`)."""


class Written(msgspec.Struct, frozen=True):
    """A complete file: its name, and what it holds."""

    name: str
    size: int
    md5: str
    sha512: str
    head: bytes


class Writer:
    """One file being written; nobody speaks of it yet."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self.path = path
        self.size = 0
        self._md5 = hashlib.md5(usedforsecurity=False)
        self._hash = hashlib.new(HASH)
        self._head = b""
        self._turn = threading.Lock()
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        if not os.fstat(self._fd).st_nlink:
            os.close(self._fd)
            raise FileNotFoundError(errno.ENOENT, "swept away before it was locked; try again")

    def write(self, data: bytes) -> None:
        """One more piece. Zeros become a hole, so that an empty disk takes no room."""
        with self._turn:
            self._write(data)

    def _write(self, data: bytes) -> None:
        if len(self._head) < HEAD_BYTES:
            self._head += data[: HEAD_BYTES - len(self._head)]
        self._md5.update(data)
        self._hash.update(data)
        if data == _ZEROS[: len(data)]:
            os.lseek(self._fd, len(data), os.SEEK_CUR)
        else:
            left = memoryview(data)
            while left:
                left = left[os.write(self._fd, left) :]
        self.size += len(data)

    def complete(self) -> Written:
        """All of it is on the disk; the lock is kept until `close`."""
        with self._turn:
            os.ftruncate(self._fd, self.size)
            os.fsync(self._fd)
        sync(self.path.parent)
        return Written(
            self.name, self.size, self._md5.hexdigest(), self._hash.hexdigest(), self._head
        )

    def close(self) -> None:
        """Let go of it; what nobody speaks of is then a leftover. A thread that is writing still,
        since its task was cancelled, ends first: the number of its file is another's afterwards.
        """
        with self._turn:
            os.close(self._fd)


class Files:
    """The directory."""

    def __init__(self, folder: Path, *, max_bytes: int) -> None:
        self.folder = folder
        self._max_bytes = max_bytes
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def path(self, name: str) -> Path:
        """Where a file is."""
        return self.folder / name

    def begin(self, name: str) -> Writer:
        """A new file, locked."""
        try:
            return Writer(self.path(name))
        except OSError as why:
            raise _no_room(why) from why

    async def fill(self, writer: Writer, pieces: AsyncIterator[bytes]) -> Written:
        """Write what comes, up to the limit."""
        try:
            async for data in _larger(pieces):
                self.check_size(writer.size + len(data))
                await asyncio.to_thread(writer.write, data)
            return await asyncio.to_thread(writer.complete)
        except OSError as why:
            raise _no_room(why) from why

    def check_size(self, size: int) -> None:
        """Refuse more bytes than an image may have."""
        if size > self._max_bytes:
            raise TooLarge(
                f"The image is over {self._max_bytes // 2**30} GiB, the limit here"
                " (option image_max_gib)."
            )

    async def read(self, name: str, begin: int, end: int) -> AsyncGenerator[bytes, None]:
        """The bytes from `begin` to before `end`, a piece at a time."""
        # In a thread it would be lost, and stay open, if the client left meanwhile.
        fd = os.open(self.path(name), os.O_RDONLY)
        try:
            while begin < end:
                data = await asyncio.to_thread(os.pread, fd, min(PIECE, end - begin), begin)
                if not data:
                    raise OSError(f"{name} is shorter than its record says")
                begin += len(data)
                yield data
        finally:
            os.close(fd)

    def remove(self, name: str) -> None:
        """A file that no record speaks of (any more)."""
        self.path(name).unlink(missing_ok=True)

    def names(self) -> list[str]:
        """All files that can be ours: others may be in the directory, and are not ours to sweep."""
        found = (entry.name for entry in self.folder.iterdir() if _OURS.match(entry.name))
        return sorted(name for name in found if self.path(name).is_file())

    @contextmanager
    def unwritten(self, name: str) -> Iterator[bool]:
        """Whether no writer, of whichever process, is at it; none gets to it while this lasts."""
        try:
            fd = os.open(self.path(name), os.O_RDWR)  # over NFS, who may only read gets no lock
        except FileNotFoundError:
            yield True
            return
        try:
            yield _is_locked(fd)
        finally:
            os.close(fd)


def _is_locked(fd: int) -> bool:
    """Whether the file could be locked, and so is now."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


async def _larger(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same bytes in pieces of one size but for the last: fewer hops into threads."""
    held: list[bytes] = []
    size = 0
    async for data in pieces:
        held.append(data)
        size += len(data)
        while size >= PIECE:
            whole = b"".join(held)
            yield whole[:PIECE]
            held, size = [whole[PIECE:]], size - PIECE
    if size:
        yield b"".join(held)


def _no_room(why: OSError) -> Unavailable:
    log.error("cannot write an image", error=repr(why))
    return Unavailable(
        f"The image cannot be written: {why.strerror or 'the disk failed'}. An administrator should"
        " look at the images directory; nothing was kept."
    )
