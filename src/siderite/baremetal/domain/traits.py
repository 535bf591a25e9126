"""Traits: names of what a machine can do."""

import re

MOST = 50
"""How many a node may have."""
LONGEST = 255
STANDARD = ("HW_", "STORAGE_", "COMPUTE_", "MISC_", "OWNER_")
"""How the standard ones begin; others begin with CUSTOM_."""

_TRAIT = re.compile(rf"(CUSTOM_|{'|'.join(STANDARD)})[A-Z0-9_]+\Z")


def is_trait(name: str) -> bool:
    """Whether it can be the name of a trait."""
    return len(name) <= LONGEST and _TRAIT.match(name) is not None
