"""What callers may send: the nested login body, and the attributes of users and projects.

Every wrong type is an `Invalid` that says where it is and what would be right. Values are never
repeated in a sentence: one of them may be a password.
"""

from collections.abc import Callable
from collections.abc import Mapping
from typing import Any
from typing import TypeVar

import msgspec

from siderite.core import shape
from siderite.core.check import or_null
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.identity import passwords
from siderite.identity.domain import DEFAULT
from siderite.identity.usecases.projects import ProjectFields
from siderite.identity.usecases.users import UserFields

MAX_NAME = 255
MAX_PROJECT_NAME = 64
MAX_DESCRIPTION = 4096
MAX_TAGS = 80

T = TypeVar("T")
Check = Callable[[str, object], None]
View = Callable[..., dict[str, Any]]


def convert(value: object, kind: type[T], example: str) -> T:
    """A JSON value as a typed one; `example` shows what would have been right."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as why:
        raise Invalid(f"The body does not fit: {why}. It should look like {example}.") from why


class _NewPassword(msgspec.Struct):
    password: str
    original_password: str


class PasswordBody(msgspec.Struct):
    """The body that changes a password."""

    user: _NewPassword


def password_change(body: object) -> tuple[str, str]:
    """The old and the new password."""
    example = '{"user": {"original_password": "…", "password": "…"}}'
    given = convert(body, PasswordBody, example).user
    _password("password", given.password)
    return given.original_password, given.password


def _text(limit: int, *, is_empty_fine: bool = True) -> Check:
    @shape.like(shape.text(0 if is_empty_fine else 1, limit))
    def check(name: str, value: object) -> None:
        if not isinstance(value, str):
            raise Invalid(f"{name} must be a text.")
        if len(value) > limit or not (value.strip() or is_empty_fine):
            raise Invalid(f"{name} must have 1 to {limit} characters and not only blanks.")

    return check


@shape.like({"type": "boolean"})
def _flag(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise Invalid(f"{name} must be true or false.")


@shape.like(shape.text(1, passwords.MAX_LENGTH))
def _password(name: str, value: object) -> None:
    _text(passwords.MAX_LENGTH)(name, value)
    if not value:
        raise Invalid(f"{name} must not be empty.")


@shape.like(shape.or_null(shape.words([DEFAULT.id])))
def _the_domain(name: str, value: object) -> None:
    if value is not None and value != DEFAULT.id:
        raise Invalid(f"{name} must be {DEFAULT.id!r}: there is one domain here, and no nesting.")


def _known_domain(name: str, value: object) -> None:
    """A user of a domain that is not there is one of nothing, which clients tell by the 404."""
    if isinstance(value, str) and value != DEFAULT.id:
        raise NotFound(f"{name} names no domain; there is one here, {DEFAULT.id!r}.")
    _the_domain(name, value)


@shape.like({"type": "boolean", "enum": [False]})
def _false(name: str, value: object) -> None:
    if value is not False:
        raise Invalid(f"{name} must be false: projects that act as domains are not supported.")


@shape.like({"type": "array", "items": shape.text(1, MAX_NAME), "maxItems": MAX_TAGS})
def _tags(name: str, value: object) -> None:
    if not isinstance(value, list) or len(value) > MAX_TAGS:
        raise Invalid(f"{name} must be a list of up to {MAX_TAGS} texts.")
    for one in value:
        _text(MAX_NAME, is_empty_fine=False)(f"each of {name}", one)
        if "/" in one or "," in one:
            raise Invalid(f"{name} must be texts without / and commas.")


@shape.like(shape.OBJECT)
def _options(name: str, value: object) -> None:
    if not isinstance(value, dict):
        raise Invalid(f"{name} must be an object.")


_USER: dict[str, Check] = {
    "name": _text(MAX_NAME, is_empty_fine=False),
    "enabled": _flag,
    "password": or_null(_password),
    "default_project_id": or_null(_text(MAX_NAME)),
}
_PROJECT: dict[str, Check] = {
    "name": _text(MAX_PROJECT_NAME, is_empty_fine=False),
    "enabled": _flag,
    "description": _text(MAX_DESCRIPTION),
}
# Attributes that may be said but only in one way, as there is one domain.
_FIXED_OF_USER: dict[str, Check] = {"domain_id": _the_domain}
_FIXED_OF_PROJECT: dict[str, Check] = {
    "domain_id": _the_domain,
    "parent_id": _the_domain,
    "is_domain": _false,
}
# Attributes that are only kept, but that clients need in the right form.
_KEPT: dict[str, Check] = {"options": _options, "tags": _tags}
_SHOWN_ONLY = frozenset({"id", "links", "password_expires_at", "original_password"})


def form(noun: str, *, is_new: bool = False) -> shape.Shape:
    """The form of the body that makes or changes a user or a project."""

    def told() -> shape.Json:
        checks = _USER | _FIXED_OF_USER if noun == "user" else _PROJECT | _FIXED_OF_PROJECT
        checks = checks | _KEPT
        fields = {name: shape.of(check) for name, check in checks.items()}
        if noun == "project":
            fields["description"] = shape.or_null(fields["description"])
        return shape.under(noun, shape.record(fields, ["name"] if is_new else [], others=True))

    return told


def shown(noun: str, view: View, kind: type[Any]) -> shape.Shape:
    """The form of one on the wire."""
    return lambda: shape.under(noun, _seen(view, kind))


def listed(noun: str, view: View, kind: type[Any]) -> shape.Shape:
    """The form of a list of them."""

    def told() -> shape.Json:
        return items(noun, *_examples(view, kind))

    return told


def items(noun: str, *found: Any) -> shape.Json:
    """The form of a list of such as these."""
    links = {"self": "", "previous": None, "next": None}
    return shape.record({noun: {"type": "array", "items": shape.wire(*found)},
                         "links": shape.wire(links, {**links, "next": ""}),
                         "truncated": shape.wire(True)}, [noun, "links"])  # fmt: skip


def _seen(view: View, kind: type[Any]) -> shape.Json:
    return shape.seen(*_examples(view, kind))


def _examples(view: View, kind: type[Any]) -> list[Any]:
    """With and without what is only kept, of which the options may be any."""
    made = shape.both(kind)
    if hasattr(made[0], "extra"):
        made += shape.both(kind, extra={"options": shape.made_up(dict[str, Any])})
    return [view("", one) for one in made]


def new_user(body: object) -> tuple[UserFields, dict[str, Any]]:
    """Attributes of a user to be made."""
    return _attributes(body, "user", _USER, {"domain_id": _known_domain}, is_new=True)


def user_change(body: object, ident: str) -> tuple[UserFields, dict[str, Any]]:
    """Attributes of a user to be changed."""
    _same(body, "user", ident)
    return _attributes(body, "user", _USER, _FIXED_OF_USER, is_new=False)


def new_project(body: object) -> tuple[ProjectFields, dict[str, Any]]:
    """Attributes of a project to be made."""
    return _attributes(body, "project", _PROJECT, _FIXED_OF_PROJECT, is_new=True)


def project_change(body: object, ident: str) -> tuple[ProjectFields, dict[str, Any]]:
    """Attributes of a project to be changed."""
    _same(body, "project", ident)
    return _attributes(body, "project", _PROJECT, _FIXED_OF_PROJECT, is_new=False)


def _same(body: object, noun: str, ident: str) -> None:
    """An id in a body is that of the address: it is not what can be changed."""
    given = body.get(noun) if isinstance(body, dict) else None
    if isinstance(given, dict) and given.get("id", ident) != ident:
        raise Invalid(f"The id of a {noun} cannot be changed; leave it out of the body.")


class TagsBody(msgspec.Struct):
    """The body that gives a project its tags."""

    tags: list[str]


def tags(body: object) -> list[str]:
    """The tags of a project, each once."""
    found = convert(body, TagsBody, '{"tags": ["…"]}').tags
    _tags("tags", found)
    return list(dict.fromkeys(found))


def with_tag(tag: str, before: list[str]) -> list[str]:
    """The tags of a project, and one more."""
    return tags({"tags": [*before, tag]})


def _attributes(
    body: object,
    noun: str,
    checks: Mapping[str, Check],
    fixed: Mapping[str, Check],
    *,
    is_new: bool,
) -> tuple[Any, dict[str, Any]]:
    """Attributes that we read, checked; and all others, which are kept and shown as they came."""
    given = body.get(noun) if isinstance(body, dict) else None
    if not isinstance(given, dict):
        raise Invalid(f'The body must look like {{"{noun}": {{"name": "…"}}}}.')
    if is_new and "name" not in given:
        raise Invalid(f"The {noun} needs a name; add it to the body.")
    fields: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for name, value in given.items():
        if name in checks:
            if name == "description" and value is None:
                value = ""  # noqa: PLW2901 - clients send null for "none"
            checks[name](f"{noun}.{name}", value)
            fields[name] = value
        elif name in fixed:
            fixed[name](f"{noun}.{name}", value)
        elif name not in _SHOWN_ONLY:
            if name in _KEPT:
                _KEPT[name](f"{noun}.{name}", value)
            extra[name] = value
    return fields, extra
