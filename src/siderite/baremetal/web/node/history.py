"""The addresses of a node's history."""

from typing import TYPE_CHECKING
from typing import Any

import msgspec

from siderite.baremetal.usecases.node import history
from siderite.baremetal.usecases.node.history import Happened
from siderite.baremetal.web import forms
from siderite.baremetal.web import policy
from siderite.baremetal.web.address import ident
from siderite.baremetal.web.bodies import no_query
from siderite.core import shape
from siderite.core.check import is_whole
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import reply

if TYPE_CHECKING:
    from siderite.baremetal.web.service import BaremetalService as Service

PROJECT_SINCE = 113
STATES_SINCE = 115
_SHORT = 255
_TAKES = ("detail", "limit", "marker", "sort_dir", "sort_key")
_USUAL = {"sort_key": "created_at", "sort_dir": "asc"}
_SORT = {
    "sort_key": ("conductor", "created_at", "event", "event_type", "severity", "user", "uuid"),
    "sort_dir": ("asc", "desc"),
}


def _guard(request: Request) -> Any:
    return policy.guard("node:management:read", request.who)


class _Ask(msgspec.Struct, frozen=True):
    detail: bool
    limit: int
    marker: str | None
    sort_key: str
    sort_dir: str

    @property
    def more(self) -> str:
        """What the next page asks for beside its place."""
        said = {"sort_key": self.sort_key, "sort_dir": self.sort_dir}
        told = "".join(f"&{key}={said[key]}" for key in said if said[key] != _USUAL[key])
        return told + (f"&detail={self.detail}" if self.detail else "")


def _ask(request: Request) -> _Ask:
    query = dict(request.query)
    extra = sorted(set(query) - set(_TAKES))
    if extra:
        raise Invalid(f"Unexpected arguments: {extra[0][:80]}. History takes: {', '.join(_TAKES)}.")
    limit = query.get("limit", str(history.MOST))
    if not is_whole(limit, 9) or int(limit) < 1:
        raise Invalid(f"limit must be a whole number from 1 on, not {limit[:80]!r}.")
    detail = forms.flag("detail", query.get("detail"))
    marker = forms.uuid("marker", query.get("marker"))
    sort = {key: forms.one_of(*_SORT[key])(key, query.get(key, _USUAL[key])) for key in _USUAL}
    return _Ask(detail, int(limit), marker, **sort)


async def index(service: "Service", request: Request) -> Response:
    """GET /v1/nodes/{node}/history"""
    ask = _ask(request)
    node, found = await history.entries(service.ctx, ident(request), request.who, _guard(request))
    if ask.sort_key != "created_at":  # which they come by
        found.sort(key=lambda item: getattr(item, ask.sort_key) or "")
    if ask.sort_dir == "desc":
        found.reverse()
    if ask.marker is not None:
        places = [at for at, item in enumerate(found) if item.uuid == ask.marker]
        if not places:
            raise NotFound(f"Node {node.uuid} has no history entry {ask.marker[:80]!r}.")
        found = found[places[0] + 1 :]
    page = found[: ask.limit]
    base = f"{service.base(request)}v1/nodes/{node.uuid}/history"
    shown = [_shown(item, base, request.version, detail=ask.detail) for item in page]
    answer: dict[str, Any] = {"history": shown}
    if len(found) > ask.limit:
        answer["next"] = f"{base}?limit={ask.limit}&marker={page[-1].uuid}{ask.more}"
    return reply(answer)


async def show(service: "Service", request: Request) -> Response:
    """GET /v1/nodes/{node}/history/{entry}"""
    no_query(request)
    node, found = await history.entry(
        service.ctx, ident(request), request.params[1].lower(), request.who, _guard(request)
    )
    base = f"{service.base(request)}v1/nodes/{node.uuid}/history"
    return reply(_shown(found, base, request.version, detail=True))


def _shown(item: Happened, base: str, version: int, *, detail: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "uuid": item.uuid,
        "created_at": item.created_at,
        "severity": item.severity,
        "event": item.event if detail else item.event[:_SHORT],
        "links": [{"href": f"{base}/{item.uuid}", "rel": "self"}],
    }
    if detail:
        shown |= {"event_type": item.event_type, "conductor": item.conductor, "user": item.user}
        if version >= PROJECT_SINCE:
            shown["project"] = item.project
        if version >= STATES_SINCE:
            shown |= {
                "state": item.state,
                "target_provision_state": item.target,
                "duration_seconds": item.duration_seconds,
            }
    return shown


def form() -> shape.Json:
    """The form of an entry."""
    entries, versions = shape.both(Happened), (1, PROJECT_SINCE, STATES_SINCE)
    return shape.wire(*(_shown(one, "", v, detail=True) for one in entries for v in versions))


def page_form() -> shape.Json:
    """The form of a list, whose entries may be short."""
    short = shape.wire(*(_shown(one, "", 1, detail=False) for one in shape.both(Happened)))
    return shape.listed("history", {**form(), "required": short["required"]}, "next")
