"""Inspection rules: what they ask, what they do, and what they can never do."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from siderite.baremetal.domain.inspection_rule import InspectionRule
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.rule_engine import OBJECTS
from siderite.baremetal.domain.rule_engine import TEXTS
from siderite.baremetal.domain.rule_engine import Verdict
from siderite.baremetal.domain.rule_engine import judge
from siderite.baremetal.domain.rule_words import ACTIONS
from siderite.baremetal.domain.rule_words import OPERATORS
from tests.support.examples import IS_SAME_EACH_TIME
from tests.support.examples import examples

NODE = Node(
    uuid="1be26c0b-03f2-4d2e-ae87-c02d7f33c123", created_at="", driver="fake-hardware",
    provision_state="inspecting", driver_info={"password": "hunter2", "address": "10.0.0.9"},
    properties={"capabilities": "a:1,b:2"}, traits=["CUSTOM_OLD"], extra={"list": [1]},
)  # fmt: skip
INVENTORY: dict[str, Any] = {
    "cpu": {"count": 8, "flags": ["vmx"]},
    "bmc_address": "10.0.0.9",
    "system_vendor": {"product_name": "R640", "serial_number": None},
    "disks": [{"name": "/dev/sda"}],
}


def rule(**fields: Any) -> InspectionRule:
    made: dict[str, Any] = {"uuid": "u", "created_at": "", "actions": [], **fields}
    return InspectionRule(**made)


def follow(*rules: InspectionRule) -> Verdict:
    return judge(rules, NODE, INVENTORY, {"seen": "yes"})


def does(op: str, *args: Any, **more: Any) -> Verdict:
    return follow(rule(actions=[{"op": op, "args": list(args), **more}]))


def asks(op: str, *args: Any, **more: Any) -> bool:
    condition = {"op": op, "args": list(args), **more}
    action = {"op": "set-attribute", "args": ["extra/hit", "1"]}
    return "extra" in follow(rule(conditions=[condition], actions=[action])).changes


@pytest.mark.parametrize(
    ("op", "args"),
    [
        ("eq", [["{inventory[cpu][count]}", 8]]), ("eq", [["{node.driver}", "fake-hardware"]]),
        ("eq", [[1]]), ("lt", [["{inventory[cpu][count]}", 16, 32]]), ("gt", [[10, "9"]]),
        ("lt", [["a", "b"]]), ("is-empty", [""]), ("is-empty", ["{node.instance_info}"]),
        ("in-net", ["{inventory[bmc_address]}", "10.0.0.0/8"]), ("is-none", ["{node.name}"]),
        ("matches", ["{inventory[system_vendor][product_name]}", "R[0-9]+"]),
        ("contains", ["{inventory[disks][0][name]}", "sd"]), ("is-true", ["{plugin_data[seen]}"]),
        ("is-true", [1]), ("is-false", ["No"]), ("is-false", [None]), ("is-false", [0]),
        ("one-of", ["{inventory[cpu][count]}", [4, 8]]),
    ],
)  # fmt: skip
def test_a_condition_holds_and_turned_round_does_not(op: str, args: list[Any]) -> None:
    assert asks(op, *args)
    assert not asks(f"!{op}", *args)


def test_a_loop_asks_each_item() -> None:
    words = {"loop": ["4", "8"]}
    assert asks("eq", [["{item}", "{inventory[cpu][count]}"]][0], **words)
    assert not asks("eq", ["{item}", "8"], multiple="all", **words)
    assert asks("eq", ["{item}", "8"], multiple="last", **words)
    assert asks("eq", ["{item[at]}", "8"], loop={"at": "{inventory[cpu][count]}"})


@pytest.mark.parametrize(
    ("op", "args", "changes"),
    [
        ("set-attribute", ["/extra/rack", "{inventory[bmc_address]}"],
         {"extra": {"list": [1], "rack": "10.0.0.9"}}),
        ("set-attribute", ["extra.a.b", 7], {"extra": {"list": [1], "a": {"b": 7}}}),
        ("set-attribute", ["resource_class", "cpu-{inventory[cpu][count]}"],
         {"resource_class": "cpu-8"}),
        ("set-attribute", ["extra", {"a": 1}], {"extra": {"a": 1}}),
        ("extend-attribute", ["extra/list", 2], {"extra": {"list": [1, 2]}}),
        ("extend-attribute", ["extra/list", 1, True], {"extra": {"list": [1]}}),
        ("del-attribute", ["/extra/list"], {"extra": {}}),
        ("del-attribute", ["description"], {"description": None}),
        ("set-attribute", ["owner", None], {"owner": None}),
        ("set-capability", ["b", "3"], {"properties": {"capabilities": "a:1,b:3"}}),
        ("unset-capability", ["a"], {"properties": {"capabilities": "b:2"}}),
        ("add-trait", ["CUSTOM_NEW"], {"traits": ["CUSTOM_NEW", "CUSTOM_OLD"]}),
        ("remove-trait", ["CUSTOM_OLD"], {"traits": []}),
        ("remove-trait", ["CUSTOM_GONE"], {"traits": ["CUSTOM_OLD"]}),
    ],
)  # fmt: skip
def test_an_action_changes_the_node(op: str, args: list[Any], changes: dict[str, Any]) -> None:
    verdict = does(op, *args)
    assert (verdict.failure, verdict.changes) == (None, changes)
    assert NODE.extra == {"list": [1]}, "the node itself stays as it was"


@pytest.mark.parametrize(
    ("op", "args", "words"),
    [
        ("fail", ["No {node.driver} here"], "No fake-hardware here"),
        ("set-attribute", ["provision_state", "active"], "cannot touch"),
        ("set-attribute", ["/uuid", "x"], "cannot touch"),
        ("set-attribute", ["extra", "x"], "object"),
        ("set-attribute", ["resource_class/a", "x"], "text"),
        ("set-attribute", ["resource_class", "x" * 81], "80"),
        ("set-attribute", ["extra/list/a", "x"], "no object"),
        ("extend-attribute", ["properties/capabilities", "x"], "not a list"),
        ("del-attribute", ["extra/none"], "no none to delete"),
        ("add-trait", ["fast"], "not a trait"),
        ("set-attribute", ["driver", ""], "a node has a driver"),
        ("set-attribute", ["driver", None], "a node has a driver"),
        ("del-attribute", ["driver"], "a node has a driver"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_fails_the_inspection_in_words(
    op: str, args: list[Any], words: str
) -> None:
    assert words in str(does(op, *args).failure)


def test_conditions_that_make_no_sense_fail_it_too() -> None:
    for op, args in (("in-net", ["x", "10.0.0.0/8"]), ("matches", ["x", "("]), ("eq", ["x"])):
        condition = {"op": op, "args": args}
        assert follow(rule(conditions=[condition], description="Odd")).failure.startswith(  # type: ignore[union-attr]
            "inspection rule Odd: "
        )


def test_rules_go_by_priority_and_see_what_those_before_left() -> None:
    low = rule(
        priority=1, actions=[{"op": "set-attribute", "args": ["extra/b", "{node.extra[a]}"]}]
    )
    high = rule(priority=9, actions=[{"op": "set-attribute", "args": ["extra/a", "1"]}])
    assert follow(low, high).changes["extra"] == {"list": [1], "a": "1", "b": "1"}
    fail = rule(priority=5, actions=[{"op": "fail", "args": ["stop"]}])
    verdict = follow(low, high, fail)
    assert (verdict.failure, "b" in verdict.changes["extra"]) == ("stop", False)
    log = rule(actions=[{"op": "log", "args": {"msg": "cpu {inventory[cpu][count]}"}}])
    assert follow(log).said == [("info", "cpu 8")]


def test_secrets_are_for_sensitive_rules_only() -> None:
    action = {"op": "set-attribute", "args": ["extra/p", "{node.driver_info[password]}"]}
    assert follow(rule(actions=[action])).changes["extra"]["p"] == "******"
    assert follow(rule(actions=[action], sensitive=True)).changes["extra"]["p"] == "hunter2"
    odd = {"op": "del-attribute", "args": ["extra/{node.driver_info[password]}"]}
    assert "hunter2" not in str(follow(rule(actions=[odd], sensitive=True)).failure)


def test_what_a_sensitive_rule_says_has_no_secrets_in_it() -> None:
    said = {"msg": "{item} is {node.driver_info[password]}, of {node.driver}"}
    words = "it is ******, of fake-hardware"
    for loop in (["it"], ["{item}"]):
        fail = {"op": "fail", "args": said, "loop": loop}
        assert "hunter2" not in str(follow(rule(actions=[fail], sensitive=True)).failure)
    log = {"op": "log", "args": said, "loop": ["it"]}
    assert follow(rule(actions=[log], sensitive=True)).said == [("info", words)]


def test_a_reference_never_reaches_into_the_program() -> None:
    for text in ("{node.__class__}", "{node.changed}", "{inventory.keys}", "{x}", "{node[}"):
        assert does("set-attribute", "extra/a", text).changes["extra"]["a"] == text


def test_no_regular_expression_takes_long() -> None:
    """Backtracking would take longer than anybody waits."""
    assert not asks("matches", "a" * 5000 + "!", "(a+)+")
    assert not asks("contains", "a" * 5000, "(a*)*(a|a)*(a?){50}b$")
    assert not asks("contains", "r640", "R[0-9]+")
    judged = asks_failing("matches", "x", "{inventory[disks][0][name]}(?=x)")
    assert "(?=" in judged
    assert asks("contains", "a" * 60_000 + "R640", "R[0-9]+")
    assert "over 65536 characters" in asks_failing("contains", "a" * 70_000, "R[0-9]+")


def test_references_do_not_fill_the_memory() -> None:
    found = {"all": "x" * 100_000}
    many = rule(actions=[{"op": "set-attribute", "args": ["extra/a", "{inventory[all]}" * 1000]}])
    assert "over 1048576 characters" in (judge([many], NODE, found, {}).failure or "")


def asks_failing(op: str, *args: Any) -> str:
    return follow(rule(conditions=[{"op": op, "args": list(args)}])).failure or ""


def test_numbers_are_compared_as_text_if_a_rule_says_so() -> None:
    assert asks("lt", [9, 10])
    assert not asks("lt", [9, 10], True)
    assert asks("gt", [9, 10], True)
    assert asks("eq", [9, "9"], True)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from(["{inventory[cpu]}", "{node}", "{item}", "extra/a", "("]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)  # fmt: skip


@settings(max_examples=examples(30), derandomize=IS_SAME_EACH_TIME, database=None)
@given(data=st.data())
def test_whatever_a_rule_says_it_only_ever_touches_what_it_may(data: st.DataObject) -> None:
    def part(words: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
        return st.sampled_from(sorted(words)).flatmap(
            lambda op: st.fixed_dictionaries(
                {
                    "op": st.just(op),
                    "args": st.fixed_dictionaries(dict.fromkeys(words[op][0], JSON)),
                },
                optional={"loop": st.lists(JSON, max_size=2)},
            )
        )

    conditions = data.draw(st.lists(part(OPERATORS), max_size=2))
    actions = data.draw(st.lists(part(ACTIONS), min_size=1, max_size=3))
    verdict = follow(rule(conditions=conditions, actions=actions))
    assert set(verdict.changes) <= OBJECTS | set(TEXTS) | {"traits"}
