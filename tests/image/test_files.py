"""The directory of images' data, when threads and other processes are at it too."""

import asyncio
import errno
import fcntl
import os
import threading
from pathlib import Path

import pytest

from siderite.core.errors import Unavailable
from siderite.image.files import Files


def test_a_file_is_let_go_of_when_its_thread_has_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task can be cancelled, a thread cannot: what it writes must not go to another file that
    was given the same number.
    """
    writer = Files(tmp_path, max_bytes=2**20).begin("image")
    began, go_on = threading.Event(), threading.Event()
    write = os.write

    def slow(fd: int, data: bytes) -> int:
        began.set()
        go_on.wait(30)
        return write(fd, data)

    monkeypatch.setattr(os, "write", slow)
    writing = threading.Thread(target=writer.write, args=(b"data",))
    writing.start()
    began.wait(30)
    closing = threading.Thread(target=writer.close)
    closing.start()
    closing.join(0.1)
    assert closing.is_alive()
    go_on.set()
    writing.join(30)
    closing.join(30)
    assert (tmp_path / "image").read_bytes() == b"data"


def test_a_file_swept_away_before_it_was_locked_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = Files(tmp_path, max_bytes=2**20)
    lock = fcntl.flock

    def late(fd: int, how: int) -> None:
        files.remove("image")
        lock(fd, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with pytest.raises(Unavailable, match="try again"):
        files.begin("image")


def test_over_nfs_too_it_can_be_told_whether_somebody_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There a lock is had by those only who may write to the file (flock(2))."""
    lock = fcntl.flock

    def flock(fd: int, how: int) -> None:
        if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        lock(fd, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    files = Files(tmp_path, max_bytes=2**20)
    writer = files.begin("image")
    with files.unwritten("image") as is_left:
        assert not is_left
    writer.close()
    with files.unwritten("image") as is_left:
        assert is_left


def test_a_client_that_leaves_while_a_file_is_opened_leaves_nothing_open(tmp_path: Path) -> None:
    files = Files(tmp_path, max_bytes=2**20)
    (tmp_path / "image").write_bytes(b"data")

    async def story() -> None:
        for _ in range(5):
            reading = asyncio.create_task(anext(files.read("image", 0, 4)))
            await asyncio.sleep(0)
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        await asyncio.get_running_loop().shutdown_default_executor()
        await asyncio.get_running_loop().shutdown_asyncgens()
        links = Path("/proc/self/fd").iterdir()
        assert not [one for one in links if os.path.realpath(one) == str(tmp_path / "image")]

    asyncio.run(story())
