"""`siderite export`: all that the service knows, as JSON lines, over HTTP: the way out.

Every line is an object with its `kind` and its `value`, as the newest version of the API shows it.
The event log comes last: what changes while others are read is told there. The very last line says
how many there are of each kind, so that a file that was cut off shows.
"""

import argparse
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from typing import TextIO
from urllib.parse import parse_qsl
from urllib.parse import urlencode
from urllib.parse import urlsplit

from siderite.cli.cloud import Away
from siderite.cli.cloud import Cloud
from siderite.cli.cloud import Forbidden
from siderite.cli.cloud import Gone
from siderite.cli.cloud import Missing
from siderite.cli.cloud import Refused

_NEWEST = {
    "/baremetal": {"X-OpenStack-Ironic-API-Version": "1.900"},
    "/compute": {"OpenStack-API-Version": "compute 2.901"},
}
_PAGE = 1000


@dataclass(frozen=True, slots=True)
class _Source:
    """Where all of a kind are listed, and the key of the answer that holds them."""

    kind: str
    path: str
    key: str
    has_links: bool = True
    """Else its next page is asked for by how many there were so far."""


_SOURCES = (
    _Source("project", "/identity/v3/projects", "projects"),
    _Source("user", "/identity/v3/users", "users"),
    _Source("role", "/identity/v3/roles", "roles"),
    _Source("role_assignment", "/identity/v3/role_assignments", "role_assignments"),
    _Source("image", "/image/v2/images?limit=1000", "images"),
    _Source("image", "/image/v2/images?limit=1000&os_hidden=true", "images"),
    _Source("chassis", "/baremetal/v1/chassis/detail", "chassis"),
    _Source("node", "/baremetal/v1/nodes/detail", "nodes"),
    _Source("port", "/baremetal/v1/ports/detail", "ports"),
    _Source("portgroup", "/baremetal/v1/portgroups/detail", "portgroups"),
    _Source("volume_connector", "/baremetal/v1/volume/connectors?detail=True", "connectors"),
    _Source("volume_target", "/baremetal/v1/volume/targets?detail=True", "targets"),
    _Source("allocation", "/baremetal/v1/allocations", "allocations"),
    _Source("deploy_template", "/baremetal/v1/deploy_templates?detail=True", "deploy_templates"),
    _Source("runbook", "/baremetal/v1/runbooks?detail=True", "runbooks"),
    _Source("inspection_rule", "/baremetal/v1/inspection_rules?detail=True", "inspection_rules"),
    _Source("hook", "/baremetal/v1/hooks", "hooks"),
    _Source("flavor", "/compute/v2.1/flavors/detail?is_public=None", "flavors"),
    _Source("keypair", "/compute/v2.1/os-keypairs", "keypairs"),
    _Source("aggregate", "/compute/v2.1/os-aggregates", "aggregates"),
    _Source("host", "/compute/v2.1/hosts", "hosts"),
    _Source("hypervisor", "/compute/v2.1/os-hypervisors/detail", "hypervisors"),
    _Source(
        "server_group",
        "/compute/v2.1/os-server-groups?all_projects=True",
        "server_groups",
        has_links=False,
    ),
    _Source("server", "/compute/v2.1/servers/detail?all_tenants=True", "servers"),
    _Source("migration", "/compute/v2.1/os-migrations", "migrations"),
    _Source("webhook", "/events/v1/webhooks", "webhooks"),
)


def run(said: argparse.Namespace) -> int:
    """Write all there is; 1 if there is something that the caller may not see."""
    cloud = Cloud(said.data)
    with _file(said.file) as file:
        export = _Export(cloud, file)
        export.write(events=not said.no_events)
    if export.hidden:
        print(
            f"siderite: not shown to {cloud.user}, and so left out: {', '.join(export.hidden)};"
            " be an administrator to have all of it.",
            file=sys.stderr,
        )
        return Refused.exit_code
    return 0


class _Export:
    """One export: what was written, and what was not."""

    def __init__(self, cloud: Cloud, file: TextIO) -> None:
        self._cloud = cloud
        self._file = file
        self._counts: dict[str, int] = {}
        self.hidden: list[str] = []

    def write(self, *, events: bool) -> None:
        """Kind after kind, the log, and how many there were."""
        for source in _SOURCES:
            try:
                for value in self._values(source):
                    self._line(source.kind, value)
            except Forbidden:
                self.hidden.append(source.kind)
            except Missing:
                if source.kind in self._counts:
                    raise  # not all of them were read
                continue  # another's service, named in the catalogue in place of ours
        if events:
            for event in self._events():
                self._line("event", event)
        self._line("end", dict(self._counts))
        self._show("")

    def _line(self, kind: str, value: Any) -> None:
        text = json.dumps({"kind": kind, "value": value}, ensure_ascii=False, separators=(",", ":"))
        self._file.write(f"{text}\n")
        self._counts[kind] = self._counts.get(kind, 0) + 1
        if self._counts[kind] % _PAGE == 1:
            self._show(f"{kind} {self._counts[kind]}")

    def _values(self, source: _Source) -> Iterator[Any]:
        """Page after page; if what a page comes after is deleted meanwhile, after the one before
        it.
        """
        path, _, asked = source.path.partition("?")
        query, before = dict(parse_qsl(asked)), list[str]()
        headers = _NEWEST.get("/" + path.split("/")[1])
        while True:
            try:
                page, _ = self._cloud.ask("GET", f"{path}?{urlencode(query)}", None, headers)
            except (Away, Forbidden):
                raise
            except Refused:
                if not before:
                    raise
                query["marker"] = before.pop()
                continue
            found = [one.get("keypair", one) for one in page[source.key]]  # it is wrapped there
            yield from found
            after = page.get("next") or _link(page.get(f"{source.key}_links", ()))
            if after:
                query = dict(parse_qsl(urlsplit(after).query))
                before = [_ident(one) for one in found[:-1]]
            elif source.has_links or not found:
                return
            else:
                query["offset"] = str(int(query.get("offset", 0)) + len(found))

    def _events(self) -> Iterator[Any]:
        """Page after page; if what comes next is pruned meanwhile, from the oldest that is left."""
        last = 0
        while True:
            path = f"/events/v1/events?after={last}&limit={_PAGE}"
            try:
                page, _ = self._cloud.ask("GET", path)
            except Gone:
                last = 0  # all that is left came after the page before
                continue
            yield from page["events"]
            if page["next"] == last:
                return
            last = page["next"]

    def _show(self, words: str) -> None:
        """How far it is, while somebody looks."""
        if sys.stderr.isatty() and self._file is not sys.stdout:
            print(f"\r\x1b[K{words}", end="", file=sys.stderr, flush=True)


def _ident(one: Any) -> str:
    """What a page comes after."""
    return str(one.get("uuid") or one.get("id") or one["name"])


def _link(links: Any) -> str:
    return next((str(one["href"]) for one in links if one["rel"] == "next"), "")


@contextlib.contextmanager
def _file(name: str) -> Iterator[TextIO]:
    """Standard output for `-`; else a file that has its name only when all is in it. Two exports at
    once do not meet in it.
    """
    if name == "-":
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(encoding="utf-8")  # JSON is, whatever the terminal shows
        yield sys.stdout
        return
    path, part = Path(name), None
    try:
        if path.exists() and not path.is_file():
            raise Refused(f"{path} is not a plain file; name one, or - for standard output.")
        path = path.resolve()
        handle, made = tempfile.mkstemp(dir=path.parent, prefix=".siderite-export-")
        part = Path(made)  # readable by its owner alone
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            yield file
        part.replace(path)
    except BaseException as why:
        if part is not None:
            part.unlink(missing_ok=True)
        if isinstance(why, OSError):
            raise Refused(f"cannot write {path}: {why.strerror}.") from why
        raise
