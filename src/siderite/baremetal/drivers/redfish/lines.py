"""Lines to Redfish BMCs: one per system, kept open, one call at a time on each.

sushy blocks, so calls run in a bounded pool of threads. A call is one round trip or a few; nothing
waits in a thread for a machine to change. A BMC that was not there the last time is first asked by
a TCP connection that needs no thread, and then by a small pool for its like: a dark data centre, or
a rack of BMCs that take calls and never answer, does not keep others from being heard. Those that
answer, but took long the last time, have a pool of their own for the same reason.

A BMC has room for few sessions: a line keeps its own through failures, and is logged out when it is
given up. One that says when it wants to be asked again is left alone until then. Orders that a BMC
answers with the address of a task give that back (`tasks` asks for it).
"""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from concurrent.futures import Future
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait
from functools import partial
from time import monotonic
from typing import Any
from typing import TypeVar

from siderite.baremetal.domain.hardware import HardwareError
from siderite.baremetal.domain.hardware import Refused
from siderite.baremetal.domain.hardware import Unreachable
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.contract import Task
from siderite.baremetal.drivers.redfish.address import Address
from siderite.baremetal.drivers.redfish.address import Door
from siderite.baremetal.drivers.redfish.errors import CREDENTIALS
from siderite.baremetal.drivers.redfish.errors import not_yet
from siderite.baremetal.drivers.redfish.errors import spoils
from siderite.baremetal.drivers.redfish.errors import told
from siderite.baremetal.drivers.redfish.line import Line
from siderite.baremetal.drivers.redfish.line import log_out

T = TypeVar("T")
Page = Mapping[str, Any]
Read = Callable[[str], Any]
"""What is at another address of the BMC; None if there is nothing, or no JSON."""

_MAX_LINES = 20_000
"""Nobody tells when a node is gone. With fewer lines than nodes each sweep over these would log in
anew everywhere, and know nothing of how a BMC was before. One takes some 20 kB.
"""
_PROBE_S = 3.0
_LONG_S = 3.0
_LOG_OUT_S = 2.0
_LOGIN_S, _LOGIN_MOST_S = 30.0, 300.0
"""In how many seconds work asks a BMC again that does not take credentials which it took before:
ever more seldom, for many lock an account after a few logins that failed.
"""


class Lines:
    """All lines of this process, and the threads that talk on them."""

    def __init__(self, *, threads: int = 32, timeout_s: float = 20.0) -> None:
        self._timeout_s = timeout_s
        # Threads are made when there is work for them.
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="redfish")
        self._slow = ThreadPoolExecutor(threads, thread_name_prefix="redfish-slow")
        self._lost = ThreadPoolExecutor(max(1, threads // 4), thread_name_prefix="redfish-lost")
        self._lines: OrderedDict[Address, Line] = OrderedDict()
        self._barred: dict[Door, tuple[float, Line]] = {}
        """When a BMC last refused which credentials, and on which line."""

    async def system(self, at: Endpoint, doing: str, work: Callable[[Any], T]) -> T:
        """What `work` makes of the node's system, read anew if it was read before."""

        return await self._call(at, doing, lambda line: work(self._system(line)))

    async def order(self, at: Endpoint, doing: str, *works: Callable[[Any], None]) -> Task | None:
        """Give the node's system these orders, up to one that its BMC follows by a task."""

        def talk(line: Line) -> Task | None:
            system = self._system(line)
            return _given(line, doing, [partial(work, system) for work in works])

        return await self._call(at, doing, talk)

    async def order_plainly(
        self, at: Endpoint, doing: str, choose: Callable[[Page, Read], tuple[str, Page]]
    ) -> Task | None:
        """Give the order that `choose` finds on the plain page of the node's system: where to, and
        what; for what must be done whatever else it says.
        """

        def talk(line: Line) -> Task | None:
            read = partial(line.document, timeout_s=self._timeout_s)
            where, what = choose(line.system_page(self._timeout_s), read)
            return _given(line, doing, [partial(line.post, where, what)])

        return await self._call(at, doing, talk)

    async def system_page(self, at: Endpoint, doing: str) -> Page:
        """The plain page of the node's system, for what must be read whatever else it says."""
        return await self._call(at, doing, lambda line: line.system_page(self._timeout_s))

    async def page(self, at: Endpoint, doing: str, path: str) -> Any:
        """The BMC's plain answer at an address; None if there is nothing."""
        return await self._call(at, doing, lambda line: line.page(path, self._timeout_s))

    def _system(self, line: Line) -> Any:
        known = line.is_open
        system = line.system(self._timeout_s)
        if known:
            system.refresh(force=True)
        return system

    async def _call(self, at: Endpoint, doing: str, talk: Callable[[Line], T]) -> T:
        try:
            address = Address.of(at.driver_info)
        except ValueError as why:
            raise Refused(at.bmc, doing, str(why), "Mend driver_info, then try again.") from why
        line = self._line(address)
        await line.turn.acquire()
        try:
            left = line.not_before - monotonic()
            if left > 0:
                raise not_yet(at, doing, line.patience_s, left)
            self._check_door(at, doing, line)
            if line.suspect:
                await _probe(at, address, doing)
            pool = self._pool_for(line)
            line.tried = line.suspect = True
            talking = asyncio.wrap_future(pool.submit(_timed, talk, line))
        except BaseException:
            line.turn.release()
            raise
        # Also if the caller gives up: a thread that still talks keeps the line to itself.
        talking.add_done_callback(partial(_hang_up, line))
        try:
            answer = await asyncio.shield(talking)
        except Exception as why:
            raise self._failed(at, doing, line, why) from why
        line.suspect, line.worked, line.refusals = False, True, 0
        self._barred.pop(address.door, None)
        return answer

    def _failed(self, at: Endpoint, doing: str, line: Line, why: Exception) -> HardwareError:
        """What to tell of a call that failed, and what follows for the next."""
        error = told(at, doing, why, worked=line.worked or at.worked)
        line.suspect = isinstance(error, Unreachable)
        line.refusals = line.refusals + 1 if error.refuses_login else 0
        if error.refuses_login:
            self._barred[line.address.door] = (monotonic(), line)
            while len(self._barred) > _MAX_LINES:
                self._barred.pop(next(iter(self._barred)))
        if isinstance(error, Unreachable) and error.refuses_login:
            error.again_in = min(_LOGIN_S * 2 ** (line.refusals - 1), _LOGIN_MOST_S)
        if isinstance(error, Unreachable) and error.is_busy and line.patience_s is not None:
            error.again_in = line.patience_s
            line.not_before = monotonic() + line.patience_s
        if spoils(why):
            self._give_up(line)
        return error

    def _check_door(self, at: Endpoint, doing: str, line: Line) -> None:
        """A BMC that was just asked for another of its systems, and did not take the credentials,
        is not asked with the same: the systems of a whole chassis would lock their account at once.
        """
        since, other = self._barred.get(line.address.door, (0.0, line))
        left = since + _LOGIN_S - monotonic()
        if other is line or left <= 0:
            return
        reason = "it has just refused the same credentials for another of its systems"
        if line.worked or at.worked:
            raise Unreachable(at.bmc, doing, reason, again_in=left, refuses_login=True)
        raise Refused(at.bmc, doing, reason, CREDENTIALS, refuses_login=True)

    def _pool_for(self, line: Line) -> ThreadPoolExecutor:
        if line.suspect and line.tried:
            return self._lost
        return self._slow if line.is_slow else self._pool

    def _line(self, address: Address) -> Line:
        line = self._lines.get(address)
        if line is None:
            line = self._lines[address] = Line(address)
            while len(self._lines) > _MAX_LINES:
                self._give_up(self._lines.popitem(last=False)[1])
        self._lines.move_to_end(address)
        return line

    def _give_up(self, line: Line) -> "Future[None] | None":
        """Begin anew with the next call, and have the BMC forget the session that was."""
        if line.turn.locked():
            return None  # somebody still talks on it
        login = line.drop()
        if login is None or line.suspect:
            return None
        with contextlib.suppress(RuntimeError):  # no threads any more
            return self._lost.submit(log_out, login)
        return None

    def close(self) -> None:
        """Log out, and let go of the threads; calls under way end by their own timeouts."""
        leaving = [self._give_up(line) for line in self._lines.values()]
        wait([one for one in leaving if one is not None], timeout=_LOG_OUT_S)
        for pool in (self._pool, self._slow, self._lost):
            pool.shutdown(wait=False, cancel_futures=True)
        self._lines.clear()


def _given(line: Line, doing: str, works: Sequence[Callable[[], None]]) -> Task | None:
    """Give orders, up to one that the BMC follows by a task."""
    for left, work in zip(range(len(works) - 1, -1, -1), works, strict=True):
        line.tasks.clear()
        line.refusal = None
        try:
            work()
            line.check()
        except Exception:
            if not line.tasks:
                raise
            # The order was taken; only what was said with that makes no sense.
        if line.tasks:
            return Task(line.tasks[-1], doing, more=left > 0)
    return None


def _timed(talk: Callable[[Line], T], line: Line) -> T:
    began = monotonic()
    try:
        return talk(line)
    finally:
        line.is_slow = monotonic() - began > _LONG_S


def _hang_up(line: Line, talked: "asyncio.Future[Any]") -> None:
    line.turn.release()
    if not talked.cancelled():
        talked.exception()  # perhaps nobody waits for it any more


async def _probe(at: Endpoint, address: Address, doing: str) -> None:
    host, port = address.reach
    try:
        async with asyncio.timeout(_PROBE_S):
            _, writer = await asyncio.open_connection(host, port)
    except TimeoutError as why:
        raise Unreachable(at.bmc, doing) from why
    except UnicodeError as why:
        remedy = "Mend redfish_address in driver_info, then try again."
        raise Refused(at.bmc, doing, "that is no name of a machine", remedy) from why
    except OSError as why:
        reason = "it refuses the connection" if isinstance(why, ConnectionRefusedError) else None
        raise Unreachable(at.bmc, doing, reason or why.strerror or "no way to it") from why
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
