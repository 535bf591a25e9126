"""What may be asked of the step `firmware.update`: which part gets which image."""

import re
from typing import Any
from urllib.parse import urlsplit

import msgspec

from siderite.core.errors import Invalid

_COMPONENT = re.compile(r"bios\Z|bmc\Z|nic:[!-~]{1,200}\Z")
_KEYS = ("component", "url", "wait")
_LONGEST_URL = 2000
_LONGEST_S = 86400
_MOST = 50


class Update(msgspec.Struct, frozen=True):
    """New firmware for a part; `wait` is how many seconds it is given afterwards."""

    component: str
    url: str
    wait: float | None = None


def updates(settings: Any) -> list[Update]:
    """The argument `settings` of the step; Invalid says what is wrong with it."""
    if not isinstance(settings, list) or not 0 < len(settings) <= _MOST:
        raise Invalid(
            "firmware.update takes args.settings, a list of 1 to"
            f' {_MOST} objects such as {{"component": "bmc", "url": "https://…"}}.'
        )
    return [_update(one) for one in settings]


def _update(one: Any) -> Update:
    if not isinstance(one, dict) or not {"component", "url"} <= set(one):
        raise Invalid("Each of firmware.update's settings is an object with component and url.")
    extra = sorted(set(one) - set(_KEYS))
    if extra:
        raise Invalid(
            f"firmware.update's settings have no {extra[0][:40]!r}; they have {', '.join(_KEYS)}."
            " The BMC itself checks an image."
        )
    component, wait = one["component"], one.get("wait")
    if not isinstance(component, str) or not _COMPONENT.match(component):
        raise Invalid(
            "component of firmware.update must be bios, bmc or nic:ID, as the node's firmware"
            f" lists them, not {str(component)[:80]!r}."
        )
    if wait is not None and (
        isinstance(wait, bool) or not isinstance(wait, int | float) or not 0 <= wait <= _LONGEST_S
    ):
        raise Invalid(f"wait of firmware.update must be seconds from 0 to {_LONGEST_S}.")
    return Update(component, _url(one["url"]), wait)


def _url(url: Any) -> str:
    try:
        parts = urlsplit(url) if isinstance(url, str) and len(url) <= _LONGEST_URL else None
        fine = parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname)
        fine = fine and (parts is None or parts.port != 0)
    except ValueError:
        fine = False
    if not fine or not url.isascii() or not url.isprintable() or " " in url:
        raise Invalid(
            "url of firmware.update must be an http or https address that the BMC reaches, of at"
            f" most {_LONGEST_URL} characters of ASCII."
        )
    if "@" in urlsplit(url).netloc:
        raise Invalid("url of firmware.update must hold no user or password: it is shown.")
    return str(url)
