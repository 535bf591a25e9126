"""Runbooks: whose they are, and which node they may be run on."""

from siderite.baremetal.domain import facts
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.runbook import Runbook
from siderite.baremetal.store import RUNBOOKS
from siderite.baremetal.usecases.beside.records import By
from siderite.baremetal.usecases.beside.records import Records
from siderite.baremetal.usecases.context import Context
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.transition import Cause
from siderite.core.who import Who

RECORDS = Records(
    kind=Runbook,
    table=RUNBOOKS,
    facts=facts.RUNBOOK,
    command="runbook",
    mine="(public = 1 OR owner = ?)",
    unique={"name": "A runbook with name {0.name} already exists; choose another name."},
)


async def for_node(ctx: Context, ident: str, node: Node, who: Who) -> Runbook:
    """A runbook that the caller sees and that the node's traits approve of."""
    try:
        found = (await RECORDS.find(ctx, ident, By(who, Cause()))).value
    except NotFound as missing:
        raise Invalid(missing.sentence) from missing
    if not found.is_for(node):
        remedy = (
            f"give the node one of the runbook's traits ({', '.join(found.traits)})"
            if found.traits
            else "the runbook has no trait; give both one"
        )
        raise Invalid(f"Runbook {found.name} is not approved for node {node.uuid}: {remedy}.")
    return found
