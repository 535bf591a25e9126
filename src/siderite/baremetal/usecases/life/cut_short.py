"""What is under way on a node that goes, or whose instance does: it never ends, and says so.

Whoever counts starts against ends and errors finds none left over.
"""

import msgspec

from siderite.baremetal.domain import facts
from siderite.baremetal.domain import hook_facts
from siderite.baremetal.domain import watch_facts
from siderite.baremetal.domain.hook_facts import By
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.node_machine import NODE
from siderite.baremetal.domain.node_machine import Event
from siderite.baremetal.domain.steps import job_of
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.machine import console
from siderite.baremetal.usecases.machine.console import ConsoleJob
from siderite.baremetal.usecases.node import children
from siderite.baremetal.usecases.node.children import ChildJob
from siderite.baremetal.usecases.power import power
from siderite.baremetal.usecases.power.power import PowerJob
from siderite.core import work
from siderite.core.fact import Fact
from siderite.core.transition import Change
from siderite.core.work import Work


async def everything(ctx: Context, change: Change, node: Node) -> None:
    """The node is deleted: all of its work is forgotten with it."""
    gone = node.changed(
        change.now,
        {
            "last_error": "The node was deleted while this was under way.",
            "target_power_state": None,
        },
    )
    for item in await work.of_machine(ctx.door.store, node.uuid):
        change.tell(*_of(ctx, item, gone))
    if NODE.states[node.provision_state].moves_by_itself:
        change.tell(facts.provision_set(node, gone, Event.FAIL))
    change.tell(*watch_facts.given_up(gone))
    change.put(*work.drop(node.uuid))


async def consoles(ctx: Context, change: Change, node: Node) -> None:
    """The instance is gone: a console that was still to be switched is not, lest whoever comes next
    finds it open.
    """
    for item in await work.of_machine(ctx.door.store, node.uuid):
        if item.lane == console.LANE:
            change.tell(*_of(ctx, item, node))
    change.put(*work.drop(node.uuid, console.LANE))


def _of(ctx: Context, item: Work, node: Node) -> list[Fact]:
    """The error that stands for the end of a piece of work."""
    if item.kind == work.GONE:
        return []
    if item.lane == power.LANE:
        change_ = msgspec.json.decode(item.job, type=PowerJob)
        return [facts.power_set("error", node, change_.target)]
    if item.lane == console.LANE:
        switch = msgspec.json.decode(item.job, type=ConsoleJob)
        return [facts.console(switch.action, "error", node)]
    if item.lane == children.LANE:
        step = msgspec.json.decode(item.job, type=ChildJob)
        return [] if step.switching is None else [facts.power_set("error", node, step.switching)]
    if item.lane == ctx.rules.lane:
        job = job_of(item.job)
        if job.hold is not None:
            told = hook_facts.hook("error", node, job, job.hold, by=By.ABORT, reason="deleted")
            return [told]
        if job.switching is not None:
            return [facts.power_set("error", node, job.switching)]
    return []
