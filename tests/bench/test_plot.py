"""The plot: well-formed, flat where the figure is, and with no point outside."""

from xml.etree import ElementTree as Xml

from bench.curve import Curve
from bench.figure import Figure
from bench.figure import Unit
from bench.plot import HEIGHT
from bench.plot import WIDTH
from bench.plot import svg

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*medians):
    sizes = [100 * 10**step for step in range(len(medians))]
    points = {
        size: Figure(Unit.TIME, (value * 0.9, value, value * 1.1))
        for size, value in zip(sizes, medians, strict=True)
    }
    return Xml.fromstring(svg([Curve("a", "a < b & c", points=points)], "said & done"))


def line(picture):
    found = picture.find(f".//{SVG}polyline").get("points")
    return [tuple(map(float, point.split(","))) for point in found.split()]


def test_what_is_constant_is_flat():
    assert len({y for _, y in line(drawn(0.2, 0.2, 0.2))}) == 1


def test_what_gets_worse_rises_to_the_right():
    points = line(drawn(0.2, 0.4, 0.8))
    assert points == sorted(points, key=lambda point: (point[0], -point[1]))
    assert points[0][1] > points[-1][1]


def test_equal_factors_are_equal_distances():
    (_, a), (_, b), (_, c) = line(drawn(1.0, 3.0, 9.0))
    assert abs((a - b) - (b - c)) <= 0.2


def test_nothing_is_drawn_outside_of_its_panel():
    for picture in (drawn(0.00031), drawn(0.001, 1.0, 1000.0), drawn(7.0, 0.01)):
        for point in picture.iter(f"{SVG}circle"):
            assert 0 <= float(point.get("cx")) <= WIDTH
            assert 0 <= float(point.get("cy")) <= HEIGHT


def test_no_curve_is_an_empty_picture():
    assert Xml.fromstring(svg([Curve("a", "a")], "none")).find(f".//{SVG}polyline") is None
