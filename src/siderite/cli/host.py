"""`siderite host …`: the hosts that servers run on, over HTTP."""

import argparse
import sys
from typing import Any
from urllib.parse import quote

from siderite.cli import show
from siderite.cli.cloud import Cloud
from siderite.cli.pairs import pairs

_HOSTS = "/compute/v2.1/hosts"
_VERSION = {"OpenStack-API-Version": "compute 2.900"}
_CHECK_TIMEOUT_S = 60.0


def run(said: argparse.Namespace) -> int:
    """Do what the word says."""
    return _VERBS[said.verb](Cloud(said.data), said)


def _ask(cloud: Cloud, method: str, path: str, body: Any = None) -> Any:
    return cloud.ask(method, path, body, _VERSION, timeout_s=_CHECK_TIMEOUT_S)[0]


def _add(cloud: Cloud, said: argparse.Namespace) -> int:
    host: dict[str, Any] = {"name": said.name, "uri": said.uri}
    if said.option:
        host["options"] = pairs(said.option, "--option")
    if said.conductor_group:
        host["conductor_group"] = said.conductor_group
    return _told(_ask(cloud, "POST", _HOSTS, {"host": host})["host"])


def _check(cloud: Cloud, said: argparse.Namespace) -> int:
    return _told(_ask(cloud, "POST", f"{_HOSTS}/{quote(said.name, safe='')}/check", {})["host"])


def _set(cloud: Cloud, said: argparse.Namespace) -> int:
    body = {"host": {"conductor_group": said.conductor_group}}
    host = _ask(cloud, "PATCH", f"{_HOSTS}/{quote(said.name, safe='')}", body)["host"]
    group = host["conductor_group"]
    who = f"workers of the conductor group {group} act" if group else "any worker acts"
    print(f"{host['name']}: {who} on it.")
    return 0


def _told(host: dict[str, Any]) -> int:
    """What came of asking a host; 1 if it cannot be used."""
    if host.get("problem"):
        print(f"{host['name']} cannot be used yet: {host['problem']}", file=sys.stderr)
        return 1
    print(f"{host['name']} answers: {host['driver']} {host['uri']}".rstrip())
    return 0


def _list(cloud: Cloud, said: argparse.Namespace) -> int:
    hosts = _ask(cloud, "GET", _HOSTS)["hosts"]
    show.rows(hosts, _COLUMNS, said.output, name="name")
    return 0


def _remove(cloud: Cloud, said: argparse.Namespace) -> int:
    _ask(cloud, "DELETE", f"{_HOSTS}/{quote(said.name, safe='')}")
    print(f"{said.name} is removed.")
    return 0


_COLUMNS: tuple[show.Column, ...] = (
    ("name", lambda host: host["name"]),
    ("driver", lambda host: host["driver"]),
    ("group", lambda host: host["conductor_group"] or None),
    ("status", lambda host: host["status"] + (" (disabled)" if host["disabled"] else "")),
    ("uri", lambda host: host["uri"]),
)
_VERBS = {"add": _add, "check": _check, "list": _list, "remove": _remove, "set": _set}
