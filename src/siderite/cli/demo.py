"""`siderite demo …`: stories with the simulated machines, over HTTP."""

import argparse
import contextlib
import json
import re
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any


class _Refused(Exception):
    pass


def run(said: argparse.Namespace) -> int:
    """Tell the simulator what to do."""
    try:
        cloud = _Cloud(Path(said.data or "./siderite-data") / "clouds.yaml")
        _VERBS[said.verb](cloud, said)
    except _Refused as why:
        print(f"siderite: {why}", file=sys.stderr)
        return 1
    return 0


class _Cloud:
    """The running service, as clouds.yaml names it."""

    def __init__(self, path: Path) -> None:
        try:
            text = path.read_text()
        except OSError as why:
            raise _Refused(f"cannot read {path}: {why.strerror}; start `siderite up --demo` first,"
                           " or name its --data.") from why  # fmt: skip
        found = dict(re.findall(r'^\s*(auth_url|username|password): "?(.*?)"?$', text, re.M))
        self._base = found["auth_url"].removesuffix("/identity/v3")
        user = {
            "name": found["username"],
            "domain": {"id": "default"},
            "password": found["password"],
        }
        scope = {"project": {"name": "admin", "domain": {"id": "default"}}}
        identity = {"methods": ["password"], "password": {"user": user}}
        body = {"auth": {"identity": identity, "scope": scope}}
        self._token = ""
        _, headers = self.ask("POST", "/identity/v3/auth/tokens", body)
        self._token = headers["X-Subject-Token"]

    def ask(self, method: str, path: str, body: Any = None) -> tuple[Any, Any]:
        """One request; what is refused ends the command with the service's own sentence."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "X-Auth-Token": self._token}
        request = urllib.request.Request(  # noqa: S310 - the service's own address
            self._base + path, data, {k: v for k, v in headers.items() if v}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
                text = answer.read()
                return (json.loads(text) if text else None), answer.headers
        except urllib.error.HTTPError as why:
            text = why.read().decode(errors="replace")
            with contextlib.suppress(ValueError, KeyError, TypeError):
                text = json.loads(text)["error"]["message"]
            raise _Refused(text) from why
        except OSError as why:
            raise _Refused(f"cannot reach {self._base}: {why}; is `siderite up` running?") from why


def _power_cut(cloud: _Cloud, said: argparse.Namespace) -> None:
    cloud.ask("PUT", f"/simulator/v1/scripts/rack:{said.rack}", {"unreachable": True})
    cloud.ask("POST", f"/simulator/v1/racks/{said.rack}/power-cut")
    print(f"Rack {said.rack} has no power: its machines are off and its BMCs do not answer.")
    print(f"`siderite demo restore {said.rack}` brings the BMCs back.")


def _restore(cloud: _Cloud, said: argparse.Namespace) -> None:
    cloud.ask("DELETE", f"/simulator/v1/scripts/rack:{said.rack}")
    print(f"The BMCs of rack {said.rack} answer again; the machines are still off.")


def _script(cloud: _Cloud, said: argparse.Namespace) -> None:
    text = sys.stdin.read() if said.script == "-" else said.script
    try:
        script = json.loads(text)
    except ValueError as why:
        raise _Refused(f"the script is not JSON: {why}") from why
    cloud.ask("PUT", f"/simulator/v1/scripts/{said.scope}", script)
    print(f"Machines of {said.scope} now follow the script.")


def _scripts(cloud: _Cloud, said: argparse.Namespace) -> None:
    answer, _ = cloud.ask("GET", "/simulator/v1/scripts")
    print(json.dumps(answer["scripts"], indent=2))


_VERBS = {"power-cut": _power_cut, "restore": _restore, "script": _script, "scripts": _scripts}
