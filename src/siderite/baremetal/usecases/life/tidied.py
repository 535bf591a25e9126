"""An abort is over: nothing of what was given up is left, and the workload is back if wanted. Or
something is, and the node says so.
"""

from typing import Any

from siderite.baremetal.domain import facts
from siderite.baremetal.domain import watch_facts
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.node_machine import NODE
from siderite.baremetal.domain.node_machine import Event
from siderite.baremetal.domain.node_machine import P
from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import StillThere
from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.domain.power import PowerTarget
from siderite.baremetal.domain.power_truth import with_power
from siderite.baremetal.store import NODES
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.life.abort import Cleanup
from siderite.baremetal.usecases.life.progress import remembered
from siderite.baremetal.usecases.power import power
from siderite.baremetal.usecases.power import tell_compute
from siderite.core import work
from siderite.core.transition import Cause
from siderite.core.transition import apply
from siderite.core.work import Work


async def tidied(ctx: Context, held: Work, node: Node, job: Cleanup, gone: Done | None) -> None:
    """The end of the cleanup. `gone` is what follows from a ramdisk whose machine has gone off: if
    the workload is to be back, the machine is started again, which is a change of power as any
    other. Else the record says that it is off, lest the watch puts it back on.
    """
    change = ctx.door.change(Cause(held.request_id))
    change.put(work.done(held))
    changes: dict[str, Any] = {} if gone is None else remembered(node, gone.remember)
    starts = job.back and gone is not None and node.target_power_state is None
    if starts:
        changes["target_power_state"] = PowerTarget.REBOOT.leads_to.value
    elif gone is not None:
        changes |= with_power(gone.changes)
    after = node
    if job.then is not None and NODE.can(node.provision_state, Event(job.then)):
        after = apply(change, ctx.rules, node, job.then, changes=changes).value
    elif changes:
        after = node.changed(change.now, changes)
        change.put(NODES.swap(node, after))
        if after.power_state != node.power_state:
            change.tell(facts.power_corrected(after, node.power_state))
    if starts:
        power.order(ctx, change, after, PowerTarget.REBOOT)
    change.tell(*watch_facts.settled(node, after))
    tell_compute.note(ctx, change, node, after)
    await ctx.door.commit(change)


async def left_behind(ctx: Context, held: Work, node: Node, why: Wait | StillThere) -> None:
    """A ramdisk could not be ended, or not in time. Where it runs in place of a workload, as after
    a rescue or a service, that is a fault; else the node's error says it. What was announced of the
    abort is past by then, so that this is announced of its own.
    """
    change = ctx.door.change(Cause(held.request_id))
    change.put(work.done(held))
    fields = remembered(node, why.remember) if isinstance(why, StillThere) else {}
    fields |= _fault(node, why.reason)
    after = node.changed(change.now, fields)
    change.put(NODES.swap(node, after))
    change.tell(*facts.node_updated(node, after), *watch_facts.settled(node, after))
    await ctx.door.commit(change)


def _fault(node: Node, reason: str) -> dict[str, Any]:
    if node.provision_state == P.RESCUEFAIL:
        word, fault = "rescue", "rescue abort failure"
    elif node.provision_state in (P.SERVICEFAIL, P.ACTIVE):
        word, fault = "service", "service failure"
    else:
        before = f"{node.last_error.rstrip('.')}. " if node.last_error else ""
        return {"last_error": f"{before}Its ramdisk may still run: {reason}"}
    text = f"a {word} was given up, and its ramdisk may still run: {reason}"
    return {"maintenance": True, "maintenance_reason": text, "fault": fault}
