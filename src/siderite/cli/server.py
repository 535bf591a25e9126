"""`siderite server …`: servers, over HTTP."""

import argparse
import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from siderite.cli import show
from siderite.cli.cloud import Cloud
from siderite.cli.cloud import Missing
from siderite.cli.cloud import Refused
from siderite.cli.pairs import pairs
from siderite.cli.projects import project
from siderite.cli.wait import Sight
from siderite.cli.wait import each
from siderite.cli.wait import until_over

_TASK = "OS-EXT-STS:task_state"
_HOST = "OS-EXT-SRV-ATTR:host"
UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\Z", re.I)
_COLUMNS: tuple[show.Column, ...] = (
    ("name", lambda server: server["name"]),
    ("id", lambda server: server["id"]),
    ("status", lambda server: server["status"]),
    ("task", lambda server: server[_TASK]),
    ("flavor", lambda server: server["flavor"]["original_name"]),
    ("host", lambda server: server.get(_HOST)),
    ("why", lambda server: server.get("wait_reason") or (server.get("fault") or {}).get("message")),
)
_LONG: tuple[show.Column, ...] = (
    ("zone", lambda server: server.get("OS-EXT-AZ:availability_zone") or None),
    ("image", lambda server: (server["image"] or {}).get("id")),
    ("addresses", lambda server: ", ".join(_addresses(server)) or None),
    ("project", lambda server: server["tenant_id"]),
    ("created", lambda server: server["created"]),
)


def _addresses(server: show.Record) -> list[str]:
    return [one["addr"] for each in server["addresses"].values() for one in each]


@dataclass(frozen=True, slots=True)
class Verb:
    """The action's key in the API, and the states that it ends in."""

    key: str
    ends: tuple[str, ...]
    takes_body: bool = False


VERBS = {
    "start": Verb("os-start", ("ACTIVE",)),
    "stop": Verb("os-stop", ("SHUTOFF",)),
    "reboot": Verb("reboot", ("ACTIVE",), takes_body=True),
    "pause": Verb("pause", ("PAUSED",)),
    "unpause": Verb("unpause", ("ACTIVE",)),
    "suspend": Verb("suspend", ("SUSPENDED",)),
    "resume": Verb("resume", ("ACTIVE",)),
    "rescue": Verb("rescue", ("RESCUE",), takes_body=True),
    "unrescue": Verb("unrescue", ("ACTIVE",)),
    "resize": Verb("resize", ("VERIFY_RESIZE",), takes_body=True),
    "confirm": Verb("confirmResize", ("ACTIVE", "SHUTOFF")),
    "revert": Verb("revertResize", ("ACTIVE", "SHUTOFF")),
    "shelve": Verb("shelve", ("SHELVED", "SHELVED_OFFLOADED")),
    "unshelve": Verb("unshelve", ("ACTIVE",)),
    "migrate": Verb("migrate", ("VERIFY_RESIZE",)),
}


def run(said: argparse.Namespace) -> int:
    """Do what the word says."""
    words = {"list": _list, "show": _show, "create": _create, "delete": _delete}
    return words.get(said.verb, _act)(Cloud(said.data), said)


def find(cloud: Cloud, name: str) -> str:
    """The id of a server, by its name or id."""
    if UUID.match(name):
        return name
    query = urlencode({"name": f"^{re.escape(name)}$", "limit": 1000})
    found = cloud.compute("GET", f"/servers?{query}")["servers"]
    hint = "`siderite server list` shows your project's; one of another project goes by its UUID"
    return _the_one("server", name, [one["id"] for one in found if one["name"] == name], hint)


def _there_are(known: Sequence[str], remedy: str) -> str:
    return f"there are {', '.join(known[:20])}" if known else f"there are none yet: {remedy}"


def _the_one(what: str, name: str, ids: list[str], hint: str) -> str:
    if not ids:
        raise Missing(f"there is no {what} {name!r}; {hint}.")
    if len(ids) > 1:
        raise Refused(f"{len(ids)} are called {name!r}: name one by its id: {', '.join(ids[:5])}.")
    return ids[0]


def flavor(cloud: Cloud, name: str) -> str:
    """The id of a flavor, by its name or id."""
    known = pages(cloud, "flavors", "/flavors")
    if any(one["id"] == name for one in known):
        return name
    ids = [one["id"] for one in known if one["name"] == name]
    there = _there_are([one["name"] for one in known], "`openstack flavor create` makes one")
    return _the_one("flavor", name, ids, there)


def image(cloud: Cloud, name: str) -> str:
    """The id of an image, by its name or id."""
    if UUID.match(name):
        return name
    found, _ = cloud.ask("GET", f"/image/v2/images?{urlencode({'name': name})}")
    known = [] if found["images"] else cloud.ask("GET", "/image/v2/images")[0]["images"]
    names = [one["name"] or one["id"] for one in known]
    there = _there_are(names, "`siderite image import` brings one in")
    return _the_one("image", name, [one["id"] for one in found["images"]], there)


def look(cloud: Cloud, ident: str, ends: tuple[str, ...]) -> Sight:
    """How far a server is on its way."""
    server = cloud.compute("GET", f"/servers/{ident}")["server"]
    status, task = server["status"], server[_TASK]
    if task is not None:
        return Sight(f"{status} ({task})")
    if status in ends:
        return Sight(status, is_over=True)
    if status == "PENDING":
        return Sight(status)  # somebody may make room
    fault = server.get("fault") or {}
    return Sight(status, is_over=True, problem=fault.get("message") or f"it is {status}")


def _list(cloud: Cloud, said: argparse.Namespace) -> int:
    wanted = {
        "all_tenants": "1" if said.all_projects or said.project else None,
        "project_id": said.project and project(cloud, said.project),
        "status": said.status, "name": said.name, "ip": said.ip, "host": said.host,
    }  # fmt: skip
    query = {name: value for name, value in wanted.items() if value}
    columns = (*_COLUMNS[:-1], *_LONG, _COLUMNS[-1]) if said.long else _COLUMNS
    servers = every(cloud, {**query, "limit": 1000})
    if said.host and any(_HOST not in server for server in servers):
        # As in Nova, the filter was left out: these are servers of any host.
        raise Refused("only administrators see which host a server is on; leave out --host.")
    show.rows(servers, columns, said.output, name="id")
    return 0


def every(cloud: Cloud, query: dict[str, Any]) -> list[dict[str, Any]]:
    """All servers that match, page after page."""
    return pages(cloud, "servers", f"/servers/detail?{urlencode(query)}")


def pages(cloud: Cloud, what: str, path: str) -> list[dict[str, Any]]:
    """A list of the compute API to its end."""
    found: list[dict[str, Any]] = []
    rest = path
    while rest:
        page = cloud.compute("GET", rest)
        found += page[what]
        links = {link["rel"]: link["href"] for link in page.get(f"{what}_links", ())}
        more = links.get("next", "").partition("?")[2]
        rest = f"{path.partition('?')[0]}?{more}" if more else ""
    return found


def _show(cloud: Cloud, said: argparse.Namespace) -> int:
    found, code = each(
        said.names, lambda name: cloud.compute("GET", f"/servers/{find(cloud, name)}")["server"]
    )
    if found:
        show.details([server for _, server in found], said.output, name="id")
    return code


def _create(cloud: Cloud, said: argparse.Namespace) -> int:
    body = {
        "flavorRef": flavor(cloud, said.flavor),
        "imageRef": image(cloud, said.image),
        "networks": _networks(cloud, said.network),
        "metadata": pairs(said.property, "--property"),
        "key_name": said.key_name,
        "user_data": _file(said.user_data),
        "availability_zone": said.zone,
    }
    body = {name: value for name, value in body.items() if value is not None}

    def ask(name: str) -> str:
        made = cloud.compute("POST", "/servers", {"server": {**body, "name": name}})
        print(made["server"]["id"])
        return str(made["server"]["id"])

    return _waited(cloud, said, *each(said.names, ask), ends=("ACTIVE",))


def _networks(cloud: Cloud, names: Sequence[str] | None) -> str | list[dict[str, str]]:
    """What the API takes: words, or the ids of networks."""
    if not names:
        return "auto"
    if list(names) == ["none"]:
        return "none"
    known = cloud.ask("GET", "/network/v2.0/networks")[0]["networks"]
    there = _there_are([one["name"] for one in known], "the option `networks` makes some")
    ids = {name: [one["id"] for one in known if name in (one["id"], one["name"])] for name in names}
    return [{"uuid": _the_one("network", name, ids[name], there)} for name in names]


def _file(path: str | None) -> str | None:
    try:
        return path and base64.b64encode(Path(path).read_bytes()).decode()
    except OSError as why:
        raise Refused(f"cannot read {path}: {why.strerror}.") from why


def _act(cloud: Cloud, said: argparse.Namespace) -> int:
    verb = VERBS[said.verb]
    body = {verb.key: _value(cloud, said, verb)}

    def ask(name: str) -> str:
        ident = find(cloud, name)
        cloud.compute("POST", f"/servers/{ident}/action", body)
        return ident

    return _waited(cloud, said, *each(said.names, ask), ends=verb.ends)


def _value(cloud: Cloud, said: argparse.Namespace, verb: Verb) -> dict[str, str] | None:
    if said.verb == "reboot":
        return {"type": "HARD" if said.hard else "SOFT"}
    value = {}
    if said.verb == "resize":
        value["flavorRef"] = flavor(cloud, said.flavor)
    if getattr(said, "host", None):
        value["host"] = said.host
    if getattr(said, "hard", False):
        value["shutdown_type"] = "HARD"
    return value if value or verb.takes_body else None


def _waited(
    cloud: Cloud,
    said: argparse.Namespace,
    asked: list[tuple[str, Any]],
    code: int,
    ends: tuple[str, ...],
) -> int:
    if not said.wait or not asked:
        return code
    late = until_over(asked, lambda ident: look(cloud, ident, ends), said.timeout)
    return code or late


def _delete(cloud: Cloud, said: argparse.Namespace) -> int:
    def ask(name: str) -> str:
        ident = find(cloud, name)
        cloud.compute("DELETE", f"/servers/{ident}")
        return ident

    asked, code = each(said.names, ask)
    if not said.wait or not asked:
        return code
    late = until_over(asked, lambda ident: gone(cloud, ident), said.timeout)
    return code or late


def gone(cloud: Cloud, ident: str) -> Sight:
    """Whether a server is no more, or may only be restored (reclaim_interval_s)."""
    try:
        server = cloud.compute("GET", f"/servers/{ident}")["server"]
    except Missing:
        return Sight("gone", is_over=True)
    is_stuck = server["status"] == "ERROR" and server[_TASK] is None
    is_over = is_stuck or server["status"] == "SOFT_DELETED"
    return Sight(server["status"], is_over, "it could not be deleted" if is_stuck else None)
