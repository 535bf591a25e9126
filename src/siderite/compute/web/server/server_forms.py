"""The forms of servers on the wire, from the lines that are stored of them (`domain.wire`)."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from siderite.compute.domain import wire
from siderite.compute.domain.lines import cut
from siderite.compute.domain.server import Server
from siderite.compute.domain.server_machine import V
from siderite.compute.web import views
from siderite.compute.web.versions import RANGE
from siderite.core import shape
from siderite.core.json_body import parse_json


def made(server: Server, where: str, password: str) -> dict[str, Any]:
    """What is told of a new server."""
    return {
        "id": server.uuid,
        "links": views.links(where),
        "OS-DCF:diskConfig": server.disk_config,
        "security_groups": [
            {"name": name} for name in server.request.security_groups or ["default"]
        ],
        "adminPass": password,
    }


def made_form() -> shape.Json:
    """The form of the answer to a create request: a server, or the number of several."""
    server = shape.seen(*(made(one, "", "") for one in shape.both(Server)))
    return shape.record({"server": server, "reservation_id": shape.text()})


def _shown() -> Iterator[Any]:
    """Made-up servers as they are shown, to everybody, wherever a version differs from others."""
    turns = {line.since for line in wire.LINES} | {line.until for line in wire.LINES}
    versions = sorted(turns & set(RANGE.every))
    texts = [wire.render(server) for server in shape.both(Server)]
    texts += [wire.render(shape.made_up(Server, vm_state=state, task_state=None)) for state in V]
    for text in {text.replace(wire.URL, "").replace(wire.HOST, "") for text in texts}:
        for version in versions:
            for admin in (True, False):
                chosen = wire.chosen(version, admin=admin, alone=True)
                yield parse_json(cut(text, chosen).encode())


@cache
def _form() -> shape.Json:
    return shape.seen(*_shown())


def one() -> shape.Json:
    """The form of a server."""
    return shape.under("server", _form())


def changed() -> shape.Json:
    """The form of a server that was changed, of which old versions show less."""
    return shape.under("server", shape.whole(_form()))


def page() -> shape.Json:
    """The form of a list, in short or whole."""
    return shape.listed("servers", shape.whole(_form()), "servers_links")
