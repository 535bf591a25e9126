"""Attributes of users and projects that are kept and shown, but not read."""

from collections.abc import Mapping
from typing import Any

import msgspec

from siderite.core.errors import Invalid

MAX_BYTES = 16 * 1024


def merged(noun: str, kept: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """What was kept with what is given now, as long as there is room for both."""
    both = {**kept, **given}
    if given and len(msgspec.json.encode(both)) > MAX_BYTES:
        raise Invalid(f"The {noun}'s further attributes are over {MAX_BYTES // 1024} KiB.")
    return both
