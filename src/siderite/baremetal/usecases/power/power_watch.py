"""What follows from a reading of a node's power is recorded.

A reading is good for the node as it was when it was begun: if anything of the node has changed
meanwhile, what follows from the reading is not committed, and the node is read again.
"""

from collections.abc import Sequence

import msgspec

from siderite.baremetal.domain import watch_facts
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.power_truth import Verdict
from siderite.baremetal.store import NODES
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.power import tell_compute
from siderite.baremetal.usecases.power.power import LANE
from siderite.baremetal.usecases.power.power import PowerJob
from siderite.baremetal.usecases.power.power_schedule import Plan
from siderite.baremetal.usecases.power.power_schedule import schedule
from siderite.core import work
from siderite.core.ids import new_uuid
from siderite.core.store import Lost
from siderite.core.transition import Cause


class Watched(msgspec.Struct, frozen=True):
    """A node whose reading is due, and how its readings went so far."""

    node: Node
    pause: float
    failures: int
    has_work: bool


async def look(ctx: Context, uuids: Sequence[str]) -> list[Watched]:
    """These nodes as they are now."""
    marks = ", ".join("?" * len(uuids))
    rows = await ctx.door.store.fetch(
        "SELECT n.doc, w.pause, w.failures,"  # noqa: S608 - marks only
        " (SELECT count(*) FROM work WHERE work.machine = n.uuid)"
        f" FROM power_watch w JOIN nodes n ON n.uuid = w.node WHERE w.node IN ({marks})",
        tuple(uuids),
    )
    nodes = NODES.readable(row[0] for row in rows)
    return [
        Watched(node, float(pause), int(failures), bool(busy))  # type: ignore[arg-type]
        for node, (_, pause, failures, busy) in zip(nodes, rows, strict=True)
        if node is not None
    ]


async def record(ctx: Context, node: Node, verdict: Verdict, plan: Plan) -> bool:
    """Make true what follows from a reading; False if the node has changed since it was begun."""
    change = ctx.door.change(Cause())
    after = node.changed(change.now, verdict.changes)
    change.put(NODES.swap(node, after))
    change.put(schedule([plan]))
    change.tell(*watch_facts.of_verdict(node, after, verdict))
    tell_compute.note(ctx, change, node, after)
    if verdict.put_back is not None:
        job = PowerJob(verdict.put_back.value, new_uuid(), keeps_record=True)
        change.work(
            work.add(
                node.uuid, LANE, "power", job=msgspec.json.encode(job).decode(), now=change.now,
                deadline=change.now + ctx.settings.power_timeout_s,
                reason="the machine is put back to what the record says",
                pool=ctx.rules.pool(node),
            )
        )  # fmt: skip
    try:
        await ctx.door.commit(change)
    except Lost:
        return False
    return True
