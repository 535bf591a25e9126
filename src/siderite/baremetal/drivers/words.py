"""What machines say, as it can be kept: some pad their names with NULs, or cut them in the middle
of a character, and no database stores either.
"""

from typing import Any


def storable(said: Any) -> Any:
    """The same, of whatever JSON has, without NULs and halves of characters."""
    if isinstance(said, str):
        return said.replace("\0", "").encode("utf-8", "replace").decode()
    if isinstance(said, list):
        return [storable(one) for one in said]
    if isinstance(said, dict):
        return {storable(name): storable(value) for name, value in said.items()}
    return said
