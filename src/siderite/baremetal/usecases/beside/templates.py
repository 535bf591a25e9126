"""Deploy templates: steps by the name of a trait, and which of them a deployment takes."""

from siderite.baremetal.domain import facts
from siderite.baremetal.domain.deploy_template import DeployTemplate
from siderite.baremetal.domain.node import Json
from siderite.baremetal.domain.node import Node
from siderite.baremetal.store import TEMPLATES
from siderite.baremetal.usecases.beside.records import Records
from siderite.baremetal.usecases.context import Context
from siderite.core.store.table import Where

RECORDS = Records(
    kind=DeployTemplate,
    table=TEMPLATES,
    facts=facts.TEMPLATE,
    noun="deploy template",
    command="deploy template",
    unique={"name": "A deploy template with name {0.name} already exists; choose another trait."},
)


async def steps_for(ctx: Context, node: Node) -> list[Json]:
    """The steps of the templates that are named after a trait which the instance asks for."""
    wanted = node.instance_info.get("traits")
    each = wanted if isinstance(wanted, list) else ()
    # Each once: a list may say one thing more often than a query has places.
    names = sorted({trait for trait in each if isinstance(trait, str)})
    if not names:
        return []
    marks = ", ".join("?" * len(names))
    found = await TEMPLATES.find(ctx.door.store, Where(f"name IN ({marks})", tuple(names)))
    return [step for template in found for step in template.steps]
