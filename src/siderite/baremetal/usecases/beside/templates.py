"""Deploy templates: steps by the name of a trait, and which of them a deployment takes."""

from collections.abc import Sequence

from siderite.baremetal.domain import facts
from siderite.baremetal.domain.deploy_template import DeployTemplate
from siderite.baremetal.domain.node import Json
from siderite.baremetal.domain.node import Node
from siderite.baremetal.store import TEMPLATES
from siderite.baremetal.usecases.beside.records import Records
from siderite.baremetal.usecases.context import Context
from siderite.core.errors import Invalid
from siderite.core.store.table import Where

RECORDS = Records(
    kind=DeployTemplate,
    table=TEMPLATES,
    facts=facts.TEMPLATE,
    noun="deploy template",
    command="deploy template",
    unique={"name": "A deploy template with name {0.name} already exists; choose another trait."},
)


async def steps_for(ctx: Context, node: Node, asked: Sequence[Json] = ()) -> list[Json]:
    """The steps of the templates that are named after a trait which the instance asks for, and
    those that the client asks for, whose word is the last on a step. Invalid if two templates say
    different things of a step and nobody says which is meant.
    """
    by_name: dict[tuple[str, str], tuple[str | None, Json]] = {
        (step["interface"], step["step"]): (None, step) for step in asked
    }
    for template in await _matching(ctx, node):
        for step in template.steps:
            key = (step["interface"], step["step"])
            other, same = by_name.setdefault(key, (template.name, step))
            if other not in (None, template.name) and same != step:
                raise Invalid(
                    f"Node {node.uuid} asks for deploy templates {other} and {template.name}, which"
                    f" differ in step {'.'.join(key)}; take one of them out of"
                    " instance_info.traits, or give the step in deploy_steps."
                )
    return [step for _, step in by_name.values()]


async def _matching(ctx: Context, node: Node) -> Sequence[DeployTemplate]:
    wanted = node.instance_info.get("traits")
    each = wanted if isinstance(wanted, list) else ()
    # Each once: a list may say one thing more often than a query has places.
    names = sorted({trait for trait in each if isinstance(trait, str)})
    if not names:
        return []
    marks = ", ".join("?" * len(names))
    return await TEMPLATES.find(ctx.door.store, Where(f"name IN ({marks})", tuple(names)))
