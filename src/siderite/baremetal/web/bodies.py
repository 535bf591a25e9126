"""Small bodies: an object with a few known keys."""

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import msgspec

from siderite.core.errors import Invalid
from siderite.core.http import Request


async def object_of(
    request: Request, sample: Mapping[str, Any], also: Sequence[str] = ()
) -> dict[str, Any]:
    """The body, which has the keys of the sample and perhaps others; anything else is refused."""
    document = await request.json()
    if not isinstance(document, dict):
        text = msgspec.json.encode(sample).decode()
        raise Invalid(f"The body must be an object such as {text}.")
    extra = sorted(set(document) - set(sample) - set(also))
    if extra:
        takes = ", ".join([*sample, *also])
        raise Invalid(f"Unexpected arguments: {extra[0][:80]}. This address takes: {takes}.")
    for key in sample:
        if key not in document:
            raise Invalid(f"Missing mandatory parameter: {key}")
    return document


def no_query(request: Request) -> None:
    """Refuse query arguments where there are none to give."""
    for key, _ in request.query:
        raise Invalid(f"Unexpected arguments: {key[:80]}. This address takes none.")
