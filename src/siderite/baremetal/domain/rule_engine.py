"""Following inspection rules: what becomes of a node, from what was found. Pure.

Rules are followed from the highest priority down, each on what those before it left; one whose
conditions all hold does its actions. A rule may touch what clients may write of a node, never its
states.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from siderite.baremetal.domain.inspection_rule import InspectionRule
from siderite.baremetal.domain.node import INTERFACES
from siderite.baremetal.domain.node import Json
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.rule_words import ACTIONS
from siderite.baremetal.domain.rule_words import OPERATORS
from siderite.baremetal.domain.rule_words import RuleError
from siderite.baremetal.domain.rule_words import arguments
from siderite.baremetal.domain.rule_words import filled_in
from siderite.baremetal.domain.rule_words import holds
from siderite.baremetal.domain.secrets import mask
from siderite.baremetal.domain.traits import MOST
from siderite.baremetal.domain.traits import is_trait

OBJECTS = frozenset({"driver_info", "extra", "instance_info", "network_data", "properties"})
FITTINGS = {"driver": 255, **{f"{kind}_interface": 255 for kind in INTERFACES}}
TEXTS = {
    "description": 4096, "lessee": 255, "owner": 255, "resource_class": 80, "shard": 255,
    **FITTINGS,
}  # fmt: skip
"""What a rule may set: objects, what is in them, and texts up to a length. Whether the fittings are
there and fit each other is for those to say who know the drivers.
"""
_SAID = ("fail", "log")


class Verdict(msgspec.Struct):
    """What the rules say: the node's new fields, or why its inspection failed."""

    changes: Json = msgspec.field(default_factory=dict)
    failure: str | None = None
    said: list[tuple[str, str]] = msgspec.field(default_factory=list)
    """Level and text of what they have to log."""


def parts(path: str) -> list[str]:
    """A path's parts: `/extra/rack`, `extra/rack` and `extra.rack` are the same."""
    found = [part for part in path.split("/" if "/" in path else ".") if part]
    if not found or found[0] not in OBJECTS | set(TEXTS):
        known = ", ".join(sorted(OBJECTS | set(TEXTS)))
        raise RuleError(f"a rule cannot touch {path[:80]!r}; it can touch {known}")
    return found


def judge(rules: Iterable[InspectionRule], node: Node, inventory: Json, plugin: Json) -> Verdict:
    """Follow the rules on a node; `inventory` and `plugin` are what its inspection found."""
    verdict = Verdict()
    for rule in sorted(rules, key=lambda rule: -rule.priority):
        after = msgspec.structs.replace(node, **verdict.changes)
        context = {
            "node": msgspec.structs.asdict(after),
            "inventory": inventory,
            "plugin_data": plugin,
        }
        if not rule.sensitive:
            context = mask(context)
        try:
            if all(_condition(condition, context) for condition in rule.conditions or ()):
                for action in rule.actions or ():
                    _act(verdict, node, action, context)
        except RuleError as why:
            name = rule.description or rule.uuid
            told = "it is sensitive, so its words are not shown" if rule.sensitive else str(why)
            verdict.failure = f"inspection rule {name}: {told}"
        if verdict.failure is not None:
            break
    return verdict


def _items(part: Json) -> list[Json] | None:
    loop = part.get("loop") or None
    if loop is None:
        return None
    return [{"item": item} for item in (loop if isinstance(loop, list) else [loop])]


def _condition(condition: Json, context: Json) -> bool:
    op = str(condition["op"])
    word = op.removeprefix("!").strip()
    args = arguments(OPERATORS, word, condition["args"])

    def answer(item: Json) -> bool:
        return holds(word, _filled(args, item, context)) is not op.startswith("!")

    items = _items(condition)
    if items is None:
        return answer({})
    answers = [answer(item) for item in items]
    match condition.get("multiple", "any"):
        case "all":
            return all(answers)
        case "last":
            return answers[-1]
        case _:
            return any(answers)


def _filled(args: Json, item: Json, context: Json) -> Json:
    """What an item stands for may hold references of its own, which are filled in afterwards."""
    filled: Json = filled_in(filled_in(args, item) if item else args, context)
    return filled


def _act(verdict: Verdict, node: Node, action: Json, context: Json) -> None:
    op = str(action["op"])
    args = arguments(ACTIONS, op, action["args"])
    # What is said is read by others, in the log and on the node, whatever the rule may know.
    known = mask(context) if op in _SAID else context
    for item in _items(action) or [{}]:
        do(verdict, node, op, _filled(args, item, known))


def do(verdict: Verdict, node: Node, op: str, args: Json) -> None:
    """One action, its references filled in; RuleError if it cannot be done."""
    match op:
        case "fail":
            verdict.failure = str(args["msg"])
        case "log":
            verdict.said.append((str(args.get("level", "info")), str(args["msg"])))
        case "add-trait" | "remove-trait":
            _trait(verdict, node, str(args["name"]), there=op == "add-trait")
        case "set-capability" | "unset-capability":
            _capability(verdict, node, str(args["name"]), args.get("value"))
        case _:
            _attribute(verdict, node, op, args)


def _now(verdict: Verdict, node: Node, name: str) -> Any:
    return verdict.changes[name] if name in verdict.changes else getattr(node, name)


def _trait(verdict: Verdict, node: Node, name: str, *, there: bool) -> None:
    if not is_trait(name):
        raise RuleError(f"{name[:80]!r} is not a trait")
    traits = set(_now(verdict, node, "traits")) - {name} | ({name} if there else set())
    if len(traits) > MOST:
        raise RuleError(f"the node would have more than {MOST} traits")
    verdict.changes["traits"] = sorted(traits)


def _capability(verdict: Verdict, node: Node, name: str, value: Any) -> None:
    if not name or {":", ","} & set(name) or "," in str(value):
        raise RuleError(f"{name[:80]}:{str(value)[:80]} is not a capability")
    properties = dict(_now(verdict, node, "properties"))
    pairs = [pair.partition(":") for pair in str(properties.get("capabilities") or "").split(",")]
    known = {key: text for key, colon, text in pairs if colon and key != name}
    if value is not None:
        known[name] = str(value)
    properties["capabilities"] = ",".join(f"{key}:{text}" for key, text in known.items())
    verdict.changes["properties"] = properties


def _attribute(verdict: Verdict, node: Node, op: str, args: Json) -> None:
    root, *keys = parts(str(args["path"]))
    if root in TEXTS:
        if keys or op == "extend-attribute":
            raise RuleError(f"{root} is text")
        value = None if op == "del-attribute" else args["value"]
        text = None if value is None else str(value)
        if root == "driver" and not text:
            raise RuleError("a node has a driver")
        if text is not None and len(text) > TEXTS[root]:
            raise RuleError(f"{root} would be over {TEXTS[root]} characters")
        verdict.changes[root] = text
        return
    before = _now(verdict, node, root)
    if not keys:
        value = {} if op == "del-attribute" else args["value"]
        if op == "extend-attribute" or not isinstance(value, dict):
            raise RuleError(f"{root} is an object")
        verdict.changes[root] = value
        return
    verdict.changes[root] = _changed(before, keys, op, args)


def _changed(target: Any, keys: list[str], op: str, args: Json) -> Json:
    """An object with one thing in it changed; the original is untouched."""
    if not isinstance(target, dict):
        raise RuleError(f"above {keys[0]} there is no object")
    key, rest, after = keys[0], keys[1:], dict(target)
    if rest:
        after[key] = _changed(after.get(key, {}), rest, op, args)
    elif op == "set-attribute":
        after[key] = args["value"]
    elif op == "del-attribute":
        if key not in after:
            raise RuleError(f"there is no {key} to delete")
        del after[key]
    else:
        there = after.get(key, [])
        if not isinstance(there, list):
            raise RuleError(f"{key} is not a list")
        if not (args.get("unique") and args["value"] in there):
            after[key] = [*there, args["value"]]
    return after
