"""What clients may write: each field with a check of its form, and a sentence for any other.

The same checks serve creation and patching. A field newer than the request's version is refused
with 406. Each resource has a `Form`.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from siderite.baremetal.domain import traits
from siderite.baremetal.domain.secrets import MASK
from siderite.baremetal.domain.secrets import NothingBehind
from siderite.baremetal.domain.secrets import mask
from siderite.baremetal.domain.secrets import unmasked
from siderite.core import jsonpatch
from siderite.core import shape
from siderite.core.check import Check
from siderite.core.check import short
from siderite.core.check import truth
from siderite.core.errors import Invalid
from siderite.core.errors import NotAcceptable
from siderite.core.http import MIB
from siderite.core.ids import is_uuid
from siderite.core.jsonpatch import Draft
from siderite.core.jsonpatch import Patch

MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}\Z")


def text(most: int, *, least: int = 0, null: bool = True) -> Check:
    """Text of a limited length, or null."""
    form = shape.text(least, most)

    @shape.like(shape.or_null(form) if null else form)
    def check(name: str, value: Any) -> str | None:
        if value is None and null:
            return None
        if not isinstance(value, str):
            raise Invalid(f"{name} must be text, not {kind(value)}.")
        if not least <= len(value) <= most:
            raise Invalid(f"{name} must have {least} to {most} characters.")
        return value

    return check


@shape.like(shape.or_null(shape.FLAG))
def flag(name: str, value: Any) -> bool:
    """True or false, also as the words that command lines send; null is false."""
    found = False if value is None else truth(value)
    if found is None:
        raise Invalid(f"{name} must be true or false, not {short(value)}.")
    return found


@shape.like(shape.or_null(shape.FLAG))
def optional_flag(name: str, value: Any) -> bool | None:
    """True, false or null."""
    return None if value is None else flag(name, value)


@shape.like(shape.or_null(shape.FLAG))
def flag_or_true(name: str, value: Any) -> bool:
    """True or false; null is true."""
    return True if value is None else flag(name, value)


@shape.like(shape.or_null(shape.UUID))
def uuid(name: str, value: Any) -> str | None:
    """A UUID, or null."""
    if value is None:
        return None
    if not isinstance(value, str) or not is_uuid(value):
        raise Invalid(f"{name} must be a UUID, not {short(value)}.")
    return value.lower()


@shape.like(shape.or_null(shape.OBJECT))
def obj(name: str, value: Any) -> dict[str, Any]:
    """A JSON object; null is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Invalid(f"{name} must be an object, not {kind(value)}.")
    return value


@shape.like(shape.text(pattern="[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}"))
def mac(name: str, value: Any) -> str:
    """A MAC address, in lower case."""
    if isinstance(value, str) and MAC.match(value.lower()):
        return value.lower()
    raise Invalid(f"{name} must be a MAC address such as 52:54:00:12:34:56, not {short(value)}.")


def whole(least: int, most: int) -> Check:
    """A whole number between two others."""

    @shape.like({"type": "integer", "minimum": least, "maximum": most})
    def check(name: str, value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise Invalid(f"{name} must be a whole number from {least} to {most}.")
        return value

    return check


def one_of(*known: str) -> Check:
    """One of several words."""

    @shape.like(shape.words(known))
    def check(name: str, value: Any) -> str:
        if value not in known:
            raise Invalid(f"{name} must be one of {', '.join(known)}, not {short(value)}.")
        return str(value)

    return check


def list_of(inner: Check, *, most: int, least: int = 0) -> Check:
    """A list with a limit; null is an empty one."""
    items_like = {"type": ["array", "null"], "items": shape.of(inner)}

    @shape.like({**items_like, "minItems": least, "maxItems": most})
    def check(name: str, value: Any) -> list[Any]:
        items = [] if value is None else value
        if not isinstance(items, list) or not least <= len(items) <= most:
            is_list = isinstance(items, list)
            given = f"one of {len(items)}" if is_list else kind(value)
            raise Invalid(f"{name} must be a list of {least} to {most}, not {given}.")
        return [inner(name, item) for item in items]

    return check


@shape.like(shape.text(1, traits.LONGEST, "[A-Z0-9_]+"))
def trait(name: str, value: Any) -> str:
    """The name of a trait: one's own (CUSTOM_…) or one of the standard's kinds."""
    if isinstance(value, str) and traits.is_trait(value):
        return value
    raise Invalid(
        f"{name}: {short(value)} is not a trait; use CUSTOM_ followed by A to Z, 0 to 9 and _, or"
        f" a standard one ({', '.join(traits.STANDARD)}), with at most {traits.LONGEST} characters."
    )


class Form(msgspec.Struct, frozen=True):
    """What may be written of a resource: `fields` by patches too, `at_creation` only at first.
    `since` says which version brought a field, `needed` which a new one must have, `required`
    which cannot be taken away, `masked` which have secrets that are not shown.
    """

    noun: str
    since: Mapping[str, int]
    fields: Mapping[str, Check]
    at_creation: Mapping[str, Check] = msgspec.field(default_factory=dict)
    required: frozenset[str] = frozenset()
    needed: tuple[str, ...] = ()
    objects: frozenset[str] = frozenset({"extra"})
    masked: frozenset[str] = frozenset()

    def created(self, document: Any, version: int) -> dict[str, Any]:
        """The fields of a new resource."""
        if not isinstance(document, dict):
            raise self._wrong(f"the body must be an object, not {kind(document)}.")
        made = {}
        for key, value in document.items():
            check = self.fields.get(key) or self.at_creation.get(key)
            if check is None:
                raise self._wrong(f"there is no field {short(key)} that can be set at creation.")
            self.too_new(key, version)
            made[key] = self._checked(check, key, self._unmasked(key, None, value))
        for key in self.needed:
            if key not in made:
                raise self._wrong(f"{key!r} is a required property.")
        if made.get("uuid", "") is None:
            del made["uuid"]
        return made

    def new(self) -> shape.Json:
        """The form of the body that makes a new one."""
        checks = {**self.fields, **self.at_creation}
        return shape.record({n: shape.of(checks[n]) for n in sorted(checks)}, self.needed)

    def patch(self) -> shape.Json:
        """The form of a patch."""
        return shape.patches(self.fields)

    def patches(self, document: Any, version: int) -> list[Patch]:
        """A patch whose fields may be patched in this version."""
        patches = jsonpatch.parse(document)
        for item in patches:
            if item.field not in self.fields:
                only = ", ".join(sorted(self.fields))
                raise Invalid(
                    f"Cannot patch {item.text[:200]}. Only the following can be updated: {only}"
                )
            self.too_new(item.field, version)
        return patches

    def patched(self, value: Any, patches: list[Patch]) -> dict[str, Any]:
        """The fields that a patch changes, with their new values."""
        drafts: dict[str, Draft] = {}
        for patch in patches:
            name = patch.field
            if len(patch.path) > 1:
                if name not in self.objects:
                    raise Invalid(f"Cannot {patch.op} {patch.text}: {name} is not an object.")
                draft = drafts.setdefault(name, Draft(getattr(value, name)))
                draft.value = {} if draft.value is None else draft.value
                draft.apply(patch.path[1:], patch)
            elif patch.op != "remove":
                drafts[name] = Draft(patch.value)
            elif name in self.required:
                raise Invalid(f"{name} can not be removed; replace it with another one.")
            else:
                drafts[name] = Draft(None)
        made = {name: draft.value for name, draft in drafts.items()}
        for name in {patch.field for patch in patches if len(patch.path) > 1}:
            self._check_growth(name, getattr(value, name), made[name])
        return {
            name: self._checked(
                self.fields[name], name, self._unmasked(name, getattr(value, name, None), new)
            )
            for name, new in made.items()
        }

    def _check_growth(self, name: str, before: Any, after: Any) -> None:
        """A field that is patched piece by piece has no more than one request can bring: each event
        of the resource carries it. Secrets, such as a config drive, are not in those.
        """
        size = _size(after)
        if size > MIB and size > _size(before):
            raise self._wrong(
                f"{name} would have {size} bytes, and may have {MIB} at most; take something out of"
                " it, or keep it elsewhere."
            )

    def _unmasked(self, name: str, before: Any, after: Any) -> Any:
        """A field as it was meant: a mask that was read and written back changes nothing."""
        if name not in self.masked:
            return after
        try:
            return unmasked(before, after, name)
        except NothingBehind as where:
            raise self._wrong(
                f"{str(where)[:200]} has {MASK}, which is shown in place of a secret, and there is"
                " none here that it could stand for; write the secret itself."
            ) from where

    def too_new(self, name: str, version: int) -> None:
        """Refuse a field that the version does not know."""
        since = self.since.get(name, 1)
        if since > version:
            raise NotAcceptable(
                f"{name} needs API version 1.{since}; this request has 1.{version}."
            )

    def _checked(self, check: Check, name: str, value: Any) -> Any:
        try:
            return check(name, value)
        except Invalid as why:
            raise self._wrong(why.sentence) from why

    def _wrong(self, sentence: str) -> Invalid:
        return Invalid(f"Schema error for {self.noun}: {sentence}")


def _size(value: Any) -> int:
    return len(msgspec.json.encode(mask(value)))


def kind(value: Any) -> str:
    """What a JSON value is, in words."""
    names = {
        dict: "an object",
        list: "a list",
        str: "text",
        bool: "true or false",
        type(None): "null",
    }
    return names.get(type(value), "a number")
