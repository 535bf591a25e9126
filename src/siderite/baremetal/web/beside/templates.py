"""Deploy templates on the wire."""

from collections.abc import Sequence
from typing import Any

from siderite.baremetal.usecases.beside import templates
from siderite.baremetal.web import forms
from siderite.baremetal.web import views
from siderite.baremetal.web.beside.records import Resource
from siderite.baremetal.web.node import provision_body
from siderite.baremetal.web.versions import PLAIN_FILTER_SINCE
from siderite.core import shape
from siderite.core.check import Check
from siderite.core.errors import Invalid

_MOST_STEPS = 255


def steps(needs: Sequence[str], known: Sequence[str]) -> Check:
    """A list of steps, each at most once."""
    form = {"type": "array", "items": provision_body.step_form(needs, known)}

    @shape.like({**form, "minItems": 1, "maxItems": _MOST_STEPS})
    def check(name: str, value: Any) -> list[Any]:
        if not isinstance(value, list) or not 0 < len(value) <= _MOST_STEPS:
            raise Invalid(f"{name} must be a list of 1 to {_MOST_STEPS} steps.")
        found = [provision_body.step(name, item, needs, known, is_kept=True) for item in value]
        provision_body.check_once(name, found)
        return found

    return check


_DEPLOY = provision_body.DEPLOY_STEP
TEMPLATES = Resource(
    noun="deploy_template",
    records=templates.RECORDS,
    view=views.TEMPLATE,
    form=forms.Form(
        "deploy template",
        views.TEMPLATE.fields.since,
        {"name": forms.trait, "steps": steps(_DEPLOY, _DEPLOY), "extra": forms.obj},
        {"uuid": forms.uuid},
        required=frozenset({"name", "steps"}),
        needed=("name", "steps"),
        objects=frozenset({"extra", "steps"}),
        masked=views.TEMPLATE.fields.masked,
    ),
    filters=PLAIN_FILTER_SINCE,
    unsortable=frozenset({"extra", "steps"}),
    since=55,
    named=55,
)
