"""Reading a query string and path ids: filters as clients spell them."""

from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.http import Request

_MAX_ID = 255


def text(request: Request, name: str) -> str | None:
    """The value of a filter; None if it is not given."""
    for key, value in request.query:
        if key == name:
            if "\0" in value:
                raise Invalid(f"The query's {name} has a NUL character; no name or id has one.")
            return value
    return None


def flag(request: Request, name: str) -> bool:
    """A switch: on if it is there, unless it says otherwise."""
    value = text(request, name)
    return value is not None and value.lower() not in ("0", "false", "no", "off")


def choice(request: Request, name: str) -> bool | None:
    """A yes-or-no filter; None if it is not given."""
    return None if text(request, name) is None else flag(request, name)


def path_id(request: Request, position: int = 0) -> str:
    """An id out of the path."""
    given = request.params[position]
    if "\0" in given or len(given) > _MAX_ID:
        raise NotFound("There is nothing of that id: ids have no NUL and at most 255 characters.")
    return given
