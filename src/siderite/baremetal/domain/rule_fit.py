"""Whether the arguments of an inspection rule can fit, told when it is written and not first when
a node is inspected. A text with a reference in it is not judged: what that will stand for shows
only then.
"""

from typing import Any

from siderite.baremetal.domain.node import Json
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.rule_engine import TEXTS
from siderite.baremetal.domain.rule_engine import Verdict
from siderite.baremetal.domain.rule_engine import do
from siderite.baremetal.domain.rule_engine import parts
from siderite.baremetal.domain.rule_words import RuleError
from siderite.baremetal.domain.rule_words import expression
from siderite.baremetal.domain.rule_words import has_reference
from siderite.baremetal.domain.rule_words import network

LEVELS = ("debug", "info", "warning", "error", "critical")
_BLANK = Node(uuid="", created_at="", driver="", provision_state="")


def check_condition(args: Json) -> None:
    """Refuse, with a RuleError, arguments that no condition could be asked with."""
    if "values" in args and not isinstance(args["values"], list):
        raise RuleError("values must be a list")
    _flag(args, "force_strings")
    for name, read in (("regex", expression), ("address", network), ("subnet", network)):
        if name in args and not has_reference(_text(args, name)):
            read(args[name])


def check_action(op: str, args: Json) -> None:
    """Refuse, with a RuleError, arguments that no action could be done with."""
    _flag(args, "unique")
    for name in ("msg", "path", "name"):
        if name in args:
            _text(args, name)
    if args.get("level", "info") not in LEVELS:
        raise RuleError(f"level must be one of {', '.join(LEVELS)}")
    if has_reference(str(args.get("path", args.get("name", "")))):
        return
    if op == "del-attribute":
        root, *keys = parts(args["path"])
        if root in TEXTS and keys:
            raise RuleError(f"{root} is text")
        if root == "driver":
            raise RuleError("a node has a driver")
    elif op not in ("fail", "log"):
        do(Verdict(), _BLANK, op, args)


def _flag(args: Json, name: str) -> None:
    if not isinstance(args.get(name, False), bool):
        raise RuleError(f"{name} must be true or false")


def _text(args: Json, name: str) -> str:
    value: Any = args[name]
    if not isinstance(value, str) or not value:
        raise RuleError(f"{name} must be text")
    return value
