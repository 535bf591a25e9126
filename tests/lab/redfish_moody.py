"""A Redfish BMC of a few pages with sessions, that can be told to misbehave.

with moody_bmc() as bmc:
    bmc.mood = 429  # the status of all answers from now on; HANGS_UP gives none
"""

import json
import ssl
import threading
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.support.serving import serving

SYSTEM = "/redfish/v1/Systems/1"
SESSIONS = "/redfish/v1/SessionService/Sessions"
HANGS_UP = 0
_FINE = 200
_PATIENCE_S = 60.0
_SESSIONS_OFFERED: dict[str, Any] = {
    "SessionService": {"@odata.id": "/redfish/v1/SessionService"},
    "Links": {"Sessions": {"@odata.id": SESSIONS}},
}
_POWER = {"On": "On", "ForceOff": "Off"}


class MoodyBmc:
    """What the BMC is like, and what it was asked."""

    def __init__(self, url: str, offered: list[str]) -> None:
        self.url = url
        self.mood = _FINE
        self.adds: dict[str, str] = {}
        """Headers of its answers in a mood, such as Retry-After."""
        self.asked = 0
        self.answers = threading.Event()
        """It does not answer before that."""
        self.answers.set()
        self.reset_status = self.patch_status = 204
        self.sessions: set[str] = set()
        self.logins = 0
        self.password: str | None = None
        """Without one any will do."""
        self.has_sessions = True
        """Else it wants HTTP basic authentication before it says anything."""
        self.failed_logins = 0
        self.forbids = False
        """Nobody may see the system."""
        self.whole: Any = ...
        """What it has in the place of the system's page."""
        self.orders: list[Any] = []
        self.system: dict[str, Any] = {
            "Id": "1", "Name": "System", "PowerState": "Off",
            "Boot": {
                "BootSourceOverrideTarget": "None", "BootSourceOverrideEnabled": "Disabled",
                "BootSourceOverrideTarget@Redfish.AllowableValues": offered,
            },
            "Actions": {"#ComputerSystem.Reset": {
                "target": f"{SYSTEM}/Reset",
                "ResetType@Redfish.AllowableValues": ["On", "ForceOff", "GracefulShutdown"],
            }},
        }  # fmt: skip

    @property
    def driver_info(self) -> dict[str, Any]:
        """How a node says where it is."""
        return {
            "redfish_address": self.url, "redfish_system_id": SYSTEM,
            "redfish_username": "admin", "redfish_password": "hunter2",
        }  # fmt: skip

    def page(self, path: str) -> dict[str, Any] | None:
        """What is at an address."""
        pages: dict[str, dict[str, Any]] = {
            "/redfish/v1": {
                "Id": "Root", "Name": "Root", "RedfishVersion": "1.13.0",
                "Systems": {"@odata.id": "/redfish/v1/Systems"},
                **(_SESSIONS_OFFERED if self.has_sessions else {}),
            },
            "/redfish/v1/SessionService": {
                "Id": "Sessions", "Name": "Sessions", "Sessions": {"@odata.id": SESSIONS},
            },
            SYSTEM: self.system,
        }  # fmt: skip
        return pages.get(path)

    def lets_in(self, headers: Message) -> bool:
        """Whether somebody is known; who comes with a wrong password is counted."""
        if self.has_sessions and headers.get("X-Auth-Token") in self.sessions:
            return True
        kind, _, word = (headers.get("Authorization") or "").partition(" ")
        if kind != "Basic":
            return False
        is_right = b64decode(word).decode().partition(":")[2] == self.password
        self.failed_logins += not is_right
        return is_right and self.password is not None

    def told(self, method: str, body: Any) -> int:
        """An order for the system; the status that it is answered with."""
        if body is None:
            return 400
        self.orders.append(body)
        if method == "PATCH":
            if self.patch_status < 300:
                self.system["Boot"].update(body.get("Boot", {}))
            return self.patch_status
        if self.reset_status < 300 and body["ResetType"] in _POWER:
            self.system["PowerState"] = _POWER[body["ResetType"]]
        return self.reset_status


@contextmanager
def moody_bmc(
    *, offered: tuple[str, ...] = ("None", "Pxe", "Hdd", "Cd"), tls: ssl.SSLContext | None = None
) -> Iterator[MoodyBmc]:
    """One system, which offers to start from these."""

    class Answers(BaseHTTPRequestHandler):
        def answer(self) -> None:
            path = self.path.rstrip("/")
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size)) if size else None
            bmc.asked += 1
            bmc.answers.wait(_PATIENCE_S)
            if bmc.mood == HANGS_UP:
                self.close_connection = True
            elif bmc.mood != _FINE:
                error = {"code": "Base.1.0.Error", "message": "not now"}
                self._send(bmc.mood, {"error": error}, bmc.adds)
            elif (self.command, path) == ("POST", SESSIONS) and bmc.has_sessions:
                if bmc.password not in (None, (body or {}).get("Password")):
                    bmc.failed_logins += 1
                    return self._send(401, {"error": {"message": "that is not the password"}})
                bmc.logins += 1
                key = f"key-{bmc.logins}"
                bmc.sessions.add(key)
                self._send(201, {"Id": key}, {"X-Auth-Token": key, "Location": f"{path}/{key}"})
            elif path != "/redfish/v1" and not bmc.lets_in(self.headers):
                self._send(401, {"error": {"message": "who are you"}})
            elif self.command == "DELETE":
                bmc.sessions.discard(path.rpartition("/")[2])
                self._send(204, None)
            elif self.command in ("POST", "PATCH"):
                self._send(bmc.told(self.command, body), {})
            elif path == SYSTEM and bmc.forbids:
                self._send(403, {"error": {"message": "not you"}})
            elif path == SYSTEM and bmc.whole is not ...:
                self._send(_FINE, bmc.whole)
            else:
                page = bmc.page(path)
                self._send(_FINE if page else 404, {"@odata.id": path, **(page or {})})
            return None

        def __getattr__(self, name: str) -> Any:
            if name.startswith("do_"):
                return self.answer
            raise AttributeError(name)

        def _send(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
            text = b"" if status == 204 else json.dumps(body).encode()
            self.send_response(status)
            fields = {"Content-Type": "application/json", "Content-Length": str(len(text))}
            for name, value in (fields | (headers or {})).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with serving(Answers, tls) as url:
        bmc = MoodyBmc(url, list(offered))
        yield bmc
