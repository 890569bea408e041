"""Rows of the papers' tables, and what their errors are measured with."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..io.given import Array
from ..robot.face import Robot
from ..robots import model

TIGHT, BY_DIFFERENCES = 1e-9, 1e-5  # relative errors of what agrees
DIFFERENCE_STEP = 1e-6  # of central differences
SAMPLED_STATES = 16
FORMULA_NUMBERS_PATTERN = re.compile(r"\(\d[\d.]*\)(?:-\(\d[\d.]*\))?")  # of a formula, or of several: (3)-(6)
HEAD_PATTERN = re.compile(rf"(?:after )?(?:{FORMULA_NUMBERS_PATTERN.pattern}[,: ]*)+")


class CheckedFormula(NamedTuple):
    """A formula by its numbers, the call for it, what it was compared with, error, verdict, what it says."""

    formula: str
    call: str
    against: str
    error: float
    verdict: str
    says: str = ""


def example(name: str) -> Robot:
    """An embedded robot."""
    return Robot(model(name))


def agreeing(
    formula: str, call: str, against: str, error: float, limit: float = TIGHT, says: str = ""
) -> CheckedFormula:
    """A row that agrees if its error is within the limit."""
    return _row(formula, call, against, error, "agrees" if error <= limit else "differs", says)


def misprint(formula: str, call: str, against: str, error: float, says: str = "") -> CheckedFormula:
    """A formula as printed, and how far it is off."""
    return _row(formula, call, against, error, "misprint", says)


def _row(formula: str, call: str, against: str, error: float, verdict: str, says: str) -> CheckedFormula:
    """A row; the numbers at the head of a formula stand apart from what it says."""
    if not says:
        head = HEAD_PATTERN.match(formula)
        says = formula[head.end() :].strip(" ,:") if head else formula
        formula = (
            head[0].strip(" ,:") if head else ", ".join(FORMULA_NUMBERS_PATTERN.findall(formula)) or "unnumbered"
        )
    return CheckedFormula(formula, call, against, float(error), verdict, says)


def relative_error(got: Any, want: Any) -> float:
    """The largest difference by the largest value."""
    got, want = np.asarray(got), np.asarray(want)
    scale = float(np.max(np.abs(want), initial=0.0)) or 1.0
    return float(np.max(np.abs(got - want), initial=0.0)) / scale


def random_states(robot: Robot, names: int) -> list[Array]:
    """Random q (n, nq), then as many of (n, nv) as there are names after it."""
    rng = np.random.default_rng(1)
    return [robot.random(rng, (SAMPLED_STATES,)), *rng.normal(size=(names - 1, SAMPLED_STATES, robot.nv))]


def central_differences(f: Callable[[Array], Array], q: Array) -> Array:
    """Central differences by each coordinate, last axis."""
    steps = DIFFERENCE_STEP * np.eye(q.shape[-1])
    return np.stack([(f(q + h) - f(q - h)) / (2.0 * DIFFERENCE_STEP) for h in steps], axis=-1)
