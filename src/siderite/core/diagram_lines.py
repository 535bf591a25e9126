"""What a diagram consists of, boxes and lines, and the few shapes that a line can have.

Used by `core.diagram_layout`, which decides which shape each row of a machine gets.
"""

import msgspec

from siderite.core.machine import Row
from siderite.core.machine import State

CARD, COLUMN, BAR = 128, 90, 36
"""The width of a card, the space beside it, the height of a bar."""
_LONG = 100
_NEAR, _FAR = 32, 49
"""Where lines to cards that are not level meet the edge of an active state's card."""


class Box(msgspec.Struct):
    """A state on paper. `x` and `y` are its middle; `exits` are the rows written on it."""

    state: State
    is_bar: bool = False
    x: float = 0.0
    y: float = 0.0
    w: float = CARD
    exits: list[tuple[Row, ...]] = msgspec.field(default_factory=list)

    @property
    def h(self) -> float:
        return BAR if self.is_bar else 30 + 13 * len(self.exits)

    @property
    def top(self) -> float:
        return self.y - self.h / 2

    @property
    def bottom(self) -> float:
        return self.y + self.h / 2

    @property
    def right(self) -> float:
        return self.x + self.w / 2

    @property
    def left(self) -> float:
        return self.x - self.w / 2


class Line(msgspec.Struct, frozen=True):
    """Rows with the same ends, drawn as one line: its path, and where its label stands."""

    rows: tuple[Row, ...]
    path: str
    x: float
    y: float
    anchor: str
    mark: str = ""


def vertical(rows: tuple[Row, ...], x: float, one: Box, other: Box, *, left: bool) -> Line:
    """Straight up or down. The label is next to the bar, if there is one; in the middle between
    cards of a block; near its end where one kind of work goes over into another.
    """
    down = other.y > one.y
    start, end = (one.bottom, other.top) if down else (one.top, other.bottom)
    y = (start + end) / 2 + 4
    if one.is_bar != other.is_bar:
        bar, card = (one, other) if one.is_bar else (other, one)
        y = bar.bottom + 18 if card.y > bar.y else bar.top - 11
    elif abs(end - start) > _LONG and not one.is_bar:
        y = end + (-16 if down else 22)
    return Line(rows, f"M{x:g} {start:g}V{end:g}", x + (-6 if left else 6), y,
                "end" if left else "start")  # fmt: skip


def aside(rows: tuple[Row, ...], head: Box, box: Box, slot: int, *, out: bool) -> Line:
    """Between an active state and one to its right: straight if level, else round one corner."""
    dy = -7 if out else 7
    if slot == 0:
        y = head.y + dy
        ends = (head.right, box.left) if out else (box.left, head.right)
        x = (head.right + box.left) / 2
        return Line(rows, f"M{ends[0]:g} {y:g}H{ends[1]:g}", x, y + (-5 if out else 13), "middle")
    up = slot < 0
    y = box.y + (dy if up else -dy)
    x = head.x + (_NEAR if out else _FAR) - 4 * (abs(slot) - 1)
    edge, r = (head.top, 16) if up else (head.bottom, -16)
    if out:
        path = f"M{x:g} {edge:g}V{y + r:g}Q{x:g} {y:g} {x + 16:g} {y:g}H{box.left:g}"
    else:
        path = f"M{box.left:g} {y:g}H{x + 16:g}Q{x:g} {y:g} {x:g} {y + r:g}V{edge:g}"
    return Line(rows, path, box.left - 8, y + (-5 if out is up else 13), "end")


def around(rows: tuple[Row, ...], one: Box, other: Box, *, both: bool) -> Line:
    """Past the cards in between, on their right. Of two such ways the upward one is the inner."""
    up = other.y < one.y
    far, inset = (20, -6) if up or not both else (34, 6)
    start, end = (one.y + inset, other.y - inset) if up else (one.y - inset, other.y + inset)
    turn = -12 if up else 12
    x = one.right + far
    path = (
        f"M{one.right:g} {start:g}H{x - 12:g}Q{x:g} {start:g} {x:g} {start + turn:g}"
        f"V{end - turn:g}Q{x:g} {end:g} {x - 12:g} {end:g}H{other.right:g}"
    )
    y = (start + end) / 2 + 4 + (0 if not both else -8 if up else 8)
    mark = "" if not both else "↑ " if up else "↓ "
    return Line(rows, path, one.right + (40 if both else 26), y, "start", mark)


def detour(rows: tuple[Row, ...], card: Box, bar: Box) -> Line:
    """To a bar that another card stands before, on its right."""
    down = bar.y > card.y
    x, end, turn = card.right + 20, (bar.top if down else bar.bottom), (12 if down else -12)
    path = f"M{card.right:g} {card.y:g}H{x - 12:g}Q{x:g} {card.y:g} {x:g} {card.y + turn:g}V{end:g}"
    return Line(rows, path, x + 6, end + (-11 if down else 18), "start")
