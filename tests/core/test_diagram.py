"""The picture of a machine holds all of the machine."""

import re
from xml.etree import ElementTree

import pytest

from siderite.baremetal.domain.node_machine import NODE
from siderite.compute.domain.server_machine import SERVER
from siderite.core.diagram import mermaid
from siderite.core.diagram import near
from siderite.core.diagram import svg
from siderite.core.diagram_layout import Layout
from siderite.core.diagram_layout import lay_out
from siderite.core.machine import Kind
from siderite.core.machine import Machine
from siderite.core.machine import Row
from siderite.core.machine import State

_SVG = "{http://www.w3.org/2000/svg}"
LAMP = Machine(
    "lamp",
    (
        State("off", Kind.STABLE, meaning="dark & <quiet>"),
        State("on", Kind.STABLE, meaning="bright"),
        State("warming", Kind.ACTIVE, "on", "warm", 5),
        State("broken", Kind.STABLE, meaning="needs a new bulb"),
    ),
    (
        Row("off", "switch", "warming"),
        Row("warming", "done", "on"),
        Row("warming", "fail", "broken"),
        Row("on", "switch", "off"),
        Row("on", "blink", "on"),
        Row("broken", "replace", "off"),
    ),
)


def test_what_is_near_to_a_state_shows_each_way_out_and_where_it_leads() -> None:
    drawn = ElementTree.fromstring(near(LAMP, "off", lambda row: row.event == "done"))
    assert [text.text for text in drawn.iter(f"{_SVG}text")] == ["switch", "off", "warming", "on"]


@pytest.mark.parametrize("state", SERVER.states)
def test_a_servers_picture_fits_on_a_page_and_has_every_way_out(state: str) -> None:
    drawn = ElementTree.fromstring(near(SERVER, state, lambda row: row.event == "done"))
    assert float(drawn.attrib["width"]) < 1000
    said = " ".join(text.text or "" for text in drawn.iter(f"{_SVG}text"))
    assert [row for row in SERVER if row.state == state and row.event not in said] == []


def _drawn(machine: Machine, here: str | None = None) -> ElementTree.Element:
    return ElementTree.fromstring(svg(machine, here=here))


def _titles(picture: ElementTree.Element) -> set[str]:
    return {line for t in picture.iter(_SVG + "title") for line in (t.text or "").split("\n")}


@pytest.mark.parametrize("machine", [NODE, LAMP], ids=["node", "lamp"])
def test_svg_is_xml_with_every_state_and_every_row(machine: Machine) -> None:
    picture = _drawn(machine)
    states = {g.get("id"): g.get("class") for g in picture.iter(_SVG + "g") if g.get("id")}
    assert states == {
        "state-" + name.replace(" ", "-"): f"state kind-{state.kind}"
        for name, state in machine.states.items()
    }
    rows = {f"{row.state} – {row.event} → {row.to}" for row in machine}
    assert rows <= _titles(picture)


@pytest.mark.parametrize("machine", [NODE, LAMP], ids=["node", "lamp"])
def test_every_row_is_labelled_once(machine: Machine) -> None:
    layout = lay_out(machine)
    drawn = [row for line in layout.lines for row in line.rows]
    written = [row for box in layout.boxes for rows in box.exits for row in rows]
    assert sorted(map(str, drawn + written)) == sorted(map(str, machine))


@pytest.mark.parametrize("machine", [NODE, LAMP], ids=["node", "lamp"])
def test_mermaid_has_every_state_and_every_row(machine: Machine) -> None:
    text = mermaid(machine)
    names = dict(re.findall(r'state "(.+)" as (\w+)', text))
    assert list(names) == list(machine.states)
    arrows = re.findall(r"(\w+) --> (\w+): (.+)", text)
    found = {(a, event, b) for a, b, events in arrows for event in events.split(", ")}
    assert found == {(names[row.state], row.event, names[row.to]) for row in machine}


def test_no_two_states_overlap_and_all_are_on_the_paper() -> None:
    layout = lay_out(NODE)
    for n, one in enumerate(layout.boxes):
        assert one.left >= 0
        assert one.right <= layout.width
        assert one.bottom <= layout.height
        for other in layout.boxes[n + 1 :]:
            apart_x = one.right <= other.left or other.right <= one.left
            apart_y = one.bottom <= other.top or other.bottom <= one.top
            assert apart_x or apart_y, (one.state.name, other.state.name)


def test_no_label_stands_on_another_or_on_a_state() -> None:
    layout = lay_out(NODE)
    places = _label_places(layout)
    boxes = [(b.left, b.right, b.top, b.bottom) for b in layout.boxes]
    for n, one in enumerate(places):
        assert not [other for other in (*places[n + 1 :], *boxes) if _meet(one, other)], one


def _label_places(layout: Layout) -> list[tuple[float, float, float, float]]:
    places = []
    for line in layout.lines:
        width = 5.6 * len(line.mark + ", ".join(row.event for row in line.rows))
        left = line.x - {"start": 0, "middle": width / 2, "end": width}[line.anchor]
        places.append((left, left + width, line.y - 9, line.y + 2))
    return places


def _meet(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3]


def test_the_picture_is_the_same_each_time() -> None:
    assert svg(NODE) == svg(NODE)


def test_here_marks_one_state_and_the_ways_out_of_it() -> None:
    picture = _drawn(NODE, here="clean wait")
    marked = [g for g in picture.iter(_SVG + "g") if "here" in (g.get("class") or "").split()]
    assert [g.get("id") for g in marked] == ["state-clean-wait"]
    ways = [g for g in picture.iter(_SVG + "g") if "from-here" in (g.get("class") or "").split()]
    titles = {t for g in ways for t in _titles(g)}
    assert titles == {
        f"clean wait – {event} → {to}"
        for event, to in (
            ("resume", "cleaning"),
            ("hold", "clean hold"),
            ("fail", "clean failed"),
            ("abort", "clean failed"),
        )
    }


def test_what_nobody_can_ask_for_is_in_italics() -> None:
    picture = ElementTree.fromstring(svg(LAMP, asked=lambda row: row.event == "switch"))
    italic = {t.text for t in picture.iter(_SVG + "tspan") if t.get("class") == "internal"}
    assert italic == {"done", "fail", "blink", "replace"}
