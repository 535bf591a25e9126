"""Inspection rules: a sensitive one stays so, and all are followed when an inspection ends."""

from typing import Any

import msgspec

from siderite.baremetal.domain import facts
from siderite.baremetal.domain import rule_engine
from siderite.baremetal.domain.inspection_rule import InspectionRule
from siderite.baremetal.domain.node import Json
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.rule_engine import FITTINGS
from siderite.baremetal.domain.rule_engine import Verdict
from siderite.baremetal.store import INSPECTION_RULES
from siderite.baremetal.usecases.beside.records import Found
from siderite.baremetal.usecases.beside.records import Records
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.node import details
from siderite.baremetal.usecases.node.refit import Cards
from siderite.baremetal.usecases.node.refit import settled
from siderite.core.errors import Conflict
from siderite.core.errors import Invalid
from siderite.core.errors import SideriteError
from siderite.core.log import get_logger
from siderite.core.transition import Change

log = get_logger("inspection")


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


class Court(msgspec.Struct, frozen=True):
    """The rules, and what an inspection found, to judge a node by."""

    cards: Cards
    rules: list[InspectionRule]
    inventory: Json
    plugin_data: Json

    def judge(self, node: Node) -> Verdict:
        """What becomes of the node."""
        verdict = rule_engine.judge(self.rules, node, self.inventory, self.plugin_data)
        if verdict.failure is not None or FITTINGS.keys().isdisjoint(verdict.changes):
            return verdict
        try:
            _check_console(node, verdict.changes)
            verdict.changes |= settled(self.cards, node, verdict.changes)
        except SideriteError as why:
            verdict.failure = f"inspection rules: {why.sentence}"
        return verdict


def _check_console(node: Node, changes: Json) -> None:
    carried = [name for name in ("driver", "console_interface") if name in changes]
    if node.console_enabled and any(changes[name] != getattr(node, name) for name in carried):
        raise Conflict(f"they change the {carried[0]}, and the console is on; stop it before.")


async def court(ctx: Context, uuid: str) -> Court:
    """All that a node is judged by when its inspection ends."""
    rules = await INSPECTION_RULES.find(ctx.door.store)
    found = await details.found_by_inspection(ctx, uuid) if rules else None
    if found is None:
        return Court(ctx.cards, rules, {}, {})
    return Court(ctx.cards, rules, found.inventory, found.plugin_data)


def say(node: Node, verdict: Verdict) -> None:
    """Log what the rules had to say."""
    for level, text in verdict.said:
        write = log.warning if level in ("warning", "error", "critical") else log.info
        write("inspection rule", node=node.uuid, said=text)
