"""Plots: what is drawn of curves, bands and areas, on which scale, with which key."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np

from drevo.documents.pictures.plot import COLOURS, FRAME_HEIGHT, Curve, Panel, plot

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
    assert len(found) < 100 and found[:, 1].min() < 0.1 * FRAME_HEIGHT


def test_ordinates() -> None:
    """Zero is in; powers of ten are equidistant; shared means the same pixels; equal means one scale."""
    x, y = np.array([0.0, 1.0]), np.array([3.0, 4.0])
    assert "0" in words(plot("p", [Panel("t", [Curve("c", x, y)])]))
    powers = Panel("t", [Curve("c", np.arange(3.0), [1e-9, 1e-6, 1e-3]), Curve("d", x, [-1.0, 0.0])], log=True)
    (found,) = lines(plot("p", [powers]))
    assert len(found) == 2  # straight; what is not positive has no logarithm
    two = [Panel("a", [Curve("c", x, y)]), Panel("b", [Curve("c", x, 9.0 * y)])]
    own, shared = (lines(plot("p", two, 2, shared=s)) for s in (False, True))
    assert np.allclose(own[0], own[1], atol=0.11) and abs(shared[0][1, 1] - shared[1][1, 1]) > FRAME_HEIGHT / 2
    square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    (drawn,) = lines(plot("p", [Panel("t", [Curve("c", x, x)], [square], equal=True)]), "polygon")
    assert np.allclose(np.ptp(drawn[:, 0]), np.ptp(drawn[:, 1]), atol=0.11)


def test_keys() -> None:
    """Panels of the same curves have one key; others have theirs; names are escaped."""
    same = [Panel(t, [Curve("<total>", *LINE), Curve("static", *LINE)]) for t in "ab"]
    assert words(plot("p", same, 2, "t, s")).count("<total>") == 1 and "t, s" in words(plot("p", same, 2, "t, s"))
    other = [*same, Panel("c", [Curve("else", *LINE)])]
    assert [words(plot("p", other)).count(n) for n in ("<total>", "static", "else")] == [2, 2, 1]


def test_no_two_colours_are_one() -> None:
    """For any eye: dichromats by Machado, Oliveira and Fernandes 2009, distances in CIELAB."""
    sights = [
        np.eye(3),
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
    ]
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    rgb = np.array([[int(c[k : k + 2], 16) / 255 for k in (1, 3, 5)] for c in COLOURS])
    light = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    for sight in sights:
        seen = np.clip(light @ np.array(sight).T, 0.0, 1.0) @ xyz.T / [0.95047, 1.0, 1.08883]
        f = np.where(seen > 0.008856, np.cbrt(seen), 7.787 * seen + 16 / 116)
        lab = np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], -1)
        apart = np.linalg.norm(lab[:, None] - lab, axis=-1) + 1e3 * np.eye(len(lab))
        assert apart.min() >= 20.0
