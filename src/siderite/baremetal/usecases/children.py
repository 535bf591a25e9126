"""Steps on the children of a node: their power is changed as if somebody had asked each of them,
and the parent's work notes, in the same commit, whom it has asked.
"""

from collections.abc import Sequence

from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.power import PowerTarget
from siderite.baremetal.domain.steps import Json
from siderite.baremetal.domain.steps import job_text
from siderite.baremetal.domain.steps import on_children
from siderite.baremetal.store import NODES
from siderite.baremetal.usecases import find
from siderite.baremetal.usecases import power
from siderite.baremetal.usecases import progress
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.find import Guard
from siderite.baremetal.usecases.progress import Run
from siderite.core import work
from siderite.core.errors import Forbidden
from siderite.core.errors import Invalid
from siderite.core.store.table import Where
from siderite.core.transition import Change
from siderite.core.who import Who

MEMORY = "child_steps"


async def of(ctx: Context, parent: str, only: Sequence[str]) -> list[Node]:
    """The children of a node, or those of them that are named."""
    found = await NODES.find(ctx.door.store, Where("parent_node = ?", (parent,)))
    return [child for child in found if not only or child.uuid in only]


async def check(ctx: Context, node: Node, steps: Sequence[Json], who: Who, guard: Guard) -> None:
    """Refuse steps on children that are none, or that the caller may do nothing to."""
    for step in steps:
        only = on_children(step)
        if only is None:
            continue
        children = await of(ctx, node.uuid, only)
        missing = sorted({*only} - {child.uuid for child in children})
        if missing:
            raise Invalid(f"Node {node.uuid} has no child {missing[0]}; name only its children.")
        for child in children:
            if not find.may_see(who, child.owner, child.lessee):
                raise Forbidden(
                    f"Node {node.uuid} has children of other projects; name those that are yours"
                    " in limit_child_node_execution."
                )
            guard(child)


def asked(run: Run) -> list[str]:
    """The children that the current step has asked already."""
    memory = run.node.driver_internal_info.get(MEMORY) or {}
    return list(memory["asked"]) if memory.get("token") == run.job.token else []


async def ask(ctx: Context, run: Run, child: Node, target: PowerTarget) -> None:
    """Have a child's power changed, once; Conflict and the like if it cannot be now."""

    async def decide(change: Change, node: Node) -> Node:
        fresh = await NODES.get(ctx.door.store, child.uuid)
        if fresh is not None:
            power.begin(ctx, change, fresh, target)
        memory = {"token": run.job.token, "asked": [*asked(run), child.uuid]}
        info = {**node.driver_internal_info, MEMORY: memory}
        after = node.changed(change.now, {"driver_internal_info": info})
        change.put(NODES.swap(node, after))
        change.put(
            work.keep(
                run.held, kind=run.held.kind, job=job_text(run.job), deadline=run.held.deadline
            )
        )
        return after

    await progress.reported(ctx, run, decide)
