"""The forms of bodies: of checks that say theirs, and of values that are made up from types."""

from enum import StrEnum
from typing import Any

import msgspec

from siderite.core import shape


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Thing(msgspec.Struct):
    name: str
    colour: Colour
    size: int | None
    labels: dict[str, str]
    parts: list[int]
    extra: dict[str, Any]


def shown(thing: Thing, version: int) -> dict[str, Any]:
    view = {"name": thing.name, "colour": thing.colour, "size": thing.size, "extra": thing.extra}
    return view | ({"labels": thing.labels, "parts": thing.parts} if version > 5 else {})


def test_a_form_is_seen_from_what_a_view_makes_of_made_up_values() -> None:
    form = shape.across(shown, shape.both(Thing), (1, 9))
    assert form["additionalProperties"] is False
    assert sorted(form["required"]) == ["colour", "extra", "name", "size"]
    assert form["properties"]["size"] == {"type": ["integer", "null"]}
    assert form["properties"]["colour"] == {"type": "string"}
    assert form["properties"]["labels"]["additionalProperties"] == {"type": "string"}
    assert form["properties"]["extra"]["additionalProperties"] == {}
    assert form["properties"]["parts"] == {"type": "array", "items": {"type": "integer"}}


def test_a_check_carries_the_form_of_what_it_takes() -> None:
    @shape.like(shape.text(1, 5))
    def check(name: str, value: Any) -> Any:
        return value

    assert shape.of(check) == {"type": "string", "minLength": 1, "maxLength": 5}
    assert shape.or_null(shape.of(check))["type"] == ["string", "null"]
    assert shape.of(lambda name, value: value) == {}


def test_the_parts_of_a_typed_body_stand_in_its_form() -> None:
    class Outer(msgspec.Struct):
        thing: Thing

    form = shape.typed(Outer)
    assert "$ref" not in repr(form)
    assert form["properties"]["thing"]["properties"]["colour"]["enum"] == ["blue", "red"]


def test_a_patch_names_fields_that_there_are() -> None:
    form = shape.patches(["extra", "name"])
    assert form["items"]["properties"]["path"]["pattern"] == "^/(extra|name)(/.*)?$"
