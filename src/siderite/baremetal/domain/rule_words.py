"""What inspection rules can ask and do: words, their arguments, and references in them.

A reference such as `{inventory[cpu][count]}` or `{node.driver}` stands for what is found there, as
text; one that leads nowhere stays as it is. It reads plain values only, never attributes of
objects.
"""

import ipaddress
import re
from itertools import pairwise
from typing import Any

from siderite.baremetal.domain.node import Json
from siderite.core.errors import Invalid
from siderite.core.pattern import pattern

Words = dict[str, tuple[tuple[str, ...], tuple[str, ...]]]

OPERATORS: Words = {
    "eq": (("values",), ("force_strings",)),
    "lt": (("values",), ("force_strings",)),
    "gt": (("values",), ("force_strings",)),
    "is-empty": (("value",), ()),
    "in-net": (("address", "subnet"), ()),
    "matches": (("value", "regex"), ()),
    "contains": (("value", "regex"), ()),
    "one-of": (("value",), ("values",)),
    "is-none": (("value",), ()),
    "is-true": (("value",), ()),
    "is-false": (("value",), ()),
}
"""What a condition can ask, with the arguments that it needs and those that it takes; `!` before
it turns it round.
"""

ACTIONS: Words = {
    "fail": (("msg",), ()),
    "log": (("msg",), ("level",)),
    "set-attribute": (("path", "value"), ()),
    "extend-attribute": (("path", "value"), ("unique",)),
    "del-attribute": (("path",), ()),
    "set-capability": (("name", "value"), ()),
    "unset-capability": (("name",), ()),
    "add-trait": (("name",), ()),
    "remove-trait": (("name",), ()),
}
"""What a rule can do."""

_REFERENCE = re.compile(r"\{(\w+)((?:\.\w+|\[[^\[\]{}]+\])*)\}")
_PART = re.compile(r"\.(\w+)|\[([^\[\]{}]+)\]")
_ROOTS = ("node", "inventory", "plugin_data", "item")
_NOTHING = object()
_LONGEST = 4096
"""How long a regular expression may be."""
_MOST_TRIED = 1 << 16
"""How long a text may be that one is tried on."""
_MOST_TEXT = 1 << 20


class RuleError(Exception):
    """A rule cannot be followed; the sentence is for the operator."""


def arguments(words: Words, op: str, args: Any) -> Json:
    """Arguments by their names, which may have been given by their places; a comparison's also as
    the bare row of values.
    """
    needs, takes = words[op]
    if isinstance(args, list):
        if needs == ("values",) and len(args) > 1 and not isinstance(args[0], list):
            return {"values": args}
        return dict(zip((*needs, *takes), args, strict=False))
    return dict(args)


def has_reference(text: str) -> bool:
    """Whether something will be filled into the text."""
    return any(found[1] in _ROOTS for found in _REFERENCE.finditer(text))


def filled_in(value: Any, context: Json) -> Any:
    """The value with every reference in its texts replaced."""
    if isinstance(value, str):
        return _text(value, context)
    if isinstance(value, list):
        return [filled_in(item, context) for item in value]
    if isinstance(value, dict):
        return {str(filled_in(k, context)): filled_in(v, context) for k, v in value.items()}
    return value


def _text(value: str, context: Json) -> str:
    """A text may refer to all that was found many times: it stops short of filling the memory."""
    room = _MOST_TEXT

    def looked_up(found: re.Match[str]) -> str:
        nonlocal room
        text = _looked_up(found, context)
        room -= len(text)
        if room < 0:
            raise RuleError(f"what its references stand for is over {_MOST_TEXT} characters")
        return text

    return _REFERENCE.sub(looked_up, value)


def _looked_up(found: re.Match[str], context: Json) -> str:
    at: Any = context.get(found[1], _NOTHING)
    for name, key in _PART.findall(found[2]):
        word = name or key
        if isinstance(at, dict):
            at = at.get(word, _NOTHING)
        elif isinstance(at, list) and word.isdecimal() and int(word[:9]) < len(at):
            at = at[int(word[:9])]
        else:
            at = _NOTHING
    return found[0] if at is _NOTHING else str(at)


def holds(op: str, args: Json) -> bool:
    """Whether a condition holds, its references filled in."""
    match op:
        case "eq" | "lt" | "gt":
            return _in_row(op, args["values"], as_text=bool(args.get("force_strings")))
        case "is-empty":
            return str(args["value"]) in ("", "None", "[]", "{}")
        case "is-none":
            return str(args["value"]) == "None"
        case "is-true":
            return _as_flag(args["value"], ("yes", "true"))
        case "is-false":
            return args["value"] is None or _as_flag(args["value"], ("no", "false"), turned=True)
        case "one-of":
            return any(_same(args["value"], one) for one in _list(args.get("values") or []))
        case "in-net":
            return _in_net(str(args["address"]), str(args["subnet"]))
        case _:
            return _matches(str(args["value"]), str(args["regex"]), whole=op == "matches")


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise RuleError("values must be a list")
    return value


def _in_row(op: str, values: Any, *, as_text: bool) -> bool:
    """Whether each value and the next are equal, or rise, or fall; as numbers if both are, unless
    they are to be compared as text.
    """
    row = _list(values)
    for before, after in pairwise(row):
        if op == "eq":
            fine = _same(before, after)
        else:
            low, high = (before, after) if op == "lt" else (after, before)
            fine = str(low) < str(high) if as_text else _less(low, high)
        if not fine:
            return False
    return True


def _number(value: Any) -> float | None:
    try:
        return None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _same(one: Any, other: Any) -> bool:
    """What was filled in is text, so that 8 and "8" are the same."""
    return bool(one == other) or str(one) == str(other)


def _less(one: Any, other: Any) -> bool:
    numbers = _number(one), _number(other)
    if numbers[0] is not None and numbers[1] is not None:
        return numbers[0] < numbers[1]
    return str(one) < str(other)


def _as_flag(value: Any, words: tuple[str, ...], *, turned: bool = False) -> bool:
    if isinstance(value, int | float):
        return bool(value) is not turned
    return isinstance(value, str) and value.lower() in words


def network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """A network, or an address as one of its own."""
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError as why:
        raise RuleError(str(why)) from why


def _in_net(address: str, subnet: str) -> bool:
    try:
        return ipaddress.ip_address(address) in network(subnet)
    except ValueError as why:
        raise RuleError(str(why)) from why


def expression(regex: str) -> Any:
    """A regular expression; letters match in their own case."""
    try:
        return pattern(regex, any_case=False, most=_LONGEST)
    except Invalid as why:
        raise RuleError(why.sentence.removesuffix(".")) from why


def _matches(value: str, regex: str, *, whole: bool) -> bool:
    found = expression(regex)
    if len(value) > _MOST_TRIED:
        raise RuleError(f"a text of over {_MOST_TRIED} characters is too long to look through")
    return (found.fullmatch(value) if whole else found.search(value)) is not None
