"""What a Glance elsewhere answers when it does not do what it was asked, in our words. Pure."""

import re

import httpx

from siderite.core.errors import Forbidden
from siderite.core.errors import Invalid
from siderite.core.errors import Unavailable

_BAD_REQUEST = 400
_AGAIN = (401, 408, 429)
"""Refusals that say nothing about what was asked; 401 as our token may have ended meanwhile."""


def check_passing(answer: httpx.Response) -> None:
    """Raise what may be otherwise in a moment."""
    if answer.is_server_error or answer.status_code in _AGAIN:
        raise refused(answer)


def not_taken(image: str, answer: httpx.Response) -> str:
    """Why an image has not got its data."""
    return (
        f"The image service does not take the data of image {image}: it answered"
        f" {answer.status_code}; its log or its quota says why."
    )


def silent(why: httpx.HTTPError) -> Unavailable:
    """Nobody answers."""
    said = str(why) or type(why).__name__
    return Unavailable(f"The image service does not answer: {said}; try again.")


def unlisted(answer: httpx.Response, marker: str | None) -> Invalid:
    """The refusal of a list: for its marker if there is one, else for a filter."""
    if marker is not None:
        return Invalid(f"marker [{marker[:80]}] not found. Ask from the start.")
    return Invalid(f"The image service takes no such filter: {_said(answer)}. Ask for others.")


def unmade(answer: httpx.Response) -> Invalid | Forbidden:
    """The refusal of a new record: for what is in it, or for the project."""
    kind = Invalid if answer.status_code == _BAD_REQUEST else Forbidden
    return kind(
        f"The image service makes no such image: {_said(answer)}. Change its name or metadata, or"
        " delete others if it has a quota."
    )


def _said(answer: httpx.Response) -> str:
    """What it says in words, without the page around them."""
    return " ".join(re.sub("<[^>]*>", " ", answer.text).split()).rstrip(".")[:300]


def refused(answer: httpx.Response) -> Unavailable:
    """It was refused, and may not be in a moment."""
    return Unavailable(f"The image service answered {answer.status_code}; try again.")
