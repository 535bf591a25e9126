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
import logging
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait
from functools import partial
from time import monotonic
from typing import Any
from typing import TypeVar
from urllib.parse import urlsplit

from siderite.baremetal.domain.hardware import Refused
from siderite.baremetal.domain.hardware import Unreachable
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.contract import Task
from siderite.baremetal.drivers.redfish.address import Address
from siderite.baremetal.drivers.redfish.answers import patience
from siderite.baremetal.drivers.redfish.answers import put_in_form
from siderite.baremetal.drivers.redfish.errors import BUSY
from siderite.baremetal.drivers.redfish.errors import SentElsewhere
from siderite.baremetal.drivers.redfish.errors import not_yet
from siderite.baremetal.drivers.redfish.errors import spoils
from siderite.baremetal.drivers.redfish.errors import told

T = TypeVar("T")

_MAX_LINES = 2000
_PROBE_S = 3.0
_LONG_S = 3.0
_LOG_OUT_S = 2.0
_ACCEPTED, _WRONG, _GONE = 202, 400, (404, 410)
_PASSED_ON, _UNKNOWN = (307, 308), (401, 403)
_LONGEST_ADDRESS = 1000


class Line:
    """An open connection to one system."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.turn = asyncio.Lock()
        self.tried = False
        self.suspect = True
        """The last call did not get through, or there was none."""
        self.is_slow = False
        """The last call took long."""
        self.worked = False
        """A call has got through: address, account and system are right, or were."""
        self.tasks: list[str] = []
        """Where the BMC tells how it goes with the last order, if it follows that later."""
        self.refusal: Any = None
        """What the BMC answered to the last order, if it did not take it."""
        self.patience_s: float | None = None
        """How long the BMC wants to be left alone for, if its last answer said so."""
        self.not_before = 0.0
        """When it wants to be asked again."""
        self._astray: SentElsewhere | None = None
        """Where its login was sent, if that was lost on the way."""
        self._root: Any = None
        self._login: Any = None
        self._system: Any = None
        self._pages: Any = None

    def system(self, timeout_s: float) -> Any:
        """sushy's system, opened if need be. Blocks."""
        if self._system is None:
            root = self.root(timeout_s)
            self._system = root.get_system(self.address.system or _only_system(root))
        return self._system

    def root(self, timeout_s: float) -> Any:
        """sushy's service root, opened if need be. Blocks."""
        if self._root is None:
            self._astray = None
            self._root, self._login, self._pages = _open(self.address, timeout_s, self._noted)
        return self._root

    def page(self, path: str, timeout_s: float) -> Any:
        """The BMC's plain answer at an address; None if there is nothing. Blocks."""
        self.root(timeout_s)
        from sushy import exceptions  # noqa: PLC0415

        try:
            return self._pages.get(path)
        except exceptions.HTTPError as why:
            if why.status_code not in _GONE:
                raise
            return None

    def _noted(self, answer: Any) -> None:
        self.patience_s = patience(answer) if answer.status_code in BUSY else None
        put_in_form(answer)
        for before in answer.history:
            # All but these two lose the order on the way, or what it says.
            if before.request.method != "GET" and before.status_code not in _PASSED_ON:
                lost = SentElsewhere(before.headers.get("Location"), before.status_code)
                if self._root is not None or self.address.auth != "auto":
                    raise lost
                self._astray = lost  # sushy goes on by basic authentication, which may do to read
                return
        if answer.request.method == "GET":
            if self._astray is not None and answer.status_code in _UNKNOWN:
                raise self._astray
            return
        self.refusal = answer if answer.status_code >= _WRONG else None
        if answer.status_code == _ACCEPTED:
            self.tasks += _monitor(answer)

    def check(self) -> None:
        """Raise what the BMC answered to the last order if it was an error: sushy passes over some,
        such as a busy BMC's to taking out a medium.
        """
        from sushy import exceptions  # noqa: PLC0415

        if self.refusal is not None:
            asked = self.refusal.request
            exceptions.raise_for_response(asked.method, asked.url, self.refusal)

    @property
    def is_open(self) -> bool:
        """Whether the system was read before."""
        return self._system is not None

    def drop(self) -> Any:
        """Begin anew with the next call; the login that is left behind, if there was one."""
        login, self._root, self._login, self._system = self._login, None, None, None
        self._pages = None
        return login


def _only_system(root: Any) -> str:
    """The one system that a BMC has. Those that are not there just now count, too: else another
    node's machine would be taken for it.
    """
    from sushy import exceptions  # noqa: PLC0415

    paths = root.get_system_collection().members_identities
    if len(paths) != 1:
        raise exceptions.UnknownDefaultError(entity="ComputerSystem", error=f"{len(paths)} systems")
    return str(paths[0])


def _monitor(answer: Any) -> list[str]:
    """Where a BMC tells of the task that it began. Only the path, for the session's key goes there:
    the BMC has been found where the operator said it is.
    """
    try:
        told = answer.json() if answer.content else {}
    except ValueError:
        told = {}
    body = told if isinstance(told, dict) else {}
    where = answer.headers.get("Location") or body.get("TaskMonitor") or body.get("@odata.id")
    parts = urlsplit(str(where or ""))
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    return [path] if path.startswith("/") and len(path) <= _LONGEST_ADDRESS else []


def _open(address: Address, timeout_s: float, noted: Callable[[Any], None]) -> tuple[Any, Any, Any]:
    """sushy's service root, its login, and what carries its calls; `noted` sees every answer."""
    import sushy  # noqa: PLC0415 (it takes a third of a second, and only real BMCs need it)
    from sushy import auth  # noqa: PLC0415
    from sushy.connector import Connector  # noqa: PLC0415

    # It logs every failure as well as raising it; what is worth telling we tell, once.
    logging.getLogger("sushy").setLevel(logging.CRITICAL)
    kinds = {
        "auto": auth.SessionOrBasicAuth,
        "basic": auth.BasicAuth,
        "session": auth.SessionAuth,
    }
    login = kinds[address.auth](username=address.username, password=address.password)
    pages = Connector(
        address.url,
        verify=address.verify,
        response_callback=noted,
        # One attempt: what is worth another is asked again by the work that wants it.
        server_side_retries=1,
        server_side_retries_delay=0.2,
        default_request_timeout=timeout_s,
        connect_timeout=min(5.0, timeout_s),
    )
    root = sushy.Sushy(address.url, auth=login, connector=pages)
    # It would log out whenever it becomes garbage: perhaps in the event loop, which would wait for
    # a BMC that is silent. We do it ourselves, in a thread.
    root._auth = None
    return root, login, pages


def _log_out(login: Any) -> None:
    with contextlib.suppress(Exception):  # the BMC forgets the session by itself, only later
        login.close()


class Lines:
    """All lines of this process, and the threads that talk on them."""

    def __init__(self, *, threads: int = 32, timeout_s: float = 20.0) -> None:
        self._timeout_s = timeout_s
        # Threads are made when there is work for them.
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="redfish")
        self._slow = ThreadPoolExecutor(threads, thread_name_prefix="redfish-slow")
        self._lost = ThreadPoolExecutor(max(1, threads // 4), thread_name_prefix="redfish-lost")
        self._lines: OrderedDict[Address, Line] = OrderedDict()

    async def system(
        self, at: Endpoint, doing: str, work: Callable[[Any], T], *, fresh: bool = True
    ) -> T:
        """What `work` makes of the node's system, read anew if it was read before."""

        return await self._call(at, doing, lambda line: work(self._system(line, fresh=fresh)))

    async def order(
        self, at: Endpoint, doing: str, *works: Callable[[Any], None], fresh: bool = True
    ) -> Task | None:
        """Give the node's system these orders, up to one that its BMC follows by a task."""

        def talk(line: Line) -> Task | None:
            system = self._system(line, fresh=fresh)
            for left, work in zip(range(len(works) - 1, -1, -1), works, strict=True):
                line.tasks.clear()
                line.refusal = None
                try:
                    work(system)
                    line.check()
                except Exception:
                    if not line.tasks:
                        raise
                    # The order was taken; only what was said with that makes no sense.
                if line.tasks:
                    return Task(line.tasks[-1], doing, more=left > 0)
            return None

        return await self._call(at, doing, talk)

    async def page(self, at: Endpoint, doing: str, path: str) -> Any:
        """The BMC's plain answer at an address; None if there is nothing."""
        return await self._call(at, doing, lambda line: line.page(path, self._timeout_s))

    def _system(self, line: Line, *, fresh: bool) -> Any:
        known = line.is_open
        system = line.system(self._timeout_s)
        if fresh and known:
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
            error = told(at, doing, why, worked=line.worked)
            line.suspect = isinstance(error, Unreachable)
            if isinstance(error, Unreachable) and error.is_busy and line.patience_s is not None:
                error.again_in = line.patience_s
                line.not_before = monotonic() + line.patience_s
            if spoils(why):
                self._give_up(line)
            raise error from why
        line.suspect, line.worked = False, True
        return answer

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
            return self._lost.submit(_log_out, login)
        return None

    def close(self) -> None:
        """Log out, and let go of the threads; calls under way end by their own timeouts."""
        leaving = [self._give_up(line) for line in self._lines.values()]
        wait([one for one in leaving if one is not None], timeout=_LOG_OUT_S)
        for pool in (self._pool, self._slow, self._lost):
            pool.shutdown(wait=False, cancel_futures=True)
        self._lines.clear()


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
