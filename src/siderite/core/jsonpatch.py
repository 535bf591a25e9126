"""The part of RFC 6902 that the APIs take: add, replace and remove, on plain JSON values.

The patch is read into `Change` values first, so that who may change what can be decided before
anything is.
"""

import re
from typing import Any
from typing import TypeVar

import msgspec

from siderite.core.errors import Invalid

C = TypeVar("C", dict[str, Any], list[Any])

OPS = ("add", "replace", "remove")
MAX_PARTS = 25
"""How deep a path may go: as deep as a body may."""
MOST = 1000
"""How many operations a patch may have: each may move all of a long list."""

_BAD_ESCAPE = re.compile(r"~(?![01])")
_PLACE = re.compile(r"(0|[1-9][0-9]{0,5})\Z")


class Patch(msgspec.Struct, frozen=True):
    """One operation: `path` is split and unescaped."""

    op: str
    path: tuple[str, ...]
    value: Any = None

    @property
    def field(self) -> str:
        """The resource's field that it touches."""
        return self.path[0]

    @property
    def text(self) -> str:
        """The path as it was written, or the beginning of a long one."""
        parts = (part.replace("~", "~0").replace("/", "~1") for part in self.path)
        return ("/" + "/".join(parts))[:200]


def parse(document: Any) -> list[Patch]:
    """A patch document, checked for its form."""
    if not isinstance(document, list) or not document:
        raise Invalid(
            "A patch is a non-empty list such as"
            ' [{"op": "replace", "path": "/name", "value": "x"}].'
        )
    if len(document) > MOST:
        raise Invalid(f"A patch has {MOST} operations at most, not {len(document)}; send several.")
    patches = []
    for item in document:
        if not isinstance(item, dict) or not isinstance(item.get("path"), str):
            raise Invalid(
                'Each operation of a patch is an object with "op", "path" and, but for'
                ' remove, "value".'
            )
        extra = sorted(set(item) - {"op", "path", "value"})
        if extra:
            raise Invalid(
                f"A patch operation has no key {extra[0][:80]!r}; it has op, path and value."
            )
        op = item.get("op")
        if op not in OPS:
            raise Invalid(
                f"Patch operation {repr(op)[:80]} is not supported; use add, replace or remove."
            )
        path = item["path"]
        if not path.startswith("/") or path == "/" or path.endswith("/") or "//" in path:
            raise Invalid(f"Patch path {path[:200]!r} must be of the form /field or /field/key.")
        if path.count("/") > MAX_PARTS:
            raise Invalid(f"Patch path {path[:200]!r} goes over {MAX_PARTS} levels deep.")
        if _BAD_ESCAPE.search(path):
            raise Invalid(f"In patch path {path[:200]!r} write ~ as ~0 and / in a key as ~1.")
        if op != "remove" and "value" not in item:
            raise Invalid(f"Patch operation {op} on {path[:200]} needs a value.")
        parts = tuple(part.replace("~1", "/").replace("~0", "~") for part in path[1:].split("/"))
        patches.append(Patch(op, parts, item.get("value")))
    return patches


class Draft:
    """A JSON value that is being patched: what is changed of it is copied, once, however many
    operations change it. The original is untouched.
    """

    def __init__(self, value: Any) -> None:
        self.value = value
        self._own: dict[int, Any] = {}
        """The copies, by their ids; they live as long as these."""

    def apply(self, path: tuple[str, ...], patch: Patch) -> None:
        """Do the patch at `path` below the value."""
        self.value = self._applied(self.value, path, patch)

    def _applied(self, target: Any, path: tuple[str, ...], patch: Patch) -> Any:
        if isinstance(target, list):
            return self._in_list(target, path, patch)
        if not isinstance(target, dict):
            raise Invalid(f"Cannot {patch.op} {patch.text}: what is above it is not an object.")
        key, rest = path[0], path[1:]
        out = self._copied(target)
        if rest:
            if key not in out:
                raise Invalid(f"Cannot {patch.op} {patch.text}: there is no {key[:80]!r}.")
            out[key] = self._applied(out[key], rest, patch)
        elif patch.op == "remove":
            if key not in out:
                raise Invalid(f"Cannot remove {patch.text}: it is not there.")
            del out[key]
        else:
            if patch.op == "replace" and key not in out:
                raise Invalid(f"Cannot replace {patch.text}: it is not there; use add.")
            out[key] = patch.value
        return out

    def _in_list(self, target: list[Any], path: tuple[str, ...], patch: Patch) -> list[Any]:
        key, rest = path[0], path[1:]
        out = self._copied(target)
        if key == "-" and not rest and patch.op == "add":
            out.append(patch.value)
            return out
        limit = len(out) + (patch.op == "add" and not rest)
        if not _PLACE.match(key) or int(key) >= limit:
            raise Invalid(
                f"Cannot {patch.op} {patch.text}: there is no place {key[:20]!r} in the list."
            )
        at = int(key)
        if rest:
            out[at] = self._applied(out[at], rest, patch)
        elif patch.op == "add":
            out.insert(at, patch.value)
        elif patch.op == "replace":
            out[at] = patch.value
        else:
            del out[at]
        return out

    def _copied(self, target: C) -> C:
        if id(target) in self._own:
            return target
        copy = target.copy()
        self._own[id(copy)] = copy
        return copy
