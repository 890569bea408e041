"""Refusals of applications: loads, accuracy, sweeps, formulas, walking."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from public_calls import robot

import drevo
from drevo import loads
from drevo.design.expressions import formula_text, read_formula, simplified
from drevo.errors import DrevoError, InputError
from drevo.loads.span import Span
from drevo.sweep import run as sweep
from drevo.walking.feet import legs

Q, REST = np.array([0.1, 0.2, 0.3]), np.zeros(3)
PLAN = {"robot": "scara", "quantity": "gravity", "samples": 4}
SQUARE = [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)]


def arm() -> drevo.Robot:
    return robot("three-link")


@cache
def mass() -> Any:
    return loads.distribution(arm().model, "link1", "auto")


def way(name: str = "three-link") -> Any:
    made = robot(name)
    return loads.Trajectory.through(made, np.outer([0.0, 0.1], np.ones(made.nq)), [0.0, 1.0])


def sections(**given: Any) -> Any:
    return loads.section_loads(arm(), Q, REST, REST, "link1", given.pop("s", [0.1]), **given)


def accuracy(q: Any = Q, **given: Any) -> Any:
    return loads.accuracy(arm(), q, "link3", **{"joint_errors": 1e-3, **given})


def of_loops() -> Any:
    made = robot("four-bar")
    return loads.accuracy(made, made.neutral(), made.link_names[-1], joint_errors=1e-3)


SAID: dict[str, tuple[Callable[[], object], str]] = {
    "a span of a point": (lambda: Span.between((0, 0, 0), (0, 0, 0)), "a span goes from one point to another"),
    "s as a table": (lambda: sections(s=[[0.1, 0.2]]), r"s has shape \(1, 2\); give a number or a list"),
    "a span of a word": (lambda: loads.span_of(arm().model, "link1", "auto"), "span_of: mass is 'auto'"),
    "y along the span": (lambda: Span.between((0, 0, 0), (1, 0, 0), y=(2, 0, 0)), "a direction across the span"),
    "mass of another": (lambda: sections(distribution=loads.distribution(arm().model, "link2", "auto")),
                        "given for link 'link1' is that of link 'link2'"),
    "solids of a number": (lambda: loads.distribution(arm().model, "link1", (3,)), "link1"),
    "points in space": (lambda: loads.mesh(1.0, np.zeros((2, 2, 3)), [(0, 1, 2)]), r"points \(n, 3\) and faces"),
    "faces of halves": (lambda: loads.mesh(1.0, SQUARE, [(0.0, 1.0, 2.0)]), "of whole numbers"),
    "a trajectory in words": (lambda: loads.drives(arm(), "fast"), "the trajectory is 'fast'; give a"),
    "another robot's": (lambda: loads.drives(arm(), way("puma560")), "is one of robot 'puma560', not of"),
    "a batch of motions": (
        lambda: loads.Trajectory.simulated(arm().simulate(np.zeros((2, 3)), duration=0.002, dt=1e-3)),
        r"this table a batch of \(2,\): take one row",
    ),
    "a batch in a picture": (lambda: accuracy(np.zeros((2, 3))).figure(), "a picture is of one configuration"),
    "a batch drawn": (lambda: accuracy(np.zeros((2, 3))).monte_carlo(9), "monte_carlo is of one configuration"),
    "accuracy of loops": (of_loops, "accuracy is of open chains"),
    "a law of errors": (lambda: accuracy(error_distribution="flat"), "accuracy: error_distribution"),
    "a left side of a sum": (lambda: read_formula("x^5 = 1"), "x"),
    "a walk in space": (
        lambda: legs(drevo.load("biped", base="floating", gravity=(0, 1, -9))), "a walk on the ground z = 0"
    ),
    "a plan's options": (lambda: sweep(PLAN | {"options": 3}, "x"), "options is 3"),
    "boxes of nothing": (
        lambda: sweep(PLAN | {"histogram": {"entries": [0]}}, "x"),
        "histogram lacks 'lower', a list",
    ),
    "boxes upside down": (
        lambda: sweep(PLAN | {"histogram": {"entries": [0], "lower": [1], "upper": [0], "bins": [2]}}, "x"),
        "histogram",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", SAID)
def test_is_refused_in_a_sentence(what: str) -> None:
    call, sentence = SAID[what]
    with pytest.raises(DrevoError, match=sentence):
        call()


def test_a_file_without_rows_is_no_trajectory(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,q1\n")
    with pytest.raises(InputError, match="has 1 lines; a header and rows are needed"):
        loads.Trajectory.read(arm(), tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("text", "plain"),
    [("a + (-b)", "a-b"), ("a - (-b)", "a+b"), ("0 - a", "-a"), ("0 + a", "a"), ("a - 0", "a"), ("0*a", "0"),
     ("a*1", "a"), ("-(-a)", "a")],
)  # fmt: skip
def test_formulas_are_made_plain(text: str, plain: str) -> None:
    (side,) = read_formula(text)
    assert formula_text(simplified(side)).replace(" ", "") == plain


def test_a_table_of_drives_is_saved(tmp_path: Path) -> None:
    driven = loads.drives(arm(), way())
    driven.save(tmp_path / "d.csv")
    driven.save(tmp_path / "d.svg")
    assert (tmp_path / "d.csv").read_text().startswith("t") and "<svg" in (tmp_path / "d.svg").read_text()


def test_what_is_no_table() -> None:
    with pytest.raises(InputError, match="takes the table that simulate gives"):
        loads.Trajectory.simulated(SimpleNamespace())
