"""The running service, as a clouds.yaml names it: a small HTTP client."""

import http.client
import json
import os
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any
from typing import BinaryIO

_SERVER_ERRORS = 500
_NEVER = HTTPStatus.NOT_IMPLEMENTED
"""What is answered so will not be done later, either."""


class Refused(Exception):
    """The service, or the command itself, says no; the text is for the operator.

    `exit_code` is that of the command: 1 refused, 3 not found, 4 conflict, 5 timeout.
    """

    exit_code = 1


class Missing(Refused):
    """What is named is not there."""

    exit_code = 3


class Gone(Refused):
    """That was here once and is not kept any more."""


class Forbidden(Refused):
    """Whoever asks may not."""


class Clash(Refused):
    """It cannot be done now, for what is under way or for the state things are in."""

    exit_code = 4


class Late(Refused):
    """What was waited for did not come in time."""

    exit_code = 5


class Away(Refused):
    """The service does not answer, or cannot just now."""


class Expired(Refused):
    """The token is not good any more."""


_ITS_ADDRESS = "Siderite's auth_url in clouds.yaml ends with /identity/v3."
_KINDS: dict[int, type[Refused]] = {
    HTTPStatus.FORBIDDEN: Forbidden, HTTPStatus.NOT_FOUND: Missing, HTTPStatus.CONFLICT: Clash,
    HTTPStatus.GONE: Gone,
}  # fmt: skip


def clouds_file(data: str | None) -> Path:
    """The data directory's, if one is named; else the one that OpenStack's clients would read."""
    if data:
        return Path(data) / "clouds.yaml"
    named = os.environ.get("OS_CLIENT_CONFIG_FILE")
    if named:
        return Path(named)
    places = [Path("siderite-data"), Path(), Path("~/.config/openstack")]
    found = [path for place in places if (path := _file_in(place))]
    return found[0] if found else places[0] / "clouds.yaml"


def _file_in(place: Path) -> Path | None:
    try:
        path = place.expanduser() / "clouds.yaml"
        return path if path.is_file() else None
    except (OSError, RuntimeError):  # not ours to look into; a user without a home
        return None


def read_cloud(data: str | None) -> dict[str, Any]:
    """The cloud that OS_CLOUD names, or `siderite`, or the only one there is."""
    import yaml

    path = clouds_file(data)
    try:
        clouds = yaml.safe_load(path.read_text(encoding="utf-8"))["clouds"]
        name = os.environ.get("OS_CLOUD", "")
        if data or not name:
            name = "siderite" if "siderite" in clouds or len(clouds) > 1 else next(iter(clouds))
        elif name not in clouds:
            raise Refused(f"{path} has no cloud {name!r}, which OS_CLOUD names; it has:"
                          f" {', '.join(clouds)}.")  # fmt: skip
        found: dict[str, Any] = clouds[name]
        found["auth"]["auth_url"]
    except PermissionError as why:
        raise Refused(f"cannot read {path}: it belongs to the user that runs the service; be that"
                      " user, or have a clouds.yaml of your own.") from why  # fmt: skip
    except OSError as why:
        raise Refused(f"cannot read {path}: {why.strerror}; start `siderite up` first, or name its"
                      " data directory with --data.") from why  # fmt: skip
    except (yaml.YAMLError, UnicodeDecodeError) as why:
        raise Refused(f"{path} is not YAML: {' '.join(str(why).split())}.") from why
    except (KeyError, TypeError, StopIteration) as why:
        raise Refused(f"{path} names no cloud with an auth_url: {why!r}.") from why
    return found


class Cloud:
    """A session with the service, as whom clouds.yaml names."""

    def __init__(self, data: str | None) -> None:
        cloud = read_cloud(data)
        auth = cloud["auth"]
        self.user = str(auth.get("username") or "the application credential in clouds.yaml")
        self.credentials = _credentials(auth)
        self.identity = auth["auth_url"].rstrip("/").removesuffix("/v3") + "/v3"
        self.base = self.identity.removesuffix("/identity/v3")
        self.trust = _trust(cloud) if self.identity.startswith("https:") else None
        self._token = ""
        self.login()

    def login(self) -> None:
        """Get a token; again when the last one has expired."""
        self._token = ""
        body = json.dumps({"auth": self.credentials}).encode()
        try:
            with self.open("/auth/tokens", method="POST", data=body, base=self.identity) as answer:
                token = json.loads(answer.read())["token"]
                self._token = answer.headers["X-Subject-Token"]
        except Missing as why:
            raise Refused(f"{self.identity} gave no token: {why} {_ITS_ADDRESS}") from why
        except (OSError, ValueError, KeyError, http.client.HTTPException) as why:
            raise Away(f"{self.identity} gave no token: {why!r}. {_ITS_ADDRESS}") from why
        if not self.identity.endswith("/identity/v3"):
            self.base = _base_of(token.get("catalog", ()))

    def baremetal(self, method: str, path: str, body: Any = None) -> Any:
        """What the bare metal API says, at the version that shows most."""
        version = {"X-OpenStack-Ironic-API-Version": "1.900"}
        return self.ask(method, "/baremetal/v1" + path, body, version)[0]

    def compute(self, method: str, path: str, body: Any = None) -> Any:
        """What the compute API says, at the version that shows most."""
        version = {"OpenStack-API-Version": "compute 2.901"}
        return self.ask(method, "/compute/v2.1" + path, body, version)[0]

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        *,
        timeout_s: float = 30.0,
        base: str = "",
    ) -> tuple[Any, Any]:
        """One request; what is refused ends the command with the service's own sentence. A token
        that has expired meanwhile, as one who waits for long has it, is replaced.
        """
        data = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        how = {"method": method, "data": data, "timeout_s": timeout_s, "base": base}
        try:
            return self._ask(path, headers, how)
        except Expired:
            self.login()
            return self._ask(path, headers, how)

    def _ask(
        self, path: str, headers: Mapping[str, str] | None, how: Mapping[str, Any]
    ) -> tuple[Any, Any]:
        try:
            with self.open(path, headers, **how) as answer:
                text = answer.read()
                return (json.loads(text) if text else None), answer.headers
        except (OSError, http.client.HTTPException) as why:
            raise self._away(why) from why
        except ValueError as why:
            raise Away(f"{self.base} is not Siderite: its answer is not JSON.") from why

    def open(
        self,
        path: str,
        headers: Mapping[str, str] | None = None,
        *,
        method: str = "GET",
        data: bytes | BinaryIO | None = None,
        timeout_s: float = 30.0,
        base: str = "",
    ) -> Any:
        """An answer whose body the caller reads, and closes; a pause over the timeout ends it."""
        sent = {"Content-Type": "application/json", "X-Auth-Token": self._token, **(headers or {})}
        request = urllib.request.Request(  # noqa: S310 - the service's own address
            (base or self.base) + path, data, {k: v for k, v in sent.items() if v}, method=method
        )
        try:
            return urllib.request.urlopen(request, timeout=timeout_s, context=self.trust)  # noqa: S310
        except urllib.error.HTTPError as why:
            raise self._refusal(why) from why
        except (OSError, http.client.HTTPException) as why:
            raise self._away(why) from why

    def _refusal(self, why: urllib.error.HTTPError) -> Refused:
        """The service's own sentence; or that somebody else answered in its place."""
        is_away = why.code >= _SERVER_ERRORS and why.code != _NEVER
        is_plain = why.headers.get("Content-Type", "").startswith("text/plain")
        try:
            with why:
                text = _plain(why.read()) if is_plain else _sentence(json.loads(why.read()))
        except (ValueError, KeyError, TypeError, AttributeError, StopIteration):
            return (Away if is_away else Refused)(
                f"{self.base} answers {why.code} {why.reason}, and not as Siderite does: does a"
                " proxy answer in its place, and is `siderite up` running?"
            )
        if why.code == HTTPStatus.UNAUTHORIZED and self._token:
            return Expired(text)
        return (Away if is_away else _KINDS.get(why.code, Refused))(text)

    def _away(self, why: Exception) -> Away:
        reason = getattr(why, "reason", why)  # urllib wraps it
        if isinstance(reason, ssl.SSLCertVerificationError):
            return Away(
                f"the certificate of {self.base} is not trusted: {reason.verify_message}; name the"
                " file of its CA as cacert of this cloud in clouds.yaml."
            )
        said = getattr(reason, "strerror", None) or " ".join(str(reason).split()) or repr(reason)
        return Away(f"cannot reach {self.base}: {said}; is `siderite up` running?")


def _trust(cloud: Mapping[str, Any]) -> ssl.SSLContext:
    """Whose certificates are good: of the system's CAs, of the cloud's own (cacert), or any."""
    path = cloud.get("cacert")
    try:
        context = ssl.create_default_context(cafile=path and str(Path(path).expanduser()))
    except (OSError, TypeError) as why:
        said = getattr(why, "strerror", None) or why
        raise Refused(f"cannot use {path!r}, the cacert of this cloud: {said}.") from why
    if cloud.get("verify") is False:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _credentials(auth: Mapping[str, str]) -> dict[str, Any]:
    """What Keystone takes: an application credential, or a password and a project."""
    if "application_credential_id" in auth:
        held = {
            "id": auth["application_credential_id"],
            "secret": auth.get("application_credential_secret", ""),
        }
        return {"identity": {"methods": ["application_credential"], "application_credential": held}}
    user = {
        "name": auth.get("username", ""), "password": str(auth.get("password", "")),
        "domain": _domain(auth, "user"),
    }  # fmt: skip
    project = (
        {"id": auth["project_id"]}
        if "project_id" in auth
        else {"name": auth.get("project_name", ""), "domain": _domain(auth, "project")}
    )
    identity = {"methods": ["password"], "password": {"user": user}}
    return {"identity": identity, "scope": {"project": project}}


def _domain(auth: Mapping[str, str], whose: str) -> dict[str, str]:
    name = auth.get(f"{whose}_domain_name")
    return {"name": name} if name else {"id": auth.get(f"{whose}_domain_id", "default")}


def _base_of(catalog: Any) -> str:
    """Where Siderite is, from the catalogue of a Keystone elsewhere."""
    for entry in catalog:
        for endpoint in entry["endpoints"]:
            base, found, _ = str(endpoint["url"]).partition(f"/{entry['type']}")
            if found and endpoint["interface"] == "public" and entry["type"] in _OURS:
                return base
    raise Refused("the catalogue of this cloud has no address that is Siderite's.")


_OURS = ("baremetal", "compute")


def _sentence(body: Any) -> str:
    """What an error says, out of whichever API's envelope."""
    if "error_message" in body:
        inner = json.loads(body["error_message"])
        return str(inner.get("faultstring") or inner["description"])
    return str(next(iter(body.values()))["message"])


def _plain(body: bytes) -> str:
    """What is said before any API is asked, as where there are too many connections."""
    text = " ".join(body.decode().split())
    if not text:
        raise ValueError("it says nothing")
    return text[:300]
