"""An inspection rule whose arguments do not fit is refused when it is written, with what and why:
not first when a node is inspected.
"""

from typing import Any

import pytest

from tests.baremetal.web.expect import footprint
from tests.baremetal.web.expect import refused
from tests.support.app import Answer
from tests.support.app import Standing

LOG = {"op": "log", "args": {"msg": "seen"}}
UNFIT: list[tuple[str, dict[str, Any], str]] = [
    ("matches", {"value": "x", "regex": "("}, "is not a regular expression"),
    ("contains", {"value": "x", "regex": "a{2}("}, "is not a regular expression"),
    ("matches", {"value": "x", "regex": "(?=x)x"}, "invalid perl operator: (?="),
    ("contains", {"value": "x", "regex": r"(x)\1"}, r"invalid escape sequence: \1"),
    ("contains", {"value": "x", "regex": "x" * 4097}, "over 4096 characters"),
    ("matches", {"value": "x", "regex": ["b"]}, "regex must be text"),
    ("eq", {"values": 5}, "values must be a list"),
    ("lt", {"values": "{inventory[cpu]}"}, "values must be a list"),
    ("one-of", {"value": 1, "values": "x"}, "values must be a list"),
    ("gt", {"values": [1, 2], "force_strings": "z"}, "force_strings must be true or false"),
    ("in-net", {"address": "here", "subnet": "10.0.0.0/8"}, "'here'"),
    ("in-net", {"address": "{node.name}", "subnet": "10.0/99"}, "'10.0/99'"),
    ("fail", {"msg": None}, "msg must be text"),
    ("log", {"msg": "x", "level": "loud"}, "level must be one of debug, info"),
    ("add-trait", {"name": "no trait"}, "is not a trait"),
    ("remove-trait", {"name": 7}, "name must be text"),
    ("set-attribute", {"path": 7, "value": "x"}, "path must be text"),
    ("set-attribute", {"path": "/provision_state", "value": "active"}, "cannot touch"),
    ("set-attribute", {"path": "/owner/x", "value": "x"}, "owner is text"),
    ("set-attribute", {"path": "/extra", "value": "x"}, "extra is an object"),
    ("set-attribute", {"path": "/owner", "value": "x" * 256}, "over 255 characters"),
    ("extend-attribute", {"path": "/owner", "value": "x"}, "owner is text"),
    ("extend-attribute", {"path": "/extra/a", "value": 1, "unique": 7}, "unique must be true"),
    ("del-attribute", {"path": "/shard/x"}, "shard is text"),
    ("del-attribute", {"path": "/driver"}, "a node has a driver"),
    ("set-capability", {"name": "a,b", "value": "c"}, "is not a capability"),
    ("set-capability", {"name": "a", "value": "b,c:d"}, "is not a capability"),
]
CONDITIONS = ("matches", "contains", "eq", "lt", "gt", "one-of", "in-net")
FIT: list[tuple[str, Any]] = [
    ("eq", ["{inventory[system_vendor][product_name]}", "{item}"]),
    ("lt", [[1, "{inventory[cpu][count]}"], True]),
    ("gt", [4, "{inventory[cpu][count]}", 2]),
    ("matches", {"value": "x", "regex": "{inventory[cpu][count]}("}),
    ("matches", {"value": "x", "regex": "a{2}"}),
    ("matches", {"value": "x", "regex": "(a+)+b" * 600}),
    ("in-net", {"address": "{inventory[bmc_address]}", "subnet": "{node.extra[net]}"}),
    ("in-net", {"address": "10.0.0.7", "subnet": "10.0.0.0/8"}),
    ("one-of", {"value": 1}),
    ("add-trait", {"name": "CUSTOM_{item}"}),
    ("del-attribute", {"path": "/extra/a/b"}),
    ("set-attribute", {"path": "/extra/{inventory[hostname]}", "value": [1]}),
    ("set-attribute", {"path": "/owner", "value": "{node.lessee}"}),
    ("extend-attribute", {"path": "/extra/a/b", "value": 1, "unique": True}),
    ("set-capability", {"name": "cores", "value": "{inventory[cpu][count]}"}),
    ("unset-capability", {"name": "cores"}),
]


def written(op: str, args: Any) -> dict[str, Any]:
    """The body of a rule with this condition or action."""
    part = {"op": op, "args": args}
    if op in CONDITIONS:
        return {"conditions": [part], "actions": [LOG]}
    return {"actions": [LOG, part]}


def post(app: Standing, op: str, args: Any) -> Answer:
    return app.ask("POST", "/v1/inspection_rules", written(op, args))


def test_a_condition_is_added_to_a_rule_that_has_none(lite: Standing) -> None:
    made = post(lite, "log", {"msg": "always"}).json["uuid"]
    value = {"op": "is-true", "args": {"value": "{plugin_data[seen]}"}}
    patch = [{"op": "add", "path": "/conditions/-", "value": value}]
    answer = lite.ask("PATCH", f"/v1/inspection_rules/{made}", patch)
    assert answer.json["conditions"] == [value]


@pytest.mark.parametrize(("op", "args", "why"), UNFIT)
def test_arguments_that_do_not_fit_are_refused(
    lite: Standing, op: str, args: dict[str, Any], why: str
) -> None:
    made = post(lite, "log", {"msg": "a rule to patch"}).json["uuid"]
    before = footprint(lite)
    refused(post(lite, op, args), 400, f": {op}: ", why)
    refused(post(lite, op, list(args.values())), 400, f": {op}: ", why)
    name, parts = next(iter(written(op, args).items()))
    patch = [{"op": "add", "path": f"/{name}", "value": parts}]
    refused(lite.ask("PATCH", f"/v1/inspection_rules/{made}", patch), 400, why)
    assert footprint(lite) == before


@pytest.mark.parametrize(("op", "args"), FIT)
def test_arguments_that_may_fit_are_taken(lite: Standing, op: str, args: Any) -> None:
    assert post(lite, op, args).status == 201
