"""What BMCs say with their answers, beside the page that was asked for."""

import json
import re
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Any

from siderite.baremetal.drivers.words import storable
from siderite.core.clock import now as wall_clock

_WRONG = 400
_ODD = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
"""How JSON writes NULs and halves of characters; whole ones may be written so, too."""
SOONEST_S, LATEST_S = 1.0, 30.0
"""A BMC that asks for less, or for more, than this is asked again after this."""


def patience(answer: Any) -> float | None:
    """How many seconds a BMC wants to be left alone for, if it says so; within reason, for one that
    wants an hour would outlast whatever waits for it.
    """
    said = str(answer.headers.get("Retry-After") or "").strip()
    seconds: float | None = float(said) if said.isdecimal() and said.isascii() else None
    if seconds is None and said:
        until, now = _time(said), _time(answer.headers.get("Date"))
        # By its own clock, which may be years off.
        seconds = None if until is None else until - (wall_clock() if now is None else now)
    return None if seconds is None else min(max(seconds, SOONEST_S), LATEST_S)


def or_else(read: Callable[[], Any], otherwise: Any) -> Any:
    """What is read with sushy; if it is not there, or makes no sense, `otherwise`. A BMC that does
    not answer any more has said nothing about it.
    """
    from sushy import exceptions  # noqa: PLC0415

    try:
        return read()
    except exceptions.ConnectionError:
        raise
    except (exceptions.SushyError, AttributeError, LookupError, TypeError, ValueError):
        return otherwise


def put_in_form(answer: Any) -> None:
    """Have an answer in a form that can be gone on with: without characters that nobody can store;
    and an error in Redfish's form, for sushy falls over others, and what was refused, or is not
    there, would seem to make no sense.
    """
    is_error, has_odd = answer.status_code >= _WRONG, _ODD.search(answer.content) is not None
    if not is_error and not has_odd:
        return
    try:
        said = answer.json()
    except ValueError:
        return  # no JSON at all: that it knows
    if has_odd:
        said = storable(said)
        answer._content = json.dumps(said).encode()
    if is_error and not _is_formed(said):
        text = said if isinstance(said, str) else json.dumps(said)
        answer._content = json.dumps({"error": {"message": text}}).encode()


def _is_formed(said: Any) -> bool:
    error = said.get("error", {}) if isinstance(said, dict) else None
    if not isinstance(error, dict):
        return False
    details = error.get("@Message.ExtendedInfo") or {}
    each = details if isinstance(details, list) else [details]
    return all(isinstance(one, dict) for one in each)


def _time(said: str | None) -> float | None:
    try:
        return parsedate_to_datetime(said or "").timestamp()
    except (ValueError, OverflowError, OSError):
        return None
