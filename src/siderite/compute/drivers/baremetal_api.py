"""A bare metal API, ours or an Ironic's, as far as servers on its nodes need it."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING
from typing import Any
from typing import Protocol

from siderite.core.errors import SideriteError

if TYPE_CHECKING:
    import httpx

TIMEOUT_S = 30.0
VERSION = "1.61"  # config drives as objects, soft power off with a timeout, retired nodes
_OURS = "1.900"
_HIGHEST = "x-openstack-ironic-api-maximum-version"
_PAGE = 1000
_UNAUTHORIZED, _NOT_FOUND, _CONFLICT = 401, 404, 409
_LATER = frozenset({408, 409, 425, 429, 502, 503, 504})


class Tokens(Protocol):
    """Where tokens for the API come from."""

    async def get(self) -> str: ...
    def forget(self) -> None: ...


class NotNow(Exception):
    """The API cannot be asked now, or a node is busy; the text says why."""


class Refused(Exception):
    """The API will not do it; the text says why."""


class BaremetalApi:
    """One API at an address."""

    def __init__(self, endpoint: str, tokens: Tokens) -> None:
        self.endpoint = endpoint.rstrip("/")
        self._tokens = tokens
        self._http: httpx.AsyncClient | None = None
        self.is_ours = False
        """Whether the last answer was Siderite's own, as far as its versions tell."""

    async def node(self, ident: str) -> dict[str, Any] | None:
        """A node by its UUID."""
        return await self._ask("GET", f"/v1/nodes/{ident}", may_miss=True)

    async def node_of(self, server: str) -> dict[str, Any] | None:
        """The node that carries a server."""
        found = await self._ask("GET", f"/v1/nodes/detail?instance_uuid={server}")
        return next(iter(found["nodes"]), None) if found else None

    async def nodes(self, fields: str, more: str = "") -> AsyncIterator[dict[str, Any]]:
        """All nodes, with these fields."""
        marker = ""
        while True:
            path = f"/v1/nodes?fields={fields}&limit={_PAGE}{more}{marker}"
            page = (await self._ask("GET", path) or {})["nodes"]
            for node in page:
                yield node
            if len(page) < _PAGE:
                return
            marker = f"&marker={page[-1]['uuid']}"

    async def patch(self, ident: str, *changes: tuple[str, str, Any]) -> None:
        """Change fields: (`add` or `remove`, path, value)."""
        body = [
            {"op": op, "path": path} if op == "remove" else {"op": op, "path": path, "value": value}
            for op, path, value in changes
        ]
        await self._ask("PATCH", f"/v1/nodes/{ident}", body)

    async def provision(self, ident: str, target: str, **more: Any) -> None:
        """Ask for a provision state."""
        body = {"target": target, **more}
        await self._ask("PUT", f"/v1/nodes/{ident}/states/provision", body)

    async def power(self, ident: str, target: str, **more: Any) -> None:
        """Ask for a power state."""
        await self._ask("PUT", f"/v1/nodes/{ident}/states/power", {"target": target, **more})

    async def _ask(
        self, method: str, path: str, body: Any = None, *, may_miss: bool = False
    ) -> dict[str, Any] | None:
        import httpx  # noqa: PLC0415 - only clouds with bare metal servers need it

        if self._http is None:
            self._http = httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=False)
        try:
            token = await self._tokens.get()
            headers = {"X-OpenStack-Ironic-API-Version": VERSION}
            headers |= {"X-Auth-Token": token} if token else {}
            reply = await self._http.request(
                method, self.endpoint + path, json=body, headers=headers
            )
        except SideriteError as why:
            raise NotNow(why.sentence) from why
        except httpx.HTTPError as why:
            text = (
                f"the bare metal API at {self.endpoint} cannot be reached: {str(why) or repr(why)}"
            )
            raise NotNow(text) from why
        self.is_ours = reply.headers.get(_HIGHEST) == _OURS
        if reply.is_success:
            return reply.json() if reply.content else None
        if may_miss and reply.status_code == _NOT_FOUND:
            return None
        raise self._refusal(method, path, reply)

    def _refusal(self, method: str, path: str, reply: "httpx.Response") -> Exception:
        said = _words(reply)
        if reply.status_code == _UNAUTHORIZED:
            self._tokens.forget()
            return NotNow(f"the bare metal API at {self.endpoint} refused our token: {said}")
        if reply.status_code in _LATER:
            return NotNow(said)
        return Refused(f"{method} {self.endpoint}{path} was answered {reply.status_code}: {said}")

    async def close(self) -> None:
        """Let go of connections."""
        if self._http is not None:
            await self._http.aclose()


def _words(reply: "httpx.Response") -> str:
    """The sentence in an error's body, whichever way it is wrapped."""
    import json  # noqa: PLC0415

    try:
        inner = reply.json()["error_message"]
        inner = json.loads(inner) if isinstance(inner, str) else inner
        return str(inner.get("faultstring") or inner)[:500]
    except (ValueError, LookupError, TypeError, AttributeError):
        return reply.text[:300] or f"status {reply.status_code}"
