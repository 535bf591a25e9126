"""Ports of loopback for what tests start: each test process has a block that is its own.

A port that the kernel names may be anybody's by the time that it is used, or used again after a
restart: it gives the same ones to every other server and connection of the machine. These are
below those that it gives (`ip_local_port_range`), and above those of the lab's hosts.
"""

import fcntl
import random
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import cycle
from typing import IO

from tests.support.scratch import cache_folder

_FIRST = 30_000
_BLOCK = 40
_BLOCKS = 69


class NoneLeft(Exception):
    """There are more tests on this machine than there are ports for."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A number that nobody else has until the lock is closed, or this process ends."""

    number: int
    lock: IO[bytes]


def take_number(kind: str, count: int) -> Taken:
    """One of so many, among all test processes of this user."""
    folder = cache_folder() / kind
    folder.mkdir(exist_ok=True)
    for number in random.sample(range(count), count):
        lock = (folder / str(number)).open("wb")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            continue
        return Taken(number, lock)
    raise NoneLeft(f"all {count} numbers in {folder} are taken; end some of the tests")


def free_port(kind: socket.SocketKind = socket.SOCK_STREAM, *, address: str = "127.0.0.1") -> int:
    """A port that nothing has, and that no other test process will get; the one that was given
    longest ago.
    """
    _, ports = _block()
    for _ in range(_BLOCK):
        port = next(ports)
        if _is_free(kind, address, port):
            return port
    raise NoneLeft("all ports of this test process are in use")


def _is_free(kind: socket.SocketKind, address: str, port: int) -> bool:
    with socket.socket(socket.AF_INET, kind) as probe:
        if kind is socket.SOCK_STREAM:  # connections that are over do not count
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
            if kind is socket.SOCK_STREAM:
                probe.listen()
        except OSError:
            return False
    return True


@cache
def _block() -> tuple[Taken, Iterator[int]]:
    taken = take_number("port-blocks", _BLOCKS)
    first = _FIRST + taken.number * _BLOCK
    return taken, cycle(range(first, first + _BLOCK))
