"""The running service, as clouds.yaml in its data directory names it: a small HTTP client."""

import contextlib
import json
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any
from typing import BinaryIO

_SERVER_ERRORS = 500


class Refused(Exception):
    """The service, or the command itself, says no; the text is for the operator."""


class Away(Refused):
    """The service does not answer, or cannot just now."""


class Expired(Refused):
    """The token is not good any more."""


class Cloud:
    """A session with the service, as its administrator."""

    def __init__(self, data: str | None) -> None:
        path = Path(data or "./siderite-data") / "clouds.yaml"
        try:
            text = path.read_text()
        except OSError as why:
            raise Refused(f"cannot read {path}: {why.strerror}; start `siderite up --demo` first,"
                          " or name its --data.") from why  # fmt: skip
        found = dict(re.findall(r'^\s*(auth_url|username|password): "?(.*?)"?$', text, re.M))
        self._base = found["auth_url"].removesuffix("/identity/v3")
        self._user = {
            "name": found["username"],
            "domain": {"id": "default"},
            "password": re.sub(r"\\(.)", r"\1", found["password"]),
        }
        self._token = ""
        self.login()

    def login(self) -> None:
        """Get a token; again when the last one has expired."""
        scope = {"project": {"name": "admin", "domain": {"id": "default"}}}
        identity = {"methods": ["password"], "password": {"user": self._user}}
        body = {"auth": {"identity": identity, "scope": scope}}
        self._token = ""
        _, headers = self.ask("POST", "/identity/v3/auth/tokens", body)
        self._token = headers["X-Subject-Token"]

    def ask(self, method: str, path: str, body: Any = None) -> tuple[Any, Any]:
        """One request; what is refused ends the command with the service's own sentence."""
        data = None if body is None else json.dumps(body).encode()
        try:
            with self.open(path, method=method, data=data) as answer:
                text = answer.read()
                return (json.loads(text) if text else None), answer.headers
        except OSError as why:
            raise self._away(why) from why

    def open(
        self,
        path: str,
        headers: Mapping[str, str] | None = None,
        *,
        method: str = "GET",
        data: bytes | BinaryIO | None = None,
        timeout_s: float = 30.0,
    ) -> Any:
        """An answer whose body the caller reads, and closes; a pause over the timeout ends it."""
        sent = {"Content-Type": "application/json", "X-Auth-Token": self._token, **(headers or {})}
        request = urllib.request.Request(  # noqa: S310 - the service's own address
            self._base + path, data, {k: v for k, v in sent.items() if v}, method=method
        )
        try:
            return urllib.request.urlopen(request, timeout=timeout_s)  # noqa: S310
        except urllib.error.HTTPError as why:
            with why:
                text = why.read().decode(errors="replace")
            with contextlib.suppress(
                ValueError, KeyError, TypeError, AttributeError, StopIteration
            ):
                text = _sentence(json.loads(text))
            if why.code == HTTPStatus.UNAUTHORIZED and self._token:
                raise Expired(text) from why
            kind = Away if why.code >= _SERVER_ERRORS else Refused
            raise kind(text) from why
        except OSError as why:
            raise self._away(why) from why

    def _away(self, why: OSError) -> Away:
        return Away(f"cannot reach {self._base}: {why}; is `siderite up` running?")


def _sentence(body: Any) -> str:
    """What an error says, out of whichever API's envelope."""
    if "error_message" in body:
        inner = json.loads(body["error_message"])
        return str(inner.get("faultstring") or inner["description"])
    return str(next(iter(body.values()))["message"])
