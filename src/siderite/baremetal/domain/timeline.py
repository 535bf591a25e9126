"""A node's timeline: each fact of it as one line of who, what, from where to where, and why."""

from typing import Any

import msgspec

from siderite.baremetal.domain.node import Json


class Changed(msgspec.Struct, frozen=True):
    """A field, with what is inside it after a dot; its value before and after, `…` for a long one
    and None for none.
    """

    field: str
    before: Any
    after: Any


class Line(msgspec.Struct, frozen=True):
    """One line, without who and when."""

    what: str
    """The fact's action, such as `provision_set`."""
    status: str
    before: Any
    after: Any
    cause: str
    reason: str | None
    changed: tuple[Changed, ...] = ()
    """What an update brought, apart from maintenance."""


_LONGEST = 60
_MOST = 10
"""Fields inside one that are told each by itself."""
_TOLD_ELSEWHERE = frozenset({"maintenance", "updated_at"})
_OF_POWER = frozenset({
    "power_set", "power_state_corrected", "power_unknown", "power_failure", "power_conflict",
})  # fmt: skip
_BY_ITSELF = frozenset({
    "power_state_corrected", "power_unknown", "power_failure", "power_conflict",
})  # fmt: skip

_OF_FIELDS = frozenset({("create", "start"), ("update", "end")})
"""The facts that first have what a change of any fields brings, maintenance among others."""


def line(
    what: str,
    status: str,
    data: Json,
    earlier: Json | None,
    *,
    asked: bool,
    begun: Json | None = None,
) -> Line:
    """The line of a fact: `data` is its payload's, `earlier` that of the fact before it, and
    `asked` whether it follows from a request. `begun` is that of its start, for what changed.
    """
    before, after = _change(what, status, data, earlier)
    reason = _reason(what, status, data)
    if reason is None and (what, status) in _OF_FIELDS and after is not None:
        reason = f"maintenance was {'set' if after else 'cleared'}"
    brought = () if begun is None else changed(begun, data)
    if begun is not None and not brought and reason is None:
        reason = "no field changed that notifications have"
    return Line(what, status, before, after, _cause(what, data, asked=asked), reason, brought)


def changed(before: Json, after: Json) -> tuple[Changed, ...]:
    """What is not the same in the payloads of an update's start and end, secrets masked. Large
    fields may be there as their texts.
    """
    return tuple(
        told
        for name in sorted(before.keys() | after.keys())
        if name not in _TOLD_ELSEWHERE and before.get(name) != after.get(name)
        for told in _inside(name, _parsed(before.get(name)), _parsed(after.get(name)))
    )


def _parsed(value: Any) -> Any:
    return msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value


def _inside(name: str, before: Any, after: Any) -> list[Changed]:
    if isinstance(before, dict) and isinstance(after, dict):
        keys = [key for key in sorted(before.keys() | after.keys())
                if (key in before, before.get(key)) != (key in after, after.get(key))]  # fmt: skip
        if len(keys) <= _MOST:
            return [
                Changed(f"{name}.{key}", _brief(before.get(key)), _brief(after.get(key)))
                for key in keys
            ]
    return [Changed(name, _brief(before), _brief(after))]


def _brief(value: Any) -> Any:
    return value if len(msgspec.json.encode(value)) <= _LONGEST else "…"


def _change(what: str, status: str, data: Json, earlier: Json | None) -> tuple[Any, Any]:
    if what == "provision_set":
        return data["previous_provision_state"], data["provision_state"]
    if what == "power_set" and status == "start":
        return data["power_state"], data["to_power"]
    if what in _OF_POWER:
        known = earlier["power_state"] if earlier is not None else None
        return data.get("from_power", known), data["power_state"]
    held = earlier["maintenance"] if earlier is not None else None
    among_others = (what, status) in _OF_FIELDS and data["maintenance"] is not bool(held)
    if what == "maintenance_set" or among_others:
        return held, data["maintenance"]
    if what == "power_update":
        return None, data["tag"]
    if what == "power_policy_set":
        return data["from_policy"], data["to_policy"]
    return None, None


def _cause(what: str, data: Json, *, asked: bool) -> str:
    if what == "provision_set":
        return str(data["event"])
    if what == "hook":
        return str(data["by"] or "hook")
    if what in _BY_ITSELF and not asked:
        return "power watch"
    if what == "power_set" and not asked:
        return "power_policy record"
    return "request" if asked else "service"


def _reason(what: str, status: str, data: Json) -> str | None:
    reason = data.get("reason")
    if reason is None and status == "error":
        reason = data.get("last_error")
    if reason is None and what == "maintenance_set":
        reason = data.get("maintenance_reason")
    return None if reason is None else str(reason)
