"""A node's traits: set, added, removed, cleared."""

from collections.abc import Callable
from collections.abc import Sequence

from siderite.baremetal.domain import facts
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.traits import MOST
from siderite.baremetal.store import NODES
from siderite.baremetal.usecases.beside.records import By
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.node import find
from siderite.baremetal.usecases.node.enrol import announce_failure
from siderite.core.errors import Busy
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.transition import Change

Edit = Callable[[Sequence[str]], list[str]]
"""How to get from the traits there are to those wanted."""


async def change_of_node(ctx: Context, ident: str, edit: Edit, by: By) -> Node:
    """Change a node's traits; it is announced as an update of the node."""

    async def decide(change: Change) -> Node:
        node = await find.node(ctx, ident, by.who, by.guard)
        traits = sorted(set(edit(node.traits)))
        if len(traits) > MOST:
            raise Invalid(f"A node has at most {MOST} traits; this would be {len(traits)}.")
        if traits == node.traits:
            return node
        after = node.changed(change.now, {"traits": traits})
        change.put(NODES.swap(node, after))
        change.tell(*facts.node_updated(node, after))
        return after

    try:
        return await ctx.door.attempt(by.cause, ident, decide)
    except Busy:
        await announce_failure(ctx, by.cause, "update", await find.node(ctx, ident, by.who))
        raise


def without(trait: str) -> Edit:
    """Take a trait away, which must be there."""

    def edit(traits: Sequence[str]) -> list[str]:
        if trait not in traits:
            there = ", ".join(traits) or "none"
            raise NotFound(f"There is no trait {trait[:80]!r} here; it has: {there}.")
        return [name for name in traits if name != trait]

    return edit
