"""A machine as a picture: SVG that stands alone, and Mermaid for places that draw it themselves.

Both are made from the table (`core.machine`), so they cannot disagree with what the program does.
Read by the generator of the reference pages and by the console, which marks a state with `here`.
In the SVG each state is `<g id="state-…" class="state kind-…">`, and each state and line has a
`<title>`; colours follow the reader's light or dark theme.
"""

from collections.abc import Callable
from collections.abc import Sequence
from html import escape

from siderite.core.diagram_layout import MARGIN
from siderite.core.diagram_layout import lay_out
from siderite.core.diagram_lines import Box
from siderite.core.diagram_lines import Line
from siderite.core.machine import Kind
from siderite.core.machine import Machine
from siderite.core.machine import Row

# fill, edge, text: on light paper, on dark paper
_COLOURS = {
    Kind.STABLE: (("#dfe7ef", "#5b7389", "#14293b"), ("#2b3b4b", "#8aa4bc", "#e6eff7")),
    Kind.ACTIVE: (("#d5e8ff", "#2f74c0", "#0b2e57"), ("#123456", "#63a4ea", "#dcecff")),
    Kind.WAIT: (("#fff0c9", "#b98a12", "#4d3800"), ("#443510", "#d9ae42", "#fff0cc")),
    Kind.HOLD: (("#ebe0fb", "#8055bd", "#351964"), ("#37264f", "#b28ee6", "#f0e6ff")),
    Kind.FAILED: (("#fbdedb", "#c2503f", "#591810"), ("#4e211b", "#e58474", "#ffe4df")),
}
_MEANING = {
    Kind.STABLE: "settled: moves on a request only",
    Kind.ACTIVE: "work under way",
    Kind.WAIT: "waits for a call back",
    Kind.HOLD: "held for an outside decision",
    Kind.FAILED: "went wrong",
}
_LIGHT = {
    "paper": "#ffffff",
    "line": "#5f6b76",
    "ink": "#1d2730",
    "bad": "#d79a91",
    "pale": "#6b7782",
}
_DARK = {
    "paper": "#12181e",
    "line": "#9aa7b3",
    "ink": "#e4eaf0",
    "bad": "#a4655b",
    "pale": "#94a1ad",
}
_LEGEND_H = 44


Asked = Callable[[Row], bool]
"""Whether a row is one that somebody can ask for."""


def svg(machine: Machine, *, asked: Asked | None = None, here: str | None = None) -> str:
    """The picture. Rows that nobody can ask for are labelled in italics, if `asked` tells which
    are; `here` is a state to mark.
    """
    layout = lay_out(machine)
    width, height = layout.width, layout.height + _LEGEND_H
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}"'
        f' width="{width:g}" height="{height:g}" role="img" aria-labelledby="machine-title">',
        f'<title id="machine-title">The states of a {escape(machine.name)}</title>',
        f"<style>{_css()}</style>",
        _arrow("arrow"),
        _arrow("arrow-bad"),
        f'<rect class="paper" width="{width:g}" height="{height:g}" rx="10"/>',
    ]
    parts += [_line(machine, line, here) for line in layout.lines]
    parts += [_box(box, asked, here) for box in layout.boxes]
    parts += [_label(line, asked) for line in layout.lines]
    parts += [*_legend(layout.height + _LEGEND_H / 2 - 12, italics=asked is not None), "</svg>", ""]
    return "\n".join(parts)


def near(machine: Machine, here: str, follows: Callable[[Row], bool]) -> str:
    """The picture of what can come next, for machines with more states than a page shows: each
    way out of `here`, and where that leads by itself through rows that are as `follows` says.
    """
    ways: dict[str, list[Row]] = {}
    for row in machine:
        if row.state == here:
            ways.setdefault(row.to, []).append(row)
    lines: list[str] = []
    boxes = [_small(machine, here, _NEAR_X[0], _NEAR_TOP, is_here=True)]
    for number, (to, rows) in enumerate(ways.items()):
        y = _NEAR_TOP + _NEAR_ROW * number
        lines.append(_way(machine, rows, y, is_first=not number))
        boxes.append(_small(machine, to, _NEAR_X[1], y))
        for end in _ends(machine, to, follows):
            lines.append(_straight(_NEAR_X[1] + _NEAR_W, _NEAR_X[2], y))
            boxes.append(_small(machine, end, _NEAR_X[2], y))
    width, height = _NEAR_X[2] + _NEAR_W + MARGIN, _NEAR_TOP + _NEAR_ROW * max(1, len(ways))
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"'
        f' height="{height}" role="img" aria-labelledby="machine-title">',
        f'<title id="machine-title">What can become of a {escape(machine.name)} that is'
        f" {escape(here)}</title>",
        f"<style>{_css()}</style>", _arrow("arrow"), _arrow("arrow-bad"),
        f'<rect class="paper" width="{width}" height="{height}" rx="10"/>',
        *lines, *boxes, "</svg>", "",
    ])  # fmt: skip


_NEAR_X, _NEAR_W, _NEAR_H, _NEAR_TOP, _NEAR_ROW = (20, 410, 720), 230, 28, 18, 42


def _ends(machine: Machine, state: str, follows: Callable[[Row], bool]) -> list[str]:
    """The first settled state that it comes to by itself, if it does not stay."""
    known = set()
    while machine.states[state].moves_by_itself and state not in known:
        known.add(state)
        rows = [row for row in machine if row.state == state and follows(row)]
        if not rows:
            break
        state = rows[0].to
    return [state] if known and not machine.states[state].moves_by_itself else []


def _way(machine: Machine, rows: list[Row], y: float, *, is_first: bool) -> str:
    bad = machine.states[rows[0].to].kind is Kind.FAILED
    left, right, middle = _NEAR_X[0] + _NEAR_W, _NEAR_X[1], y + _NEAR_H / 2
    trunk = left + 18
    down = "" if is_first else f"M{trunk} {_NEAR_TOP + _NEAR_H / 2:g}V{middle:g}"
    path = f"M{left} {middle:g}H{right}" if is_first else f"{down}H{right}"
    return (
        f'<g class="edge{" bad" if bad else ""}"><title>{_sentences(rows)}</title>'
        f'<path class="line" d="{path}" marker-end="url(#arrow{"-bad" if bad else ""})"/></g>'
        f'<text class="label" x="{trunk + 10}" y="{middle - 5:g}">{_events(rows, None)}</text>'
    )


def _straight(left: float, right: float, y: float) -> str:
    middle = y + _NEAR_H / 2
    return f'<path class="line" d="M{left} {middle:g}H{right}" marker-end="url(#arrow)"/>'


def _small(machine: Machine, name: str, x: float, y: float, *, is_here: bool = False) -> str:
    state = machine.states[name]
    return (
        f'<g class="state kind-{state.kind}{" here" if is_here else ""}">'
        f"<title>{escape(name)}: {escape(state.meaning)}</title>"
        f'<rect x="{x}" y="{y:g}" width="{_NEAR_W}" height="{_NEAR_H}" rx="7"/>'
        f'<text class="name" x="{x + _NEAR_W / 2:g}" y="{y + 18.5:g}" text-anchor="middle">'
        f"{escape(name)}</text></g>"
    )


def _css() -> str:
    dark = _theme(1, _DARK)
    return (
        "text{font:12px system-ui,'Segoe UI','DejaVu Sans',sans-serif}"
        ".state rect{stroke-width:1.3}.state .name{font-weight:600}"
        ".state .more,.state .exit{font-size:10px;opacity:.85}"
        ".line{fill:none;stroke-width:1.3}.label{font-size:10.5px;stroke-width:3.5;"
        "paint-order:stroke;stroke-linejoin:round}"
        ".legend{font-size:10.5px}.internal{font-style:italic}"
        ".state.here rect{fill:#1d5fae;stroke:#0b2f5c;stroke-width:3}.state.here text{fill:#fff}"
        ".from-here .line{stroke-width:2.4}"
        f"{_theme(0, _LIGHT)}@media(prefers-color-scheme:dark){{{dark}}}"
    )


def _theme(which: int, paper: dict[str, str]) -> str:
    css = (
        f".paper{{fill:{paper['paper']}}}.line{{stroke:{paper['line']}}}"
        f".label{{fill:{paper['ink']};stroke:{paper['paper']}}}.legend{{fill:{paper['pale']}}}"
        f".label .internal{{fill:{paper['pale']}}}.bad .line{{stroke:{paper['bad']}}}"
        f"#arrow path{{fill:{paper['line']}}}#arrow-bad path{{fill:{paper['bad']}}}"
    )
    for kind, themes in _COLOURS.items():
        fill, edge, text = themes[which]
        css += f".kind-{kind} rect{{fill:{fill};stroke:{edge}}}.kind-{kind} text{{fill:{text}}}"
    return css


def _arrow(name: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8"'
        ' markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">'
        '<path d="M0 .5 8 4 0 7.5z"/></marker>'
    )


def _line(machine: Machine, line: Line, here: str | None) -> str:
    row = line.rows[0]
    bad = machine.states[row.to].kind is Kind.FAILED
    words = ["edge", *(["bad"] if bad else []), *(["from-here"] if row.state == here else [])]
    return (
        f'<g class="{" ".join(words)}"><title>{_sentences(line.rows)}</title>'
        f'<path class="line" d="{line.path}" marker-end="url(#arrow{"-bad" if bad else ""})"/></g>'
    )


def _label(line: Line, asked: Asked | None) -> str:
    return (
        f'<text class="label" x="{line.x:g}" y="{line.y:g}"'
        f' text-anchor="{line.anchor}">{line.mark}{_events(line.rows, asked)}</text>'
    )


def _box(box: Box, asked: Asked | None, here: str | None) -> str:
    state = box.state
    words = f"state kind-{state.kind}" + (" here" if state.name == here else "")
    title = [f"{state.name} ({state.kind}): {state.meaning}", *(map(_sentences, box.exits))]
    parts = [
        f'<g id="{_id(state.name)}" class="{words}"><title>{escape(title[0])}'
        + "".join(f"\n{line}" for line in title[1:])
        + f'</title><rect x="{box.left:g}" y="{box.top:g}" width="{box.w:g}" height="{box.h:g}"'
        f' rx="{8 if box.is_bar else 7}"/>'
    ]
    name = escape(state.name)
    if box.is_bar:
        x, y = box.left + 14, box.y + 4.5
        parts.append(f'<text class="name" x="{x:g}" y="{y:g}">{name}</text>')
        more = escape(state.meaning)
        parts.append(f'<text class="more" x="{x + 100:g}" y="{y - 0.5:g}">{more}</text>')
        for n, rows in enumerate(reversed(box.exits)):
            parts.append(_exit(rows, box.right - 14 - 110 * n, y - 0.5, "end", asked))
    else:
        y = box.top + 19.5
        parts.append(
            f'<text class="name" x="{box.x:g}" y="{y:g}" text-anchor="middle">{name}</text>'
        )
        for n, rows in enumerate(box.exits):
            parts.append(_exit(rows, box.x, y + 13.5 * (n + 1), "middle", asked))
    return "".join([*parts, "</g>"])


def _exit(rows: tuple[Row, ...], x: float, y: float, anchor: str, asked: Asked | None) -> str:
    return (
        f'<text class="exit" x="{x:g}" y="{y:g}" text-anchor="{anchor}">'
        f"{_events(rows, asked)} → {escape(rows[0].to)}</text>"
    )


def _legend(y: float, *, italics: bool) -> list[str]:
    x, parts = float(MARGIN), []
    for kind, meaning in _MEANING.items():
        parts.append(
            f'<g class="kind-{kind}"><rect x="{x:g}" y="{y - 9:g}" width="12" height="12"'
            f' rx="3"/></g><text class="legend" x="{x + 18:g}" y="{y + 1.5:g}">{meaning}</text>'
        )
        x += 44 + 5.6 * len(meaning)
    if italics:
        text = "italics: the service moves the machine itself"
        parts.append(f'<text class="legend internal" x="{x:g}" y="{y + 1.5:g}">{text}</text>')
    return parts


def mermaid(machine: Machine) -> str:
    """The machine as a `stateDiagram-v2`; rows with the same ends share an arrow."""
    lines = ["stateDiagram-v2"]
    for name in machine.states:
        lines.append(f'    state "{name}" as {_word(name)}')
    lines.append(f"    [*] --> {_word(next(iter(machine.states)))}")
    merged: dict[tuple[str, str], list[str]] = {}
    for row in machine:
        merged.setdefault((row.state, row.to), []).append(row.event)
    for (at, to), events in merged.items():
        lines.append(f"    {_word(at)} --> {_word(to)}: {', '.join(events)}")
    for kind, themes in _COLOURS.items():
        fill, edge, text = themes[0]
        lines.append(f"    classDef {kind}State fill:{fill},stroke:{edge},color:{text}")
    for name, state in machine.states.items():
        lines.append(f"    class {_word(name)} {state.kind}State")
    return "\n".join([*lines, ""])


def _sentences(rows: Sequence[Row]) -> str:
    return escape("\n".join(f"{row.state} – {row.event} → {row.to}" for row in rows))


def _events(rows: Sequence[Row], asked: Asked | None) -> str:
    return ", ".join(
        escape(row.event)
        if asked is None or asked(row)
        else f'<tspan class="internal">{escape(row.event)}</tspan>'
        for row in rows
    )


def _id(name: str) -> str:
    return "state-" + name.replace(" ", "-")


def _word(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name)
