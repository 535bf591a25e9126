"""Hooks on the wire, and the answers of the outside services that they are for."""

import re
from typing import TYPE_CHECKING
from typing import Any

from siderite.baremetal.domain.hook import BEGINS
from siderite.baremetal.domain.hook import ENDS
from siderite.baremetal.domain.hook import FAIL
from siderite.baremetal.domain.hook import PROCEED
from siderite.baremetal.domain.hook import STATES
from siderite.baremetal.domain.hook import Hook
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.steps import Hold
from siderite.baremetal.domain.steps import Step
from siderite.baremetal.usecases.life import hold
from siderite.baremetal.usecases.life import hooks
from siderite.baremetal.usecases.life.hold import Answer
from siderite.baremetal.web import forms
from siderite.baremetal.web import policy
from siderite.baremetal.web import views
from siderite.baremetal.web.address import ident
from siderite.baremetal.web.beside.records import Resource
from siderite.baremetal.web.bodies import no_query
from siderite.baremetal.web.versions import PLAIN_FILTER_SINCE
from siderite.core import shape
from siderite.core.check import or_null
from siderite.core.check import short
from siderite.core.errors import Invalid
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import reply
from siderite.core.ids import is_uuid
from siderite.core.microversion import OURS
from siderite.core.times import iso
from siderite.core.who import Who

if TYPE_CHECKING:
    from siderite.baremetal.web.service import BaremetalService as Service

LONGEST_S = 30 * 86400
_NAME = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._~-]{1,255}\Z")
_STEP = re.compile(r"[a-z][a-z0-9_]*\.[A-Za-z0-9_-]+\Z")
_SELECTORS = ("uuid", "owner", "conductor_group", "resource_class")
_WORDS = (PROCEED, FAIL, "extend")


@shape.like(shape.text(pattern="[A-Za-z0-9._~-]{1,255}"))
def _name(key: str, value: Any) -> str:
    if isinstance(value, str) and _NAME.match(value) and not is_uuid(value):
        return value
    raise Invalid(f"{key} must have 1 to 255 letters, digits and - . _ ~ and be no UUID.")


@shape.like(shape.text(pattern="[a-z][a-z0-9_]*[.][A-Za-z0-9_-]+"))
def _step(key: str, value: Any) -> str:
    if isinstance(value, str) and _STEP.match(value):
        return value
    raise Invalid(f"{key} must be a step such as deploy.write_image, not {short(value)}.")


@shape.like(shape.or_null(shape.record(dict.fromkeys(("traits", *_SELECTORS), shape.ANYTHING))))
def _selector(key: str, value: Any) -> dict[str, Any]:
    selector = forms.obj(key, value)
    known = ("traits", *_SELECTORS)
    for name in selector:
        if name not in known:
            raise Invalid(f"{key} has {', '.join(known)} only, not {short(name)}.")
    chosen = {
        name: forms.text(255, null=False)(f"{key}.{name}", selector[name])
        for name in _SELECTORS
        if name in selector
    }
    if "uuid" in chosen:
        chosen["uuid"] = str(forms.uuid(f"{key}.uuid", chosen["uuid"]))
    if "conductor_group" in chosen:
        chosen["conductor_group"] = chosen["conductor_group"].lower()  # as nodes have it
    if "traits" in selector:
        traits = forms.list_of(forms.trait, most=50)
        chosen["traits"] = traits(f"{key}.traits", selector["traits"])
    return chosen


def _placed(state: str | None, step: str | None) -> None:
    if state is None and step is None:
        raise Invalid(
            "Schema error for hook: it needs a state or a step to be on. Work stops before its"
            f" first step ({', '.join(BEGINS)}), before a step, or before what it leads to"
            f" ({', '.join(ENDS)})."
        )
    if step is not None and state not in (None, *BEGINS):
        raise Invalid(f"No step is run in {state}; steps are run in {', '.join(BEGINS)}.")


def _created(fields: dict[str, Any], version: int, who: Who) -> dict[str, Any]:
    _placed(fields.get("state"), fields.get("step"))
    return fields


def _patched(hook: Hook, fields: dict[str, Any], version: int, who: Who) -> dict[str, Any]:
    _placed(fields.get("state", hook.state), fields.get("step", hook.step))
    return fields


HOOKS = Resource(
    noun="hook",
    records=hooks.RECORDS,
    view=views.HOOK,
    form=forms.Form(
        "hook",
        views.HOOK.fields.since,
        {
            "deadline_s": forms.whole(1, LONGEST_S),
            "description": forms.text(255),
            "enabled": forms.flag_or_true,
            "machine": forms.one_of("node"),
            "name": _name,
            "on_deadline": forms.one_of(PROCEED, FAIL),
            "selector": _selector,
            "state": or_null(forms.one_of(*STATES)),
            "step": or_null(_step),
        },
        {"uuid": forms.uuid},
        required=frozenset({"name", "deadline_s", "on_deadline", "machine"}),
        needed=("name",),
        objects=frozenset({"selector"}),
    ),
    filters=PLAIN_FILTER_SINCE,
    unsortable=frozenset({"selector"}),
    since=OURS,
    named=OURS,
    whole=True,
    created=_created,
    patched=_patched,
)


async def show_hold(service: "Service", request: Request) -> Response:
    """GET /v1/nodes/{node}/hold"""
    no_query(request)
    held = await hold.show(service.ctx, ident(request), request.who)
    return reply(_held(held.stop, held.node, held.job.current))


def _held(stop: Hold, node: Node, step: Step | None) -> dict[str, Any]:
    return {
        "hold": stop.id,
        "hook": stop.hook,
        "hook_name": stop.name,
        "node": node.uuid,
        "state": node.provision_state,
        "step": None if step is None else step.shown(),
        "since": iso(stop.since),
        "deadline": iso(stop.until),
        "on_deadline": stop.on_deadline,
    }


def hold_form() -> shape.Json:
    """The form of a stop at a hook."""
    stop, node = shape.made_up(Hold), shape.made_up(Node)
    return shape.wire(*(_held(stop, node, step) for step in (*shape.both(Step), None)))


async def answer(service: "Service", request: Request) -> Response:
    """PUT /v1/nodes/{node}/hold"""
    no_query(request)
    said = _answer(await request.json())
    await hold.answer(
        service.ctx,
        ident(request),
        said,
        who=request.who,
        cause=service.cause(request),
        guard=policy.guard("hold:answer", request.who),
    )
    location = f"{service.base(request)}v1/nodes/{ident(request)}/states"
    return Response(b"", 202, [(b"location", location.encode())])


def answer_form() -> shape.Json:
    """The form of an answer."""
    fields = {
        "answer": shape.words(_WORDS),
        "reason": shape.or_null(shape.text(0, 1000)),
        "seconds": {"type": "integer", "minimum": 1, "maximum": LONGEST_S},
        "hold": shape.or_null(shape.UUID),
    }
    return shape.record(fields, ["answer"])


def _answer(document: Any) -> Answer:
    if not isinstance(document, dict) or document.get("answer") not in _WORDS:
        raise Invalid(
            'The body must be an object such as {"answer": "proceed"}; the answers are'
            f" {', '.join(_WORDS)}."
        )
    extra = sorted(set(document) - {"answer", "reason", "seconds", "hold"})
    if extra:
        raise Invalid(
            f"Unexpected arguments: {str(extra[0])[:80]}. An answer takes: answer, reason, seconds,"
            " hold."
        )
    word = document["answer"]
    reason = forms.text(1000)("reason", document.get("reason"))
    if word == FAIL and not reason:
        raise Invalid('fail needs a reason, such as {"answer": "fail", "reason": "disk is bad"}.')
    seconds = 0
    if word == "extend":
        seconds = forms.whole(1, LONGEST_S)("seconds", document.get("seconds"))
    elif "seconds" in document:
        raise Invalid("seconds are for extend only.")
    return Answer(word, reason, seconds, forms.uuid("hold", document.get("hold")))
