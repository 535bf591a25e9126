"""Metadata on the wire: servers and images are asked for it in the same way."""

from collections.abc import Mapping

from siderite.compute.web import forms
from siderite.core import shape
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.http import Request


def form() -> shape.Json:
    """The form of all of it."""
    return shape.under("metadata", shape.of(forms.metadata))


def item_form() -> shape.Json:
    """The form of one item of it."""
    return shape.under("meta", shape.of(forms.metadata))


async def asked(request: Request) -> dict[str, str]:
    """What is to be written."""
    return dict(await forms.only(request, "metadata", forms.metadata))


async def asked_item(request: Request) -> dict[str, str]:
    """The one item that is to be written, which the address names too."""
    found = dict(await forms.only(request, "meta", forms.metadata))
    if list(found) != [request.params[1]]:
        raise Invalid("Request body and URI mismatch")
    return found


def item(found: Mapping[str, str], key: str) -> dict[str, str]:
    """One item."""
    if key not in found:
        raise _no_item(key)
    return {key: found[key]}


def without(found: Mapping[str, str], key: str) -> dict[str, str]:
    """All but one item, which must be there."""
    if key not in found:
        raise _no_item(key)
    return {name: value for name, value in found.items() if name != key}


def _no_item(key: str) -> NotFound:
    return NotFound(f"Metadata item was not found: {key[:80]}. GET its metadata shows all.")
