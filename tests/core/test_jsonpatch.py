"""A patch done to a JSON value: the value stays as it was, and what is changed is copied once."""

from typing import Any

from siderite.core.jsonpatch import Draft
from siderite.core.jsonpatch import Patch
from siderite.core.jsonpatch import parse


class Counted(dict[str, Any]):
    """An object that knows how often it was copied."""

    copies = 0

    def copy(self) -> dict[str, Any]:
        self.copies += 1
        return dict(self)


def patched(value: Any, patches: list[Patch]) -> Any:
    """What becomes of a value that is the field `extra`."""
    draft = Draft(value)
    for patch in patches:
        draft.apply(patch.path[1:], patch)
    return draft.value


def adds(*ops: tuple[str, Any]) -> list[Patch]:
    """A patch that adds these values at these paths."""
    return parse([{"op": "add", "path": path, "value": value} for path, value in ops])


def test_neither_the_value_nor_the_patch_is_changed_by_it() -> None:
    value: Any = {"o": {"list": [1, {"k": 1}]}, "same": {}}
    patch = adds(
        ("/extra/o/list/1/k", 2), ("/extra/new", {"list": []}), ("/extra/new/list/-", 1),
        ("/extra/o/list/0", 0),
    )  # fmt: skip
    after = {"o": {"list": [0, 1, {"k": 2}]}, "same": {}, "new": {"list": [1]}}
    for _ in range(2):  # who loses a race does it again
        found = patched(value, patch)
        assert found == after
        assert found["same"] is value["same"]
    assert value == {"o": {"list": [1, {"k": 1}]}, "same": {}}


def test_what_many_operations_change_is_copied_once() -> None:
    value = Counted(inner=Counted())
    found = patched(value, adds(*((f"/extra/inner/{n}", n) for n in range(1000))))
    assert len(found["inner"]) == 1000
    assert (value.copies, value["inner"].copies) == (1, 1)
