"""`siderite host …`: the hosts that servers run on, over HTTP."""

import argparse
import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import quote
from urllib.parse import urlencode

from siderite.cli import show
from siderite.cli.cloud import Cloud
from siderite.cli.cloud import Missing
from siderite.cli.pairs import pairs
from siderite.cli.server import pages

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
    columns = _COLUMNS
    if said.long:
        room, down = _room(cloud), _down(cloud)
        hosts = [
            {**host, "room": room.get(host["name"]), "down_reason": down.get(host["name"])}
            for host in hosts
        ]
        columns = (*_COLUMNS[:-1], *_LONG, _COLUMNS[-1])
    show.rows(hosts, columns, said.output, name="name")
    return 0


def _room(cloud: Cloud) -> dict[str, Any]:
    """How much of each host is used; a node of bare metal is used whole, or not at all."""
    found = pages(cloud, "hypervisors", "/os-hypervisors/detail?limit=1000")
    virtual = [one for one in found if one["hypervisor_type"] != "ironic"]
    return {one["service"]["host"]: one["room"] for one in virtual}


def _down(cloud: Cloud) -> dict[str, str | None]:
    """Why hosts do not answer."""
    found = cloud.compute("GET", "/os-services")["services"]
    return {one["host"]: one["down_reason"] for one in found}


def _switch(cloud: Cloud, said: argparse.Namespace) -> int:
    """Whether new servers may come."""
    found = cloud.compute("GET", f"/os-services?{urlencode({'host': said.name})}")["services"]
    if not found:
        raise Missing(f"there is no host {said.name!r}; `siderite host list` shows them.")
    body = {"status": f"{said.verb}d"}
    if getattr(said, "reason", None):
        body["disabled_reason"] = said.reason
    cloud.compute("PUT", f"/os-services/{found[0]['id']}", body)
    print(f"{said.name}: {'no new servers go' if said.verb == 'disable' else 'servers go'} there.")
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
    ("uri", lambda host: host["uri"] or None),
)


def _used(what: str) -> Callable[[show.Record], str | None]:
    def of(host: show.Record) -> str | None:
        return host["room"] and f"{host['room'][what]['used']}/{host['room'][what]['limit']}"

    return of


_WHY = ("down_reason", "disabled_reason")
_LONG: tuple[show.Column, ...] = (
    ("vcpus", _used("vcpus")),
    ("memory, mib", _used("ram_mib")),
    ("disk, gib", _used("disk_gib")),
    ("why", lambda host: "; ".join(filter(None, map(host.get, _WHY))) or None),
)
_VERBS = {
    "add": _add, "check": _check, "list": _list, "remove": _remove, "set": _set,
    "enable": _switch, "disable": _switch,
}  # fmt: skip
