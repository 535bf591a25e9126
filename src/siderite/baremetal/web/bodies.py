"""Small bodies: an object with a few known keys."""

from collections.abc import Mapping
from typing import Any

import msgspec

from siderite.core import shape
from siderite.core.errors import Invalid
from siderite.core.http import Request


class Body(msgspec.Struct, frozen=True):
    """A body with the keys of the sample, and perhaps others; both with their forms, as far as
    they are not seen from the sample.
    """

    sample: Mapping[str, Any]
    also: tuple[str, ...] = ()
    forms: Mapping[str, shape.Json] = msgspec.field(default_factory=dict)

    def form(self) -> shape.Json:
        """Its form."""
        found = {key: shape.seen(value) for key, value in self.sample.items()}
        others = dict.fromkeys(self.also, shape.ANYTHING)
        return shape.record({**found, **others, **self.forms}, list(self.sample))

    async def of(self, request: Request) -> dict[str, Any]:
        """The body of a request; anything else is refused."""
        document = await request.json()
        if not isinstance(document, dict):
            text = msgspec.json.encode(self.sample).decode()
            raise Invalid(f"The body must be an object such as {text}.")
        extra = sorted(set(document) - set(self.sample) - set(self.also))
        if extra:
            takes = ", ".join([*self.sample, *self.also])
            raise Invalid(f"Unexpected arguments: {extra[0][:80]}. This address takes: {takes}.")
        for key in self.sample:
            if key not in document:
                raise Invalid(f"Missing mandatory parameter: {key}")
        return document


def no_query(request: Request) -> None:
    """Refuse query arguments where there are none to give."""
    for key, _ in request.query:
        raise Invalid(f"Unexpected arguments: {key[:80]}. This address takes none.")
