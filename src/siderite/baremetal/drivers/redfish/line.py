"""An open connection to one Redfish system. What talks on it blocks: `lines` has the threads."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from siderite.baremetal.drivers.redfish.address import Address
from siderite.baremetal.drivers.redfish.answers import patience
from siderite.baremetal.drivers.redfish.answers import put_in_form
from siderite.baremetal.drivers.redfish.errors import BUSY
from siderite.baremetal.drivers.redfish.errors import SentElsewhere

_ACCEPTED, _WRONG, _GONE = 202, 400, (404, 410)
_PASSED_ON, _UNKNOWN = (307, 308), (401, 403)
_LONGEST_ADDRESS = 1000


class Line:
    """An open connection to one system, and what is known of its BMC."""

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
        self.refusals = 0
        """How often in a row it did not take the credentials."""
        self._by_basic = False
        """It has no room for sessions where one would look for that: it is not asked again."""
        self._astray: SentElsewhere | None = None
        """Where its login was sent, if that was lost on the way."""
        self._root: Any = None
        self._login: Any = None
        self._system: Any = None
        self._pages: Any = None
        self._path: str | None = None

    def system(self, timeout_s: float) -> Any:
        """sushy's system, opened if need be. Blocks."""
        if self._system is None:
            root = self.root(timeout_s)
            self._system = root.get_system(self._system_path(root))
        return self._system

    def system_page(self, timeout_s: float) -> Mapping[str, Any]:
        """The system's plain page: who needs one value of it does not care for others. Blocks."""
        root = self.root(timeout_s)
        page = self._pages.get(self._system_path(root)).json()
        if not isinstance(page, dict):
            raise ValueError("what it has in the place of the system is none")
        return page

    def _system_path(self, root: Any) -> str:
        if self._path is None:
            self._path = self.address.system or _only_system(root)
        return self._path

    def root(self, timeout_s: float) -> Any:
        """sushy's service root, opened if need be. Blocks."""
        if self._root is None:
            self._astray = None
            auth = "basic" if self._by_basic else self.address.auth
            login, self._pages = _open(self.address, auth, timeout_s, self._noted)
            login.is_lost = lambda: self._astray is not None
            try:
                self._root = _service(self.address, login, self._pages)
            finally:
                self._by_basic = self._by_basic or getattr(login, "is_guess_refused", False)
            self._login = login
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

    def document(self, path: str, *, timeout_s: float) -> Any:
        """The JSON at an address; None if there is nothing, or something else. Blocks."""
        answer = self.page(path, timeout_s)
        try:
            return None if answer is None else answer.json()
        except ValueError:
            return None

    def post(self, path: str, body: Mapping[str, Any]) -> None:
        """Send an order to an address. Blocks."""
        self._pages.post(path, data=body)

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
        self._pages = self._path = None
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


def _open(
    address: Address, auth: str, timeout_s: float, noted: Callable[[Any], None]
) -> tuple[Any, Any]:
    """A login of this kind, and what carries its calls; `noted` sees every answer."""
    from sushy.connector import Connector  # noqa: PLC0415

    from siderite.baremetal.drivers.redfish import login  # noqa: PLC0415 (it needs sushy)
    from siderite.baremetal.drivers.redfish.whole import Whole  # noqa: PLC0415 (likewise)

    # It logs every failure as well as raising it; what is worth telling we tell, once.
    logging.getLogger("sushy").setLevel(logging.CRITICAL)
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
    for scheme in ("http://", "https://"):
        pages._session.mount(scheme, Whole())
    return login.KINDS[auth](username=address.username, password=address.password), pages


def _service(address: Address, login: Any, pages: Any) -> Any:
    """sushy's service root, logged in."""
    import sushy  # noqa: PLC0415 (it takes a third of a second, and only real BMCs need it)

    root = sushy.Sushy(address.url, auth=login, connector=pages)
    # It would log out whenever it becomes garbage: perhaps in the event loop, which would wait for
    # a BMC that is silent. We do it ourselves, in a thread.
    root._auth = None
    return root


def log_out(login: Any) -> None:
    """Have the BMC forget a session. Blocks."""
    with contextlib.suppress(Exception):  # the BMC forgets the session by itself, only later
        login.close()
