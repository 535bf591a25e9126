"""NAME=VALUE, as operators give it once or more."""

from collections.abc import Iterable

from siderite.cli.cloud import Refused


def pairs(given: Iterable[str] | None, option: str) -> dict[str, str]:
    """The values of such an option by their names."""
    found = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise Refused(f"{option} {text!r} must be NAME=VALUE.")
        found[name] = value
    return found
