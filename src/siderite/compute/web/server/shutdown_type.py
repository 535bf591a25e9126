"""`shutdown_type`, SOFT or HARD: from 2.901 on for whatever asks the guest first."""

from typing import Any

from siderite.compute.web import forms
from siderite.compute.web.forms import Key
from siderite.compute.web.forms import Keys
from siderite.compute.web.forms import wrong
from siderite.compute.web.versions import SHUTDOWN_TYPE
from siderite.core import shape


@shape.like({**shape.text(), "pattern": "^([Ss][Oo][Ff][Tt]|[Hh][Aa][Rr][Dd])$"})
def check(name: str, value: Any) -> bool:
    """Whether a hard shutdown is asked for."""
    if not isinstance(value, str) or value.upper() not in ("SOFT", "HARD"):
        raise wrong(name, value, "it must be SOFT or HARD")
    return value.upper() == "HARD"


KEY = Key(check, since=SHUTDOWN_TYPE)
"""For bodies that name their keys."""


ALONE: Keys = {"shutdown_type": KEY}
"""For those that have no other."""


def of_any(name: str, value: Any, version: int) -> bool:
    """For actions that take any value: below its version it is ignored, as Nova does."""
    if version < SHUTDOWN_TYPE or not isinstance(value, dict):
        return False
    return bool(forms.take(value, name, ALONE, version).get("shutdown_type"))
