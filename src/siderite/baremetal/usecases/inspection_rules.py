"""Inspection rules: a sensitive one stays so."""

from typing import Any

from siderite.baremetal.domain import facts
from siderite.baremetal.domain.inspection_rule import InspectionRule
from siderite.baremetal.store import INSPECTION_RULES
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.records import Found
from siderite.baremetal.usecases.records import Records
from siderite.core.errors import Invalid
from siderite.core.errors import SideriteError
from siderite.core.transition import Change


async def _stays_sensitive(
    ctx: Context, change: Change, found: Found[InspectionRule], changes: dict[str, Any]
) -> SideriteError | None:
    if found.value.sensitive and changes.get("sensitive") is False:
        raise Invalid(
            f"Inspection rule {found.value.uuid} is sensitive and stays so, lest what it does is"
            " seen; create another one in its place."
        )
    return None


RECORDS = Records(
    kind=InspectionRule,
    table=INSPECTION_RULES,
    facts=facts.INSPECTION_RULE,
    noun="inspection rule",
    command="inspection rule",
    unique={},
    may_update=_stays_sensitive,
)
