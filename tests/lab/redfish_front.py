"""A BMC's moods in front of sushy-emulator, which has none: sessions that are forgotten, restarts,
and orders that are answered with a task and followed later.

    with redfish_front(emulated(bmcs.url)) as front:
        node = make_node(driver="redfish", driver_info=bmcs.driver_info(uuid) | front.driver_info)
        front.by_task = lambda method, path: path.endswith("InsertMedia")
        front.stop()                    # connections are refused
        front.start()                   # all sessions and tasks are forgotten

What passes is the answer of what stands behind, and what a task does is done by that.
"""

import json
import threading
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from http.server import ThreadingHTTPServer
from typing import Any

import httpx

from tests.lab.bmc import PASSWORD
from tests.lab.bmc import USERNAME
from tests.lab.redfish_paper import Paper
from tests.support.ports import free_port

_ROOT = "/redfish/v1"
_SESSIONS = f"{_ROOT}/SessionService/Sessions"
_SERVICE = f"{_ROOT}/TaskService"
_MONITORS = f"{_SERVICE}/TaskMonitors"
_TASKS = f"{_SERVICE}/Tasks"
_PAGES = {
    f"{_ROOT}/SessionService": {
        "Id": "Sessions", "Name": "Sessions", "Sessions": {"@odata.id": _SESSIONS},
    },
    _SERVICE: {"Id": "Tasks", "Name": "Tasks", "Tasks": {"@odata.id": _TASKS}},
}  # fmt: skip
_PASSED_ON = ("content-type", "etag", "location")


@dataclass
class Task:
    """An order that was put off."""

    order: tuple[str, str, bytes]
    asked: int = 0
    answer: tuple[int, bytes] | None = None


class Front:
    """What the BMC is like, and what it was told."""

    def __init__(self, behind: httpx.Client | Paper) -> None:
        self.port = free_port()
        self.by_task: Callable[[str, str], bool] = lambda method, path: False
        """Which orders are put off, until they have been asked for `patience` times."""
        self.patience = 2
        self.plain_task = False
        """Its tasks are plain pages with a TaskState, not monitors."""
        self.accepts_with = b""
        """What it says when it has made a task of an order."""
        self.hangs_up = 0
        """How many of them it does not answer at all."""
        self.is_mute: Callable[[str, str], bool] = lambda method, path: False
        """What it does not answer at all."""
        self.loses: Callable[[str, str], bool] = lambda method, path: False
        """Which orders it follows, and does not answer."""
        self.is_busy: Callable[[str, str], int] = lambda method, path: 0
        """With which status it says that it will not now, if it does."""
        self.says_with = b'{"error": {"message": "not now"}}'
        """What it says then."""
        self.refuses = ""
        """What it says to a change of settings that it does not take; it does if that is empty."""
        self.lists_tasks = True
        """It has a list of its tasks."""
        self.has_monitors = True
        """Monitors of tasks are there; they may vanish before the tasks do."""
        self.is_forgetful = False
        """It knows of none of its tasks just now."""
        self.page: Callable[[str, Any], Any] = lambda path, page: page
        """What it makes of a page."""
        self.repeats: Callable[[str, str], bool] = lambda method, path: False
        """Which orders it refuses with what they say."""
        self.fails_with = ""
        """What tasks say when they fail; they succeed if it is empty."""
        self.waits_for: Callable[[], bool] = lambda: True
        """What tasks need in order to end, such as the machine's start."""
        self.password = PASSWORD
        self.sessions: set[str] = set()
        self.logins = 0
        self.tasks: list[Task] = []
        self.orders: list[tuple[str, str]] = []
        self.refused = 0
        self._behind = behind
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    @property
    def driver_info(self) -> dict[str, str]:
        """Where it is, and how to get in."""
        return {
            "redfish_address": f"http://127.0.0.1:{self.port}",
            "redfish_username": USERNAME,
            "redfish_password": PASSWORD,
        }

    def start(self) -> None:
        """Let it answer."""
        front = self

        class Answers(BaseHTTPRequestHandler):
            def __getattr__(self, name: str) -> Any:
                if name.startswith("do_"):
                    return lambda: front.answer(self)
                raise AttributeError(name)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Answers)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Refuse connections, and forget sessions and tasks, as a BMC does that begins anew."""
        server, self._server = self._server, None
        if server is not None and self._thread is not None:
            server.shutdown()
            server.server_close()
            self._thread.join()
        self.sessions.clear()
        self.tasks.clear()

    def close(self) -> None:
        """Let go of everything."""
        self.stop()
        self._behind.close()

    def told(self, word: str) -> int:
        """How many orders there were whose address has this word."""
        return sum(word in path for _, path in self.orders)

    def answer(self, to: BaseHTTPRequestHandler) -> None:
        """One request."""
        path = to.path.rstrip("/")
        size = int(to.headers.get("Content-Length") or 0)
        body = to.rfile.read(size)
        if self.repeats(to.command, path):
            message = f"cannot take {body.decode()}"
            error = {"code": "Base.1.0.GeneralError", "message": message}
            return _send(to, 400, json.dumps({"error": error}).encode())
        if (to.command, path) == ("POST", _SESSIONS):
            if json.loads(body).get("Password") != self.password:
                return _send(to, 401, b'{"error": {"message": "that is not the password"}}')
            with self._lock:
                self.logins += 1
                key = f"key-{self.logins}-{self.port}"
                self.sessions.add(key)
            headers = {"X-Auth-Token": key, "Location": f"{path}/{key}"}
            return _send(to, 201, json.dumps({"Id": key}).encode(), headers)
        if path != _ROOT and to.headers.get("X-Auth-Token") not in self.sessions:
            self.refused += 1
            return _send(to, 401, b'{"error": {"message": "who are you"}}')
        if path.startswith(_SESSIONS):
            self.sessions.discard(path.rpartition("/")[2])
            return _send(to, 204, b"")
        if path.startswith((_MONITORS, f"{_TASKS}/")):
            return self._told_of(to, int(path.rpartition("/")[2]), plain=path.startswith(_TASKS))
        if path == _TASKS:
            known = 0 if self.is_forgetful else len(self.tasks)
            members = [{"@odata.id": f"{_TASKS}/{n}"} for n in range(known)]
            page = {"@odata.id": path, "Name": "Tasks", "Members": members}
            return _send(to, 200, json.dumps(page).encode())
        if path in _PAGES:
            return _send(to, 200, json.dumps({"@odata.id": path, **_PAGES[path]}).encode())
        if self.is_mute(to.command, path):
            to.close_connection = True
            return None
        if busy := self.is_busy(to.command, path):
            return _send(to, busy, self.says_with)
        return self._pass_on(to, path, body)

    def _pass_on(self, to: BaseHTTPRequestHandler, path: str, body: bytes) -> None:
        if to.command != "GET":
            self.orders.append((to.command, path))
            if self.refuses and to.command == "PATCH":
                return _send(to, 400, json.dumps({"error": {"message": self.refuses}}).encode())
            if self.by_task(to.command, path):
                self.tasks.append(Task((to.command, to.path, body)))
                if self.hangs_up:
                    self.hangs_up -= 1
                    to.close_connection = True
                    return None
                where = f"{_MONITORS}/{len(self.tasks) - 1}"
                return _send(
                    to, 202, self.accepts_with, {"Location": f"http://elsewhere.invalid{where}"}
                )
        found = self._ask(to.command, to.path, body)
        if to.command != "GET" and self.loses(to.command, path):
            to.close_connection = True
            return None
        content = found.content
        if path == _ROOT:
            page = found.json()
            page["SessionService"] = {"@odata.id": f"{_ROOT}/SessionService"}
            page["Links"] = {"Sessions": {"@odata.id": _SESSIONS}}
            page.pop("Tasks", None)
            if self.lists_tasks:
                page["Tasks"] = {"@odata.id": _SERVICE}
            content = json.dumps(page).encode()
        if to.command == "GET" and found.status_code == 200:
            content = json.dumps(self.page(path, json.loads(content))).encode()
        headers = {k: v for k, v in found.headers.items() if k.lower() in _PASSED_ON}
        return _send(to, found.status_code, content, headers)

    def _ask(self, method: str, path: str, body: bytes) -> httpx.Response:
        headers = {"Content-Type": "application/json"} if body else {}
        return self._behind.request(method, path, content=body, headers=headers)

    def _told_of(self, to: BaseHTTPRequestHandler, number: int, *, plain: bool) -> None:
        is_gone = self.is_forgetful or not (plain or self.has_monitors)
        if is_gone or number >= len(self.tasks):
            return _send(to, 404, b"{}")
        task = self.tasks[number]
        with self._lock:
            task.asked += 1
            if task.answer is None and task.asked > self.patience and self.waits_for():
                task.answer = 200, b""
                if not self.fails_with:
                    done = self._ask(*task.order)
                    task.answer = done.status_code, done.content
        state, words = "Running", []
        if task.answer is not None:
            failed = self.fails_with or task.answer[0] >= 400
            state = "Exception" if failed else "Completed"
            words = [{"Message": self.fails_with or task.answer[1].decode()}] if failed else []
        elif not self.waits_for():
            state = "Pending"
        payload = {"TargetUri": task.order[1], "JsonBody": task.order[2].decode()}
        page: dict[str, Any] = {"Id": str(number), "Name": "Task", "TaskState": state}
        page |= {"Messages": words, "Payload": payload}
        if plain or self.plain_task or self.fails_with:
            return _send(to, 200, json.dumps(page).encode())
        if task.answer is None:
            return _send(to, 202, json.dumps({"TaskState": state}).encode(), {"Retry-After": "0"})
        return _send(to, *task.answer)


def _send(
    to: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str] | None = None
) -> None:
    text = b"" if status == 204 else body
    to.send_response(status)
    fields = {"Content-Type": "application/json", **(headers or {}), "Content-Length": len(text)}
    for name, value in fields.items():
        to.send_header(name, str(value))
    to.end_headers()
    to.wfile.write(text)


def emulated(url: str) -> httpx.Client:
    """The emulator at this address."""
    return httpx.Client(
        base_url=url, auth=(USERNAME, PASSWORD), timeout=60.0, trust_env=False, verify=False
    )


@contextmanager
def redfish_front(behind: httpx.Client | Paper) -> Iterator[Front]:
    """A BMC in front of something; ends with it."""
    front = Front(behind)
    front.start()
    try:
        yield front
    finally:
        front.close()
