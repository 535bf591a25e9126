"""What those are not told who see their own project only: each room says what it keeps to those who
see all, by kind of resource. It holds for every way out of the log that leads to them.
"""

from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

import msgspec

from siderite.core.eventlog import Entry

Hide = Callable[[dict[str, Any]], dict[str, Any]]
"""The same fields without what is hidden, of a payload or of what the index made of some."""


class Discretion(msgspec.Struct, frozen=True):
    """What is hidden, by kind of resource."""

    kinds: Mapping[str, Hide] = msgspec.field(default_factory=dict)

    def of(self, entry: Entry) -> Entry:
        """A fact as they are told it."""
        hide = self.kinds.get(entry.resource_type)
        if hide is None:
            return entry
        said = msgspec.json.encode(hide(msgspec.json.decode(entry.payload)))
        return msgspec.structs.replace(entry, payload=msgspec.Raw(said))

    def document(self, kind: str, doc: dict[str, Any]) -> dict[str, Any]:
        """What the index knows of a resource, as they are told it."""
        hide = self.kinds.get(kind)
        return doc if hide is None else hide(doc)
