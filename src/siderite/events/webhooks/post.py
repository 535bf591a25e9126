"""One request to a webhook's address, and what came of it. Imported with httpx when there is a
webhook: most installations have none.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

import httpx

from siderite.core.guard import Guard
from siderite.core.guard import Refused
from siderite.core.guarded_http import GuardedTransport
from siderite.events.webhooks.webhook import Webhook
from siderite.events.webhooks.webhook import signature

_MOST_READ = 64 * 1024
_REDIRECTS = range(300, 400)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of it; without an error it was taken."""

    status: int | None
    error: str | None
    ms: float


class Post:
    """Sends events to one webhook, over connections that are kept open."""

    def __init__(self, guard: Guard, *, timeout_s: float, clock: Callable[[], float]) -> None:
        self._client = httpx.AsyncClient(
            transport=GuardedTransport(guard),
            timeout=timeout_s,
            follow_redirects=False,
            trust_env=False,
        )
        self._clock = clock
        self._timeout_s = timeout_s

    async def send(self, webhook: Webhook, message_id: str, event_type: str, body: bytes) -> Answer:
        """Send an event."""
        at = int(self._clock())
        headers = {
            "content-type": "application/json",
            "user-agent": "siderite-webhook",
            "webhook-id": message_id,
            "webhook-timestamp": str(at),
            "webhook-signature": signature(webhook.secret, message_id, at, body),
            "siderite-event": event_type,
        }
        began = time.perf_counter()
        status, error = await self._ask(webhook.url, body, headers)
        return Answer(status, error, round((time.perf_counter() - began) * 1000, 1))

    async def close(self) -> None:
        """Let go of connections."""
        await self._client.aclose()

    async def _ask(
        self, url: str, body: bytes, headers: dict[str, str]
    ) -> tuple[int | None, str | None]:
        try:
            # The client's own limit is for each piece: an answer may trickle for ever.
            async with (
                asyncio.timeout(self._timeout_s),
                self._client.stream("POST", url, content=body, headers=headers) as answer,
            ):
                await _drain(answer)
        except Refused as why:
            return None, f"{why}."
        except (httpx.TimeoutException, TimeoutError):
            return None, f"No answer within {self._timeout_s:g} s."
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as why:
            return None, f"No answer: {str(why) or type(why).__name__}."
        if answer.is_success:
            return answer.status_code, None
        if answer.status_code in _REDIRECTS:
            return answer.status_code, "A redirect, which is not followed: give the final address."
        return answer.status_code, f"Answered {answer.status_code} in place of 2xx."


async def _drain(answer: httpx.Response) -> None:
    """Read the answer, as far as it is short, so that the connection can be used again."""
    read = 0
    async for chunk in answer.aiter_raw():
        read += len(chunk)
        if read > _MOST_READ:
            return
