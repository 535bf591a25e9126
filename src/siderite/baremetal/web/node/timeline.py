"""The address of a node's timeline."""

from typing import TYPE_CHECKING
from typing import Any
from urllib.parse import urlencode

from siderite.baremetal.usecases.node import timeline
from siderite.baremetal.usecases.node.timeline import Moment
from siderite.baremetal.web import forms
from siderite.baremetal.web import policy
from siderite.baremetal.web.address import ident
from siderite.core import shape
from siderite.core.check import is_whole
from siderite.core.errors import Invalid
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import reply
from siderite.core.times import iso

if TYPE_CHECKING:
    from siderite.baremetal.web.service import BaremetalService as Service

_TAKES = ("limit", "marker", "sort_dir")


async def index(service: "Service", request: Request) -> Response:
    """GET /v1/nodes/{node}/timeline"""
    asked = dict(request.query)
    for key in asked:
        if key not in _TAKES:
            raise Invalid(
                f"Unexpected arguments: {key[:80]}. A timeline takes {', '.join(_TAKES)}."
            )
    most = service.ctx.settings.max_limit
    limit = min(_number("limit", asked.get("limit")) or most, most)
    way = forms.one_of("asc", "desc")("sort_dir", asked.get("sort_dir", "asc"))
    node, found = await timeline.page(
        service.ctx,
        ident(request),
        request.who,
        policy.guard("node:management:read", request.who),
        marker=_number("marker", asked.get("marker")),
        limit=limit,
        back=way == "desc",
    )
    body: dict[str, Any] = {"timeline": [_shown(moment) for moment in found]}
    if len(found) == limit:
        more = urlencode({"limit": limit, "marker": found[-1].seq, "sort_dir": way})
        body["next"] = f"{service.base(request)}v1/nodes/{node.uuid}/timeline?{more}"
    return reply(body)


def _number(key: str, value: str | None) -> int | None:
    if value is None:
        return None
    if not is_whole(value):
        raise Invalid(f"{key} must be a whole number that is not negative, not {value[:40]!r}.")
    return int(value)


def _shown(moment: Moment) -> dict[str, Any]:
    line = moment.line
    return {
        "number": moment.seq,
        "time": iso(moment.at),
        "what": line.what,
        "status": line.status,
        "from": line.before,
        "to": line.after,
        "cause": line.cause,
        "reason": line.reason,
        "changed": [
            {"field": one.field, "from": one.before, "to": one.after} for one in line.changed
        ],
        "user": moment.user,
        "project": moment.project,
        "request_id": moment.request_id,
    }


def form() -> shape.Json:
    """The form of a part of a timeline."""
    return shape.listed("timeline", shape.wire(*map(_shown, shape.both(Moment))), "next")
