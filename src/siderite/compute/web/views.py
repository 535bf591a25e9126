"""How servers and flavors look on the wire: stored text, cut to version and reader, with URLs."""

import re
from collections.abc import Mapping
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import msgspec

from siderite.compute.domain import flavor_wire
from siderite.compute.domain import wire
from siderite.compute.domain.discreet import discreet
from siderite.compute.domain.lines import cut
from siderite.compute.domain.wire import HOST
from siderite.compute.domain.wire import URL
from siderite.core.http import Request
from siderite.core.microversion import OURS
from siderite.core.store import Line

if TYPE_CHECKING:
    from siderite.compute.web.service import ComputeService as Service

_PROJECT = re.compile(r"v2(?:\.1)?/([0-9a-f-]{32,36})/")
_TREE = re.compile(r"/v2(?:\.1)?/")
encode = msgspec.json.Encoder().encode
HOST_STATUS = 16
_REASON = re.compile(r'"wait_reason":"(?:[^"\\]|\\.)*"')


def linked(text: str, service: "Service", request: Request) -> str:
    """The text with the public URL in its links; with the project in it if the request had it."""
    return _linked(text, service.base(request), _tree(request), project_in(request))


def _linked(text: str, base: str, tree: str, project: str | None) -> str:
    middle = "" if project is None else f"{project}/"
    if middle or tree != "v2.1":
        text = text.replace(f"{URL}v2.1/", f"{base}{tree}/{middle}")
    return text.replace(URL, base + middle)


def _tree(request: Request) -> str:
    """Whether the request came by way of v2.1, or of v2 as before microversions."""
    return "v2" if request.path.lstrip("/").startswith("v2/") else "v2.1"


def project_in(request: Request) -> str | None:
    """The project that the URL names."""
    found = _PROJECT.match(request.path.lstrip("/"))
    return None if found is None else found[1]


def address(service: "Service", request: Request, path: str) -> str:
    """The public URL of a path of this API."""
    project = project_in(request)
    middle = "" if project is None else f"{project}/"
    return f"{service.base(request)}{_tree(request)}/{middle}{path}"


def links(where: str) -> list[dict[str, str]]:
    """The links of what is at an address of this API: that, and one without the version."""
    bookmark = _TREE.sub("/", where, count=1)
    return [{"rel": "self", "href": where}, {"rel": "bookmark", "href": bookmark}]


def _with_hosts(text: str, statuses: Mapping[str, str]) -> str:
    """Every other part between marks is the name of a host."""
    parts = text.split(HOST)
    parts[1::2] = [statuses.get(name, "UNKNOWN") for name in parts[1::2]]
    return "".join(parts)


def shows_hosts(request: Request) -> bool:
    """Whether the reader is told how hosts are."""
    return request.who.is_admin and request.version >= HOST_STATUS


def server(service: "Service", request: Request, body: str, statuses: Mapping[str, str]) -> str:
    """One server as a JSON object."""
    text = cut(body, wire.chosen(request.version, admin=request.who.is_admin, alone=True))
    if HOST in text:
        text = _with_hosts(text, statuses)
    text = _discreet(text, request.version, is_admin=request.who.is_admin)
    return linked(text, service, request)


def _discreet(text: str, version: int, *, is_admin: bool) -> str:
    """Owners are not told which host a server waits for. (Nothing after the reason can look like
    it: quotes within texts are escaped.)
    """
    at = -1 if is_admin or version < OURS else text.rfind('"wait_reason":"')
    found = None if at < 0 else _REASON.match(text, at)
    if found is None:
        return text
    return f"{text[:at]}{discreet(found[0])}{text[found.end() :]}"


Reader = tuple[int, bool, str, str, str | None]
"""All that an item of a list depends on, beside the server and the hosts: the version, whether an
administrator reads, the URL, and the tree and the project in it.
"""


def reader(service: "Service", request: Request) -> Reader:
    """Who reads a list."""
    where = service.base(request), _tree(request), project_in(request)
    return request.version, request.who.is_admin, *where


def listed(body: str, who: Reader, statuses: Mapping[str, str]) -> str:
    """An item of a detailed list."""
    version, is_admin, base, tree, project = who
    text = cut(body, wire.chosen(version, admin=is_admin, alone=False))
    text = _discreet(text, version, is_admin=is_admin)
    return _linked(_with_hosts(text, statuses) if HOST in text else text, base, tree, project)


def brief(kind: str, rows: Sequence[Line]) -> str:
    """The items of a plain list: id, name and links, of rows that begin with id and name."""
    return ",".join([_brief(kind, str(row[0]), str(row[1])) for row in rows])


def _brief(kind: str, ident: str, name: str) -> str:
    return (
        f'{{"id":{encode(ident).decode()},"name":{encode(name).decode()},"links":['
        f'{{"rel":"self","href":"{URL}v2.1/{kind}/{ident}"}},'
        f'{{"rel":"bookmark","href":"{URL}{kind}/{ident}"}}]}}'
    )


def flavor(service: "Service", request: Request, body: str) -> str:
    """One flavor as a JSON object."""
    return linked(cut(body, flavor_wire.chosen(request.version)), service, request)


def following(service: "Service", request: Request, path: str, last: str) -> str:
    """The link to the next page."""
    pairs = [(name, value) for name, value in request.query if name != "marker"]
    return f"{address(service, request, path)}?{urlencode([*pairs, ('marker', last)])}"


def page(name: str, items: str, next_link: str | None) -> bytes:
    """A list, and where it goes on."""
    more = ""
    if next_link is not None:
        target = encode([{"rel": "next", "href": next_link}]).decode()
        more = f',"{name}_links":{target}'
    return f'{{"{name}":[{items}]{more}}}'.encode()
