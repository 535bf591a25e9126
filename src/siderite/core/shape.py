"""The forms of bodies in JSON Schema, from the code that checks and makes them.

What a request may hold is said by its checks: each carries its form (`like`), and tables of checks
put theirs together (`record`). What an answer holds is seen from answers: a view is shown values
that are made up from their types (`made_up`), once with everything and once with as little as they
may have, and `seen` says what all that it made has in common. No list of fields is kept twice.
The OpenAPI document (`siderite.openapi`) reads both from the routes.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import fields
from dataclasses import is_dataclass
from enum import Enum
from types import NoneType
from types import UnionType
from typing import Any
from typing import TypeVar
from typing import Union
from typing import get_args
from typing import get_origin
from typing import get_type_hints

import msgspec

Json = dict[str, Any]
Shape = Callable[[], Json]
"""Made when somebody asks: most processes never do."""
F = TypeVar("F", bound=Callable[..., Any])

ANYTHING: Json = {}
FLAG: Json = {"type": ["boolean", "string"]}
"""True or false, which command lines send as words."""
OBJECT: Json = {"type": "object"}
UUID: Json = {"type": "string", "format": "uuid"}
_FREE = "\x02"
"""Stands in a made-up value for what may be anything, and for keys that may be any."""
MOMENT = "2026-01-01T00:00:00.000000+00:00"
"""The text that made-up values have, which is also one of the texts that are read: a moment."""


# Of what is asked for


def like(schema: Json) -> Callable[[F], F]:
    """Give a check the form of what it takes."""

    def told(check: F) -> F:
        check.__dict__["shape"] = schema
        return check

    return told


def of(check: Callable[..., Any]) -> Json:
    """The form of what a check takes; anything, if it does not say."""
    found: Json = getattr(check, "shape", ANYTHING)
    return found


def or_null(schema: Json) -> Json:
    """The same, or null."""
    if not schema:
        return schema
    if "anyOf" in schema or "type" not in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    made = {**schema, "type": [*(kind for kind in kinds if kind != "null"), "null"]}
    if "enum" in schema:
        made["enum"] = [*schema["enum"], None]
    return made


def text(least: int = 0, most: int | None = None, pattern: str | None = None) -> Json:
    """Text of so many characters."""
    limits: Json = {"minLength": least} if least else {}
    if most is not None:
        limits["maxLength"] = most
    if pattern is not None:
        limits["pattern"] = f"^(?:{pattern})$"
    return {"type": "string", **limits}


def words(known: Iterable[str]) -> Json:
    """One of these."""
    return {"type": "string", "enum": [str(word) for word in known]}


def record(
    properties: Mapping[str, Json], required: Sequence[str] = (), *, others: Json | bool = False
) -> Json:
    """An object with these keys; `others` says what further ones may hold."""
    made: Json = {
        "type": "object",
        "properties": dict(properties),
        "additionalProperties": others,
    }
    return {**made, "required": list(required)} if required else made


def under(name: str, schema: Json) -> Json:
    """An object with one key."""
    return record({name: schema}, [name])


def listed(name: str, item: Json, *links: str) -> Json:
    """A list under its name, perhaps with keys that say where it goes on."""
    more: dict[str, Json] = {key: {"type": ["array", "string"]} for key in links}
    return record({name: {"type": "array", "items": item}, **more}, [name])


def patches(names: Iterable[str], *, deep: bool = True) -> Json:
    """A JSON patch of these fields, or of what is within them."""
    below = "(/.*)?" if deep else ""
    path = {"type": "string", "pattern": f"^/({'|'.join(sorted(names))}){below}$"}
    op = {"type": "string", "enum": ["add", "replace", "remove"]}
    item = record({"op": op, "path": path, "value": ANYTHING}, ["op", "path"])
    return {"type": "array", "items": item}


def whole(schema: Json) -> Json:
    """The same without keys that must be there: readers may ask for some of them."""
    return {key: value for key, value in schema.items() if key != "required"}


def typed(kind: type[Any]) -> Json:
    """The form of a typed value, with the forms of its parts in it."""
    (found,), parts = msgspec.json.schema_components([kind], ref_template="{name}")
    made: Json = _with_parts(found, parts)
    return made


def _with_parts(found: Any, parts: Mapping[str, Any]) -> Any:
    if isinstance(found, list):
        return [_with_parts(one, parts) for one in found]
    if not isinstance(found, dict):
        return found
    if "$ref" in found:
        return _with_parts(parts[found["$ref"]], parts)
    return {key: _with_parts(value, parts) for key, value in found.items() if key != "title"}


# Of what is answered


def both(kind: type[Any], **changes: Any) -> list[Any]:
    """Two made-up values: with everything, and with as little as it may have."""
    return [made_up(kind, **changes), made_up(kind, bare=True, **changes)]


def across(view: Callable[[Any, int], Any], values: Iterable[Any], versions: Iterable[int]) -> Json:
    """What a view makes of these values in these versions."""
    numbers = list(versions)
    return seen(*(msgspec.to_builtins(view(one, v)) for one in values for v in numbers))


def wire(*values: Any) -> Json:
    """The form of what these are as JSON."""
    return seen(*(msgspec.json.decode(msgspec.json.encode(one)) for one in values))


def made_up(kind: Any, *, bare: bool = False, **changes: Any) -> Any:
    """A value of this type, with null and nothing wherever it may have them if it is bare."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        if bare and NoneType in inner:
            return None
        return made_up(next(one for one in inner if one is not NoneType), bare=bare)
    if origin is tuple and inner[-1] is not Ellipsis:
        return tuple(made_up(one, bare=bare) for one in inner)
    if origin in (Sequence, list, tuple, set, frozenset):
        some = list if origin is Sequence else origin
        return some([] if bare else [made_up(inner[0])])
    if origin in (Mapping, dict) or kind is dict:
        return {} if bare else {_FREE: made_up(inner[1]) if inner else _FREE}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return list(kind)[-1 if bare else 0]
    if isinstance(kind, type) and (issubclass(kind, msgspec.Struct) or is_dataclass(kind)):
        return _fields_of(kind, bare=bare, **changes)
    simple: dict[Any, Any] = {str: MOMENT, int: 1, float: 1.5, bool: not bare, NoneType: None}
    return simple.get(kind, _FREE)


def _fields_of(kind: type[Any], *, bare: bool, **changes: Any) -> Any:
    hints = get_type_hints(kind)
    if is_dataclass(kind):
        names: Iterable[str] = [field.name for field in fields(kind)]
    else:
        names = kind.__struct_fields__
    made = {name: changes[name] if name in changes else made_up(hints[name], bare=bare)
            for name in names}  # fmt: skip
    return kind(**made)


def seen(*values: Any) -> Json:
    """What these JSON values have in common, as closed as they are."""
    if _FREE in [value for value in values if isinstance(value, str)]:
        return ANYTHING
    forms = []
    objects = [value for value in values if isinstance(value, dict)]
    if objects:
        forms.append(_seen_objects(objects))
    lists = [value for value in values if isinstance(value, list | tuple)]
    if lists:
        forms.append({"type": "array", "items": seen(*(item for one in lists for item in one))})
    simple = {_NAMES[type(value)] for value in values if type(value) in _NAMES}
    simple -= {"integer"} if "number" in simple else set()
    if simple:
        kinds = sorted(simple)
        forms.append({"type": kinds[0] if len(kinds) == 1 else kinds})
    if len(forms) == 2 and simple == {"null"}:  # noqa: PLR2004
        return or_null(forms[0])
    return {"anyOf": forms} if len(forms) > 1 else forms[0] if forms else ANYTHING


_NAMES: dict[type, str] = {
    str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null",
}  # fmt: skip


def _seen_objects(objects: Sequence[Mapping[str, Any]]) -> Json:
    names = dict.fromkeys(name for one in objects for name in one)
    free = [name for name in names if name in (_FREE, MOMENT)]
    properties = {
        name: seen(*(one[name] for one in objects if name in one))
        for name in names
        if name not in free
    }
    others: Json | bool = False
    if free:
        others = seen(*(one[name] for name in free for one in objects if name in one))
    always = [name for name in properties if all(name in one for one in objects)]
    return record(properties, always, others=others)
