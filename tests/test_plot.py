"""Plots: what is drawn of curves, bands and areas, on which scale, with which key."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np

from drevo.emit.plot import HIGH, Curve, Panel, plot

SPACE = "{http://www.w3.org/2000/svg}"
LINE = np.stack([np.arange(100.0), 2.0 * np.arange(100.0)])


def lines(text: str, kind: str = "polyline") -> list[np.ndarray]:
    """The points (n, 2) of every line or polygon."""
    found = [x.get("points", "") for x in ET.fromstring(text).iter(SPACE + kind)]
    return [np.array([[float(c) for c in p.split(",")] for p in x.split()]) for x in found]


def words(text: str) -> list[str]:
    return [x.text or "" for x in ET.fromstring(text).iter(SPACE + "text")]


def test_lines_are_thinned_and_broken() -> None:
    """A straight line keeps its ends; what is not finite breaks a curve and a band; an empty plot stands."""
    gap = LINE.copy()
    gap[1, 50] = np.nan
    assert [len(x) for x in lines(plot("p", [Panel("t", [Curve("c", *LINE)])]))] == [2]
    assert [len(x) for x in lines(plot("p", [Panel("t", [Curve("c", *gap)])]))] == [2, 2]
    band = plot("p", [Panel("t", [Curve("c", *gap, high=LINE[1] + 1.0)])])
    assert [len(x) for x in lines(band, "polygon")] == [4, 4] and not lines(band)
    ET.fromstring(plot("empty", [Panel("t", [Curve("c", [], [])], equal=True)]))
    ET.fromstring(plot("none", []))


def test_a_peak_of_one_point_is_kept() -> None:
    x = np.arange(10_001.0)
    y = np.sin(x / 500.0)
    y[7_003] = 30.0
    (found,) = lines(plot("p", [Panel("t", [Curve("c", x, y)])]))
    assert len(found) < 100 and found[:, 1].min() < 0.1 * HIGH


def test_ordinates() -> None:
    """Zero is in; powers of ten are equidistant; shared means the same pixels; equal means one scale."""
    x, y = np.array([0.0, 1.0]), np.array([3.0, 4.0])
    assert "0" in words(plot("p", [Panel("t", [Curve("c", x, y)])]))
    powers = Panel("t", [Curve("c", np.arange(3.0), [1e-9, 1e-6, 1e-3]), Curve("d", x, [-1.0, 0.0])], log=True)
    (found,) = lines(plot("p", [powers]))
    assert len(found) == 2  # straight; what is not positive has no logarithm
    two = [Panel("a", [Curve("c", x, y)]), Panel("b", [Curve("c", x, 9.0 * y)])]
    own, shared = (lines(plot("p", two, 2, shared=s)) for s in (False, True))
    assert np.allclose(own[0], own[1], atol=0.11) and abs(shared[0][1, 1] - shared[1][1, 1]) > HIGH / 2
    square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    (drawn,) = lines(plot("p", [Panel("t", [Curve("c", x, x)], [square], equal=True)]), "polygon")
    assert np.allclose(np.ptp(drawn[:, 0]), np.ptp(drawn[:, 1]), atol=0.11)


def test_keys() -> None:
    """Panels of the same curves have one key; others have theirs; names are escaped."""
    same = [Panel(t, [Curve("<total>", *LINE), Curve("static", *LINE)]) for t in "ab"]
    assert words(plot("p", same, 2, "t, s")).count("<total>") == 1 and "t, s" in words(plot("p", same, 2, "t, s"))
    other = [*same, Panel("c", [Curve("else", *LINE)])]
    assert [words(plot("p", other)).count(n) for n in ("<total>", "static", "else")] == [2, 2, 1]
