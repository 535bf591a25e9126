"""A subscription as a value, and how it is made, changed and signed for."""

import base64
import hashlib
import hmac
import secrets
from typing import Any

import msgspec

from siderite.core.eventlog import Wanted
from siderite.core.store.table import Table
from siderite.core.times import iso

PREFIX = "whsec_"
"""Of a secret, as Standard Webhooks writes it (https://www.standardwebhooks.com)."""


class Webhook(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where to, what of, and for whom. `owner` is the project whose members may change it; None is
    the administrators'.
    """

    uuid: str
    created_at: str
    url: str
    secret: str
    version: int = 1
    updated_at: str | None = None
    name: str | None = None
    type: str | None = None
    resource: str | None = None
    project: str | None = None
    owner: str | None = None
    enabled: bool = True

    @property
    def wanted(self) -> Wanted:
        """Which facts it is for: a project's own shows its members nothing of others."""
        return Wanted(self.type, self.resource, self.owner or self.project)

    def changed(self, now: float, changes: dict[str, Any]) -> "Webhook":
        """With other fields."""
        return msgspec.structs.replace(
            self, **changes, version=self.version + 1, updated_at=iso(now)
        )


_SHOWN = (
    "name", "url", "type", "resource", "project", "enabled", "created_at", "updated_at",
)  # fmt: skip


def visible(webhook: Webhook) -> dict[str, Any]:
    """What may be read of it: not the secret."""
    return {"id": webhook.uuid, **{name: getattr(webhook, name) for name in _SHOWN}}


def _render(webhook: Webhook) -> str:
    return msgspec.json.encode(visible(webhook)).decode()


WEBHOOKS = Table("webhooks", Webhook, ("owner", "enabled"), _render)


def new_secret() -> str:
    """A secret nobody has guessed."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def signature(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """What proves to the receiver who sent it, and when."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
