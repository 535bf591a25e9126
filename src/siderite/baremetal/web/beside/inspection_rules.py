"""Inspection rules on the wire."""

from typing import Any

from siderite.baremetal.domain.rule_fit import check_action
from siderite.baremetal.domain.rule_fit import check_condition
from siderite.baremetal.domain.rule_words import ACTIONS
from siderite.baremetal.domain.rule_words import OPERATORS
from siderite.baremetal.domain.rule_words import RuleError
from siderite.baremetal.domain.rule_words import Words
from siderite.baremetal.domain.rule_words import arguments
from siderite.baremetal.usecases.beside import inspection_rules
from siderite.baremetal.web import forms
from siderite.baremetal.web import views
from siderite.baremetal.web.beside.records import Resource
from siderite.baremetal.web.versions import RULE_FILTER_SINCE
from siderite.core import shape
from siderite.core.check import Check
from siderite.core.check import is_whole
from siderite.core.check import short
from siderite.core.errors import Invalid

_MOST = 255
_MOST_PRIORITY = 9999
_MULTIPLE = forms.one_of("any", "all", "first", "last")


def _parts(known: Words, *, inverted: bool) -> Check:
    """The conditions or the actions of a rule: each an `op`, its `args` and perhaps a `loop`."""
    keys = {"op", "args", "loop", *(("multiple",) if inverted else ())}
    fields = {
        "op": shape.text() if inverted else shape.words(known),
        "args": {"type": ["array", "object"]},
        "loop": {"type": ["array", "object"]},
        "multiple": shape.of(_MULTIPLE),
    }

    @shape.like(shape.record({key: fields[key] for key in sorted(keys)}, ["op", "args"]))
    def check(name: str, item: Any) -> dict[str, Any]:
        if not isinstance(item, dict) or not {"op", "args"} <= set(item) <= keys:
            raise Invalid(f"{name}: each one is an object of {', '.join(sorted(keys))}.")
        op = item["op"]
        word = op.removeprefix("!").strip() if isinstance(op, str) and inverted else op
        if not isinstance(word, str) or word not in known:
            raise Invalid(f"{name}: there is no {short(op)}; there are {', '.join(known)}.")
        needs, takes = known[word]
        args = item["args"]
        if isinstance(args, list):
            named = arguments(known, word, args)
            has_room = named.get("values") is args or len(args) <= len(needs) + len(takes)
            args = named if has_room else args
        if not isinstance(args, dict) or not set(needs) <= set(args) <= {*needs, *takes}:
            optional = f" and perhaps {', '.join(takes)}" if takes else ""
            raise Invalid(f"{name}: {word} takes the arguments {', '.join(needs)}{optional}.")
        try:
            check_condition(args) if inverted else check_action(word, args)
        except RuleError as why:
            raise Invalid(f"{name}: {word}: {why}.") from why
        if not isinstance(item.get("loop", []), list | dict):
            raise Invalid(f"{name}: loop must be a list or an object.")
        if "multiple" in item:
            _MULTIPLE(f"{name}: multiple", item["multiple"])
        return item

    return check


@shape.like({"type": ["integer", "string"], "minimum": 0, "maximum": _MOST_PRIORITY})
def _priority(key: str, value: Any) -> int:
    """A whole number, also as the digits that command lines send."""
    number = int(value) if isinstance(value, str) and is_whole(value, 4) else value
    return int(forms.whole(0, _MOST_PRIORITY)(key, number))


@shape.like(shape.or_null(shape.words(["main"])))
def _phase(key: str, value: Any) -> str:
    return "main" if value is None else forms.one_of("main")(key, value)


RULES = Resource(
    noun="inspection_rule",
    records=inspection_rules.RECORDS,
    view=views.INSPECTION_RULE,
    form=forms.Form(
        "inspection rule",
        views.INSPECTION_RULE.fields.since,
        {
            "actions": forms.list_of(_parts(ACTIONS, inverted=False), most=_MOST, least=1),
            "conditions": forms.list_of(_parts(OPERATORS, inverted=True), most=_MOST),
            "description": forms.text(255),
            "phase": _phase,
            "priority": _priority,
            "scope": forms.text(255),
            "sensitive": forms.flag,
        },
        {"uuid": forms.uuid},
        required=frozenset({"actions", "priority"}),
        needed=("actions",),
        objects=frozenset({"actions", "conditions"}),
        masked=views.INSPECTION_RULE.fields.masked,
    ),
    filters=RULE_FILTER_SINCE,
    unsortable=frozenset({"actions", "conditions"}),
    since=96,
)
