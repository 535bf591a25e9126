"""Where a machine's states and rows go on paper, computed from the table alone.

Settled states are full-width bars, ranked by the shortest way from the first state. Each kind of
work is a block between the bars it leads from and to: the active state on the left, what it can
wait, hold or fail in stacked to its right. A row that would have to cross another block is not
drawn as a line but written on the card of the state it leaves (`exits`). Nothing is left out.
"""

from collections import deque
from collections.abc import Iterable
from collections.abc import Sequence

import msgspec

from siderite.core.diagram_lines import BAR
from siderite.core.diagram_lines import CARD
from siderite.core.diagram_lines import COLUMN
from siderite.core.diagram_lines import Box
from siderite.core.diagram_lines import Line
from siderite.core.diagram_lines import around
from siderite.core.diagram_lines import aside
from siderite.core.diagram_lines import detour
from siderite.core.diagram_lines import vertical
from siderite.core.machine import Kind
from siderite.core.machine import Machine
from siderite.core.machine import Row

PAD, GAP, MARGIN = 40, 40, 24
"""A block's left edge, the space between rows, the outer margin."""
_COME, _GO, _HAND_OVER = -14, 6, -38
"""Where lines meet the upper and lower edge of an active state's card, from its middle."""


class Block(msgspec.Struct):
    """One kind of work: its active state, the others by slot (0 is level with it), and the bars
    that it leads from and to. A block without states is a row from bar to bar.
    """

    first: int
    last: int
    gap: int
    head: Box | None = None
    slots: dict[int, Box] = msgspec.field(default_factory=dict)
    hands: bool = False
    x: float = 0.0

    @property
    def gaps(self) -> range:
        return range(min(self.first, self.gap), max(self.last, self.gap + 1))


class Layout(msgspec.Struct):
    """All of it."""

    width: float
    height: float
    boxes: list[Box]
    lines: list[Line]


def lay_out(machine: Machine) -> Layout:
    """Bars, blocks, then lines."""
    plan = _Plan(machine)
    plan.place()
    plan.draw()
    boxes = [plan.box[name] for name in machine.states]
    return Layout(plan.width, plan.bars[-1].bottom + MARGIN, boxes, plan.lines)


class _Plan:
    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.box = {name: Box(state) for name, state in machine.states.items()}
        self.bars = [self.box[name] for name in _spine(machine)]
        self.rank = {bar.state.name: n for n, bar in enumerate(self.bars)}
        for bar in self.bars:
            bar.is_bar = True
        self.merged = _merged(machine)
        self.family = _families(machine, self.rank)
        self.blocks = self._blocks()
        self.lines: list[Line] = []
        self.width = 0.0

    # Which block, between which bars

    def _blocks(self) -> list[Block]:
        heads = dict.fromkeys(self.family.values())
        blocks = [self._block(head) for head in heads]
        for state, to in self.merged:
            if state in self.rank and to in self.rank and state != to:
                first, last = sorted((self.rank[state], self.rank[to]))
                blocks.append(Block(first, last, first))
        return blocks

    def _block(self, head: str) -> Block:
        state = self.machine.states[head]
        entries = [self.rank[a] for a, b in self.merged if b == head and a in self.rank]
        exits = [self.rank[b] for a, b in self.merged if a == head and b in self.rank]
        to = self.rank.get(state.target or "", (exits or entries or [0])[0])
        come = min((e for e in entries if e != to), key=lambda e: abs(e - to), default=to)
        block = Block(min(come, to), max(come, to), come if to > come else come - 1, self.box[head])
        others = [self.box[s] for s, h in self.family.items() if h == head and s != head]
        block.slots = _slots(others)
        block.hands = any(
            self._hands_over(a, b) and head in (self.family[a], self.family[b])
            for a, b in self.merged
        )
        return block

    def _hands_over(self, a: str, b: str) -> bool:
        """Whether one kind of work goes straight over into another."""
        heads = set(self.family.values())
        return a in heads and b in heads and a != b

    # Where

    def place(self) -> None:
        """Blocks side by side in the gaps between bars, then bars and rows from top to bottom."""
        ends = [float(MARGIN)] * max(1, len(self.bars) - 1)
        hanging = [b for b in self.blocks if b.head is not None and b.first == b.last]
        across = [b for b in self.blocks if b.head is None]
        rest = [b for b in self.blocks if b not in hanging and b not in across]
        rest.sort(key=lambda b: (not b.hands, b.first - b.last))
        for block in (*rest, *across, *hanging):
            if block in hanging:
                choice = [g for g in (block.first - 1, block.first) if 0 <= g < len(ends)]
                block.gap = min(choice, key=lambda g: ends[g])
            self._settle(block, ends)
        self.width = max(ends) + MARGIN
        self._write_exits()
        self._stack()

    def _settle(self, block: Block, ends: list[float]) -> None:
        self._flip(block)
        block.x = max(ends[gap] for gap in block.gaps)
        for gap in block.gaps:
            ends[gap] = block.x + (self._width(block) if gap == block.gap else PAD + CARD)
        if block.head is not None:
            block.head.x = block.x + PAD + CARD / 2
            for box in block.slots.values():
                box.x = block.head.x + CARD + COLUMN

    def _flip(self, block: Block) -> None:
        """States that lead to the bar below stand at the bottom of their block."""
        names = {box.state.name for box in block.slots.values()}
        ways = {self.rank[b] for a, b in self.merged if a in names and b in self.rank}
        if block.gap + 1 in ways and block.gap not in ways:
            block.slots = {-slot: box for slot, box in block.slots.items()}

    def _width(self, block: Block) -> float:
        if block.head is None or not block.slots:
            return PAD + CARD
        width = PAD + 2 * CARD + COLUMN + 8
        slot = {box.state.name: n for n, box in block.slots.items()}
        apart = any(a in slot and b in slot and abs(slot[a] - slot[b]) > 1 for a, b in self.merged)
        return width + (102 if apart else 40 if self._detours(block) else 0)

    def _detours(self, block: Block) -> list[tuple[str, str]]:
        """Ways to a bar that another card of the block stands in."""
        found = []
        for n, box in block.slots.items():
            for a, b in self.merged:
                if a == box.state.name and b in self.rank:
                    above = self.rank[b] <= block.gap
                    if any(m < n if above else m > n for m in block.slots):
                        found.append((a, b))
        return found

    def _stack(self) -> None:
        y = float(MARGIN)
        for n, bar in enumerate(self.bars):
            bar.x, bar.y, bar.w = self.width / 2, y + BAR / 2, self.width - 2 * MARGIN
            y += BAR + GAP
            rows: dict[int, list[Box]] = {}
            for block in self.blocks:
                if block.gap == n and block.head is not None:
                    rows.setdefault(0, []).append(block.head)
                    for slot, box in block.slots.items():
                        rows.setdefault(slot, []).append(box)
            for slot in sorted(rows):
                height = max(box.h for box in rows[slot])
                for box in rows[slot]:
                    box.y = y + height / 2
                y += height + GAP

    # What is drawn, and how

    def _write_exits(self) -> None:
        """Rows that are not drawn as lines are written on their state."""
        for (a, b), rows in self.merged.items():
            if not self._is_line(a, b):
                self.box[a].exits.append(rows)

    def _is_line(self, a: str, b: str) -> bool:
        if a == b:
            return False
        if a in self.rank and b in self.rank:
            return True
        if a not in self.rank and b not in self.rank:
            return self.family[a] == self.family[b] or self._is_hand_over(a, b)
        bar, name = (a, b) if a in self.rank else (b, a)
        block = self._block_of(name)
        reach = range(block.gap, block.gap + 2)
        if block.head is self.box[name]:
            reach = range(min(block.first, block.gap), max(block.last, block.gap + 1) + 1)
        return self.rank[bar] in reach and (name != b or block.head is self.box[name])

    def _is_hand_over(self, a: str, b: str) -> bool:
        """Two active states one above the other, with nothing but a bar in between."""
        if not self._hands_over(a, b):
            return False
        one, other = self._block_of(a), self._block_of(b)
        return abs(one.gap - other.gap) == 1 and one.x == other.x

    def _block_of(self, name: str) -> Block:
        head = self.box[self.family[name]]
        return next(block for block in self.blocks if block.head is head)

    def draw(self) -> None:
        """Every row that is a line."""
        straight = iter([block for block in self.blocks if block.head is None])
        for (a, b), rows in self.merged.items():
            if not self._is_line(a, b):
                continue
            if a in self.rank and b in self.rank:
                x = next(straight).x + PAD
                self.lines.append(vertical(rows, x, self.box[a], self.box[b], left=False))
            elif a in self.rank or b in self.rank:
                self.lines.append(self._to_bar(rows, a, b))
            elif self.family[a] != self.family[b]:
                x = self.box[a].x + _HAND_OVER
                self.lines.append(vertical(rows, x, self.box[a], self.box[b], left=True))
            else:
                self.lines.append(self._within(rows, self._block_of(a), a, b))

    def _to_bar(self, rows: tuple[Row, ...], a: str, b: str) -> Line:
        one, other = self.box[a], self.box[b]
        card = other if a in self.rank else one
        block = self._block_of(card.state.name)
        if block.head is card:
            x = card.x + (_COME if card is other else _GO)
            return vertical(rows, x, one, other, left=card is other)
        if (a, b) in self._detours(block):
            return detour(rows, one, other)
        return vertical(rows, card.x, one, other, left=False)

    def _within(self, rows: tuple[Row, ...], block: Block, a: str, b: str) -> Line:
        one, other = self.box[a], self.box[b]
        slot = {box.state.name: n for n, box in block.slots.items()}
        if block.head is one:
            return aside(rows, one, other, slot[b], out=True)
        if block.head is other:
            return aside(rows, other, one, slot[a], out=False)
        if abs(slot[a] - slot[b]) == 1:
            up = slot[b] < slot[a]
            return vertical(rows, one.x + (-13 if up else 13), one, other, left=up)
        both = (b, a) in self.merged
        return around(rows, one, other, both=both)


def _spine(machine: Machine) -> list[str]:
    """The states that are bars, by their distance from the first. A settled state that work only
    ends in when it goes wrong is no bar but a card beside that work.
    """
    first = next(iter(machine.states))
    far = {first: 0}
    queue = deque([first])
    while queue:
        here = queue.popleft()
        for row in machine:
            if row.state == here and row.to not in far:
                far[row.to] = far[here] + 1
                queue.append(row.to)
    aims = {state.target for state in machine.states.values()}
    by_work = {row.to for row in machine if machine.states[row.state].kind is Kind.ACTIVE}
    bars = [
        name
        for name, state in machine.states.items()
        if name == first or (state.kind is Kind.STABLE and (name in aims or name not in by_work))
    ]
    return sorted(bars, key=lambda name: far.get(name, len(far)))


def _families(machine: Machine, rank: dict[str, int]) -> dict[str, str]:
    """For each state that is no bar, the active state whose work it belongs to."""
    family: dict[str, str] = {}
    for name, state in machine.states.items():
        if name in rank:
            continue
        from_work = (
            row.state
            for row in machine
            if row.to == name and machine.states[row.state].kind is Kind.ACTIVE
        )
        family[name] = name if state.kind is Kind.ACTIVE else next(from_work, name)
    return family


def _merged(machine: Iterable[Row]) -> dict[tuple[str, str], tuple[Row, ...]]:
    """Rows by their ends."""
    merged: dict[tuple[str, str], tuple[Row, ...]] = {}
    for row in machine:
        merged[row.state, row.to] = (*merged.get((row.state, row.to), ()), row)
    return merged


def _slots(boxes: Sequence[Box]) -> dict[int, Box]:
    """What it waits in is level with the active state, what it fails in above, the rest below."""
    order = {Kind.WAIT: 0, Kind.FAILED: 1, Kind.STABLE: 1, Kind.HOLD: 2, Kind.ACTIVE: 3}
    places = (0, -1, *range(1, len(boxes) + 1))
    return dict(zip(places, sorted(boxes, key=lambda b: order[b.state.kind]), strict=False))
