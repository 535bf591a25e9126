"""What a reader may ask for, and a sentence about each thing that cannot be."""

import re
from collections.abc import Sequence

import msgspec

from siderite.core import eventlog
from siderite.core.check import is_whole
from siderite.core.errors import Forbidden
from siderite.core.errors import Gone
from siderite.core.errors import Invalid
from siderite.core.eventlog import Wanted
from siderite.core.http import Request
from siderite.core.project import need_project
from siderite.core.store import Store
from siderite.core.who import Who

USUAL_LIMIT = 100
MOST = 1000
_GLOB = re.compile(r"[a-z0-9_*?]+(\.[a-z0-9_*?]+)*\Z")
_LONGEST = 255
_ARGUMENTS = ("after", "last", "limit", "project", "resource", "type")


class Asked(msgspec.Struct, frozen=True):
    """What was asked for; `limit` and `last` are None if they were not said. The resource that is
    wanted is as it was said: by an id or by a name.
    """

    wanted: Wanted
    after: int
    limit: int | None
    last: int | None


def parse(request: Request, *, known: Sequence[str]) -> Asked:
    """The query's arguments; `known` are the forms of event types that there are, as globs."""
    given = arguments(request, _ARGUMENTS)
    most, last = given.get("limit"), given.get("last")
    if last is not None and given.keys() & {"after", "limit"}:
        raise Invalid("last is the newest so many: leave out after and limit.")
    return Asked(
        Wanted(
            event_type=event_type(given.get("type"), known),
            resource=resource(given.get("resource")),
            project=project(given.get("project"), request.who),
        ),
        after=number("after", given.get("after", "0")),
        limit=None if most is None else limit("limit", most),
        last=None if last is None else limit("last", last),
    )


def arguments(request: Request, names: Sequence[str]) -> dict[str, str]:
    """The query's arguments, which must be of these names, each once."""
    given: dict[str, str] = {}
    for name, text in request.query:
        if name not in names:
            there_are = ", ".join(names) or "none here"
            raise Invalid(f"There is no argument {name[:40]!r}; there are {there_are}.")
        if name in given:
            raise Invalid(f"{name} is given twice; give it once.")
        given[name] = text
    return given


def number(name: str, text: str) -> int:
    """A number of the log, or 0."""
    if not is_whole(text):
        raise Invalid(
            f"{name} must be a number of the log, such as the last answer's next, or 0;"
            f" not {text[:40]!r}."
        )
    return int(text)


def not_beyond(after: int, newest: int) -> None:
    """Refuse a number that was never given out: its reader follows another log."""
    if after > newest:
        raise Invalid(
            f"Number {after} is beyond the end of the log, whose newest is {newest};"
            " if the log was made anew, begin with after=0."
        )


async def not_pruned(store: Store, after: int) -> None:
    """Refuse a number whose followers are no longer all there; 0 is "whatever there is"."""
    oldest = await eventlog.oldest(store)
    if 0 < after < oldest - 1:
        raise Gone(
            f"What came after {after} is no longer all in the log, which begins with {oldest};"
            " begin with after=0, and read what you missed from the APIs."
        )


def limit(name: str, text: str) -> int:
    """How much to answer with."""
    if not is_whole(text) or not 1 <= int(text) <= MOST:
        raise Invalid(f"{name} must be a number from 1 to {MOST}, not {text[:40]!r}.")
    return int(text)


def resource(text: str | None) -> str | None:
    """What can be an id or a name; `named` knows which."""
    if text is not None and not 1 <= len(text) <= _LONGEST:
        raise Invalid(f"resource must be an id or a name, of at most {_LONGEST} characters.")
    return text


def check_project(who: Who) -> None:
    """Refuse a token for no project, unless it sees all of them."""
    if not who.sees_all:
        need_project(who, "Events and webhooks are a project's")


def project(text: str | None, who: Who) -> str | None:
    """The project to whose facts the answer is cut; what others' projects do is not shown."""
    if text is not None and not 1 <= len(text) <= _LONGEST:
        raise Invalid(f"project must be a project's id, of at most {_LONGEST} characters.")
    if who.sees_all:
        return text
    check_project(who)
    if text not in (None, who.project_id):
        raise Forbidden("You see events of your own project only; leave out project.")
    return who.project_id


def event_type(text: str | None, known: Sequence[str]) -> str | None:
    """A glob that some event's type can match."""
    if text is None:
        return None
    if len(text) > _LONGEST or not _GLOB.match(text):
        raise Invalid(
            "type must be an event type such as baremetal.node.create.end, of lower case words"
            f" with dots between them; * stands for any text, ? for one character; not"
            f" {text[:40]!r}."
        )
    if not any(overlap(text, form) for form in known):
        raise Invalid(f"No event has a type like {text[:80]!r}; there are {', '.join(known)}.")
    return text


def overlap(one: str, other: str) -> bool:
    """Whether some text matches both globs: they are walked side by side, and a `*` may stay where
    it is while the other moves on.
    """
    seen: set[tuple[int, int]] = set()
    todo = [(0, 0)]
    while todo:
        i, j = place = todo.pop()
        if place in seen:
            continue
        seen.add(place)
        a, b = one[i : i + 1], other[j : j + 1]
        if not a and not b:
            return True
        if a == "*":
            todo.append((i + 1, j))
        if b == "*":
            todo.append((i, j + 1))
        if a and b:
            if "*" in (a, b):
                todo.append((i + (a != "*"), j + (b != "*")))
            elif a == b or "?" in (a, b):
                todo.append((i + 1, j + 1))
    return False
