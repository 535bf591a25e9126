"""Tokens of a Keystone elsewhere: whose they are, asked there and remembered for a while.

`Keystone` is an `Authenticator` like our own identity. It logs in as a service, which may validate
everybody's tokens, and asks `GET /v3/auth/tokens`. A token's answer counts for ten seconds, so that
a token that was revoked there is refused here soon. While Keystone does not answer, what is
remembered still counts for a minute; what is not is a 503, never a yes and never a no.
"""

import asyncio
import hashlib
import secrets
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING
from typing import Any
from typing import NamedTuple

from siderite.core import clock as clocks
from siderite.core.errors import Unavailable
from siderite.core.log import get_logger
from siderite.core.who import Authenticator
from siderite.core.who import Who

if TYPE_CHECKING:
    import httpx

log = get_logger("keystone")

RECHECK_S = 10.0
STALE_S = 60.0
_TIMEOUT_S = 10.0
_WHOLE_S = 30.0
"""How long an answer may take altogether; the other is for each piece of it."""
_MAX_REMEMBERED = 10_000
_MAX_PASSWORDS = 1000
_OK, _CREATED, _UNAUTHORIZED, _NOT_FOUND, _TOO_MANY = 200, 201, 401, 404, 429


class _Known(NamedTuple):
    who: Who
    asked_at: float
    expires_at: float


class Account(NamedTuple):
    """The service's own account there."""

    user: str
    password: str
    project: str
    domain: str = "Default"


class Keystone:
    """Whose token is it, according to another Keystone."""

    def __init__(
        self,
        url: str,
        account: Account,
        *,
        clock: Callable[[], float] = clocks.now,
        transport: "httpx.AsyncBaseTransport | None" = None,
    ) -> None:
        import httpx  # noqa: PLC0415 - most installations have no other Keystone

        self._gone = httpx.HTTPError
        self._url = url.rstrip("/").removesuffix("/v3") + "/v3"
        self._account = account
        self._clock = clock
        self._http = httpx.AsyncClient(timeout=_TIMEOUT_S, transport=transport)
        self._token: str | None = None
        self._login: asyncio.Future[str] | None = None
        self._known: dict[str, _Known] = {}
        self._asking: dict[str, asyncio.Future[Who | None]] = {}
        self._secret = secrets.token_bytes(32)

    async def by_token(self, token: str) -> Who | None:
        """Who a token stands for; from memory if it was asked a moment ago."""
        now = self._clock()
        known = self._known.get(token)
        if known is not None and known.asked_at <= now < known.asked_at + RECHECK_S:
            return known.who if now < known.expires_at else None
        if not token or not token.isascii():
            return None
        return await self._once(token, self._ask)

    async def by_password(self, user: str, password: str) -> Who | None:
        """Who a name and a password belong to, in their default project."""
        key = "basic " + _keyed(self._secret, user, password)
        known = self._known.get(key)
        now = self._clock()
        if known is not None and known.asked_at <= now < known.asked_at + RECHECK_S:
            return known.who
        answer = await self._post(_password(user, password, "Default"))
        if answer.status_code == _CREATED:
            return self._remember(key, answer)
        if not _is_no(answer):
            log.warning("keystone does not check passwords for us", status=answer.status_code)
            raise Unavailable("The identity service does not check passwords just now; try again.")
        return None

    async def service_token(self) -> str:
        """A token of our own account, for calls to other services. Who asks while we log in hears
        what came of that: were each to try for itself, one would wait for all before it.
        """
        if self._token is not None:
            return self._token
        if self._login is None:
            self._login = asyncio.ensure_future(self._log_in())
            self._login.add_done_callback(self._logged_in)
        return await asyncio.shield(self._login)

    def _logged_in(self, login: asyncio.Future[str]) -> None:
        self._login = None
        if not login.cancelled() and login.exception() is None:
            self._token = login.result()

    def forget_service_token(self, token: str) -> None:
        """It was refused: get another next time."""
        if self._token == token:
            self._token = None

    async def run(self) -> None:
        """Until cancelled; then let go of connections."""
        try:
            await asyncio.Event().wait()
        finally:
            await self._http.aclose()

    async def _once(self, token: str, ask: Callable[[str], Any]) -> Who | None:
        """Requests that come with the same token at the same moment ask once."""
        asking = self._asking.get(token)
        if asking is None:
            asking = asyncio.ensure_future(ask(token))
            self._asking[token] = asking
            asking.add_done_callback(lambda _: self._asking.pop(token, None))
        return await asyncio.shield(asking)

    async def _ask(self, token: str) -> Who | None:
        try:
            answer = await self._validate(token)
            if answer is not None:
                return self._remember(token, answer)
        except Unavailable:
            known = self._known.get(token)
            now = self._clock()
            if known is not None and now < min(known.asked_at + STALE_S, known.expires_at):
                return known.who
            raise
        self._known.pop(token, None)
        return None

    async def _validate(self, token: str) -> "httpx.Response | None":
        status = _UNAUTHORIZED
        for _ in range(2):
            own = await self.service_token()
            headers = {"X-Auth-Token": own, "X-Subject-Token": token}
            answer = await self._get("/auth/tokens?nocatalog", headers)
            if answer.status_code == _OK:
                return answer
            if answer.status_code == _NOT_FOUND and _is_own(answer):
                return None
            status = answer.status_code
            if status != _UNAUTHORIZED:
                break
            self.forget_service_token(own)
        log.warning("keystone does not validate tokens for us", status=status)
        raise Unavailable("The identity service does not validate tokens just now; try again.")

    def _remember(self, key: str, answer: "httpx.Response") -> Who:
        try:
            body = answer.json()["token"]
            expires_at = datetime.fromisoformat(body["expires_at"]).timestamp()
            known = _Known(_who(body), self._clock(), expires_at)
        except (ValueError, KeyError, TypeError, AttributeError) as why:
            raise _not_keystone() from why
        if key not in self._known and len(self._known) >= _MAX_REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[key] = known
        return known.who

    async def _log_in(self) -> str:
        account = self._account
        body = _password(account.user, account.password, account.domain)
        project = {"name": account.project, "domain": {"name": account.domain}}
        body["auth"]["scope"] = {"project": project}
        answer = await self._post(body)
        if answer.status_code != _CREATED:
            log.warning("cannot log in to keystone", status=answer.status_code)
            raise Unavailable("This service cannot log in to the identity service; try again.")
        token: str = answer.headers.get("x-subject-token", "")
        if not token:
            raise _not_keystone()
        return token

    async def _post(self, body: dict[str, Any]) -> "httpx.Response":
        return await self._send("POST", "/auth/tokens", json=body)

    async def _get(self, path: str, headers: dict[str, str]) -> "httpx.Response":
        return await self._send("GET", path, headers=headers)

    async def _send(self, method: str, path: str, **how: Any) -> "httpx.Response":
        try:
            async with asyncio.timeout(_WHOLE_S):
                return await self._http.request(method, self._url + path, **how)
        except (self._gone, TimeoutError) as why:
            log.warning("keystone does not answer", error=repr(why))
            raise Unavailable("The identity service does not answer; try again.") from why


class Either:
    """Our own tokens first, then those of a Keystone elsewhere."""

    def __init__(self, own: Authenticator, other: Authenticator) -> None:
        self._own = own
        self._other = other
        self._secret = secrets.token_bytes(32)
        self._theirs: dict[str, None] = {}

    async def by_token(self, token: str) -> Who | None:
        return await self._own.by_token(token) or await self._other.by_token(token)

    async def by_password(self, user: str, password: str) -> Who | None:
        """Whoever took a name and a password last is asked first: our own refusals come slowly."""
        key = _keyed(self._secret, user, password)
        if key in self._theirs:
            known = await self._other.by_password(user, password)
            if known is not None:
                return known
            self._theirs.pop(key, None)  # who asked the same beside us may have done so
        known = await self._own.by_password(user, password)
        if known is not None:
            return known
        known = await self._other.by_password(user, password)
        if known is not None:
            if len(self._theirs) >= _MAX_PASSWORDS:
                del self._theirs[next(iter(self._theirs))]
            self._theirs[key] = None
        return known


def _not_keystone() -> Unavailable:
    """As that of a proxy before it, which has a page of its own while it is being mended."""
    log.warning("what answers in place of keystone is none; see to keystone_url")
    return Unavailable("The identity service does not answer as a Keystone does; try again.")


def _is_no(answer: "httpx.Response") -> bool:
    """Whether a password is refused: not a page of what stands before it, or a moment's trouble."""
    if answer.status_code == _NOT_FOUND:
        return _is_own(answer)
    return answer.is_client_error and answer.status_code != _TOO_MANY


def _is_own(answer: "httpx.Response") -> bool:
    """Whether a refusal is in a Keystone's words: what has no way to it answers 404, too."""
    try:
        body = answer.json()
    except ValueError:
        return False
    return isinstance(body, dict) and "error" in body


def _keyed(secret: bytes, user: str, password: str) -> str:
    text = f"{len(user)}:{user}{password}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, key=secret).hexdigest()


def _password(user: str, password: str, domain: str) -> dict[str, Any]:
    who = {"name": user, "domain": {"name": domain}, "password": password}
    return {"auth": {"identity": {"methods": ["password"], "password": {"user": who}}}}


def _who(body: dict[str, Any]) -> Who:
    project = body.get("project") or {}
    return Who(
        user_id=body["user"]["id"],
        user=body["user"]["name"],
        project_id=project.get("id"),
        project=project.get("name"),
        roles=frozenset(role["name"].lower() for role in body.get("roles", ())),
        system=bool(body.get("system")),
    )
