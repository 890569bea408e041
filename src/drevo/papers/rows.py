"""Rows of the papers' tables, and what their errors are measured with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..io.given import Array
from ..robot.face import Robot
from ..robots import model

TIGHT, BY_DIFFERENCES = 1e-9, 1e-5  # relative errors of what agrees
STEP = 1e-6  # of central differences
STATES = 16


class CheckedFormula(NamedTuple):
    """A formula, the call that gives it, what it was compared with, the worst relative error, and the verdict."""

    formula: str
    call: str
    against: str
    error: float
    verdict: str


def example(name: str) -> Robot:
    """An embedded robot."""
    return Robot(model(name))


def agreeing(formula: str, call: str, against: str, error: float, limit: float = TIGHT) -> CheckedFormula:
    """A row that agrees if its error is within the limit."""
    return CheckedFormula(formula, call, against, float(error), "agrees" if error <= limit else "differs")


def misprint(formula: str, call: str, against: str, error: float) -> CheckedFormula:
    """A formula as printed, and how far it is off."""
    return CheckedFormula(formula, call, against, float(error), "misprint")


def relative_error(got: Any, want: Any) -> float:
    """The largest difference by the largest value."""
    got, want = np.asarray(got), np.asarray(want)
    scale = float(np.max(np.abs(want), initial=0.0)) or 1.0
    return float(np.max(np.abs(got - want), initial=0.0)) / scale


def random_states(robot: Robot, names: int) -> list[Array]:
    """Random q (STATES, nq), then as many of (STATES, nv) as there are names after it."""
    rng = np.random.default_rng(1)
    return [robot.random(rng, (STATES,)), *rng.normal(size=(names - 1, STATES, robot.nv))]


def central_differences(f: Callable[[Array], Array], q: Array) -> Array:
    """Central differences by each coordinate, last axis."""
    steps = STEP * np.eye(q.shape[-1])
    return np.stack([(f(q + h) - f(q - h)) / (2.0 * STEP) for h in steps], axis=-1)
