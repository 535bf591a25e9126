"""The public APIs, as the reaper uses them: like any client, with a user of its own."""

import json
from collections.abc import AsyncIterator
from collections.abc import Mapping
from ssl import SSLContext
from typing import Any

import httpx

VERSION = "compute 2.901"
_UNAUTHORIZED = 401


class Refused(Exception):
    """An answer that is no success; its status and sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(f"{status}: {sentence}")
        self.status = status


class Api:
    """A session with the cloud: where it is, where tokens come from, and for what."""

    def __init__(
        self,
        root: str,
        identity: str,
        credentials: Mapping[str, Any],
        *,
        trust: SSLContext | None = None,
    ) -> None:
        self._root = root
        self._identity = identity
        self._credentials = credentials
        self._client = httpx.AsyncClient(timeout=30.0, trust_env=False, verify=trust or True)
        self._token = ""

    async def close(self) -> None:
        """Let go of connections."""
        await self._client.aclose()

    async def login(self) -> None:
        """Get a token."""
        body = {"auth": self._credentials}
        answer = await self._client.post(f"{self._identity}/auth/tokens", json=body)
        if answer.status_code != httpx.codes.CREATED:
            raise Refused(answer.status_code, _sentence(answer))
        self._token = answer.headers["x-subject-token"]

    def _headers(self) -> dict[str, str]:
        return {"X-Auth-Token": self._token, "OpenStack-API-Version": VERSION}

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """One request to the compute API; the answer's document, if it has one."""
        answer = await self._send(method, path, body)
        if answer.status_code == _UNAUTHORIZED:
            await self.login()
            answer = await self._send(method, path, body)
        if answer.is_error:
            raise Refused(answer.status_code, _sentence(answer))
        return answer.json() if answer.content else None

    async def _send(self, method: str, path: str, body: Any) -> httpx.Response:
        url = f"{self._root}/compute/v2.1{path}"
        return await self._client.request(method, url, json=body, headers=self._headers())

    async def pages(self, path: str, key: str) -> list[dict[str, Any]]:
        """All of a list, page after page."""
        found: list[dict[str, Any]] = []
        while True:
            marker = f"&marker={found[-1]['id']}" if found else ""
            page = await self.ask("GET", f"{path}&limit=1000{marker}")
            found += page[key]
            if not page.get(f"{key}_links"):  # they are there if there is more
                return found

    async def act(self, server: str, action: str, value: Any = None) -> Any:
        """Ask something of a server."""
        return await self.ask("POST", f"/servers/{server}/action", {action: value})

    async def newest_event(self) -> int:
        """The last number of the log."""
        answer = await self._last_event()
        if answer.status_code == _UNAUTHORIZED:
            await self.login()
            answer = await self._last_event()
        if answer.is_error:
            raise Refused(answer.status_code, _sentence(answer))
        return int(answer.json()["next"])

    async def _last_event(self) -> httpx.Response:
        url = f"{self._root}/events/v1/events"
        return await self._client.get(url, params={"last": "1"}, headers=self._headers())

    async def refused_placements(self, after: int) -> AsyncIterator[int]:
        """The numbers of events that tell of servers without a host, as they come."""
        url = f"{self._root}/events/v1/events"
        query = {"type": "scheduler.select_destinations.error", "after": str(after)}
        headers = {**self._headers(), "Accept": "text/event-stream"}
        timeout = httpx.Timeout(30.0, read=60.0)
        async with self._client.stream(
            "GET", url, params=query, headers=headers, timeout=timeout
        ) as answer:
            if answer.is_error:
                await answer.aread()
                raise Refused(answer.status_code, _sentence(answer))
            async for line in answer.aiter_lines():
                if line.startswith("data:"):
                    yield int(json.loads(line[5:]).get("seq", after))


def _sentence(answer: httpx.Response) -> str:
    try:
        body = answer.json()
        return str(next(iter(body.values()))["message"])
    except (ValueError, KeyError, TypeError, StopIteration, AttributeError):
        return answer.text[:200]
