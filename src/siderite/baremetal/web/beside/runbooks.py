"""Runbooks on the wire."""

import re
from typing import TYPE_CHECKING
from typing import Any

from siderite.baremetal.domain.runbook import Runbook
from siderite.baremetal.usecases.beside import runbooks
from siderite.baremetal.web import forms
from siderite.baremetal.web import views
from siderite.baremetal.web.beside.records import Resource
from siderite.baremetal.web.beside.templates import steps
from siderite.baremetal.web.node.provision_body import RUNBOOK_STEP
from siderite.baremetal.web.node.provision_body import RUNBOOK_STEP_MAY
from siderite.baremetal.web.versions import PLAIN_FILTER_SINCE
from siderite.core import shape
from siderite.core.check import short
from siderite.core.errors import Forbidden
from siderite.core.errors import Invalid
from siderite.core.http import Request
from siderite.core.ids import is_uuid
from siderite.core.store.table import Where
from siderite.core.who import Who

if TYPE_CHECKING:
    from siderite.baremetal.web.service import BaremetalService as Service

TRAITS_SINCE = 112
_NAME = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._~-]{1,255}\Z")


@shape.like(shape.text(pattern="[A-Za-z0-9._~-]{1,255}"))
def _name(key: str, value: Any) -> str:
    if isinstance(value, str) and _NAME.match(value) and not is_uuid(value):
        return value
    raise Invalid(
        f"{key} must have 1 to 255 letters, digits and - . _ ~ and be no UUID, not {short(value)}."
    )


def _created(fields: dict[str, Any], version: int, who: Who) -> dict[str, Any]:
    if version < TRAITS_SINCE:
        # To clients of that time the name is the trait by which nodes approve of it.
        fields["traits"] = [forms.trait("name", fields["name"])]
    if not who.sees_all:
        if fields.get("owner") not in (None, who.project_id):
            raise Invalid("A runbook of your own has your own project as its owner.")
        if fields.get("public"):
            raise Invalid("Only administrators make a runbook public.")
        fields["owner"] = who.project_id
    elif fields.get("public"):
        if fields.get("owner") is not None:
            raise Invalid("A public runbook has no owner; leave owner out.")
    elif not who.system:
        # Made within a project it is the project's, whoever makes it: its members look for it.
        fields.setdefault("owner", who.project_id)
    return fields


def _patched(runbook: Runbook, fields: dict[str, Any], version: int, who: Who) -> dict[str, Any]:
    if not who.sees_all and {"owner", "public"} & set(fields):
        raise Forbidden("Only administrators change the owner of a runbook or make it public.")
    if fields.get("public", runbook.public):
        if fields.get("owner") is not None:
            raise Invalid("There cannot be an owner of a public runbook; make it private first.")
        fields["owner"] = None
    if version < TRAITS_SINCE and "name" in fields:
        kept = [trait for trait in runbook.traits if trait != runbook.name]
        fields["traits"] = sorted({*kept, forms.trait("name", fields["name"])})
    return fields


async def _of_project(service: "Service", request: Request, key: str, value: str) -> Where | None:
    return Where("owner = ?", (value,)) if key == "project" else None


RUNBOOKS = Resource(
    noun="runbook",
    records=runbooks.RECORDS,
    view=views.RUNBOOK,
    form=forms.Form(
        "runbook",
        views.RUNBOOK.fields.since,
        {
            "description": forms.text(255),
            "disable_ramdisk": forms.flag,
            "extra": forms.obj,
            "name": _name,
            "owner": forms.text(255),
            "public": forms.flag,
            "steps": steps(RUNBOOK_STEP, RUNBOOK_STEP_MAY),
        },
        {"uuid": forms.uuid},
        required=frozenset({"name", "steps"}),
        needed=("name", "steps"),
        objects=frozenset({"extra", "steps"}),
        masked=views.RUNBOOK.fields.masked,
    ),
    filters={**PLAIN_FILTER_SINCE, "project": 1},
    unsortable=frozenset({"extra", "steps", "traits"}),
    since=92,
    named=92,
    where=_of_project,
    created=_created,
    patched=_patched,
)
