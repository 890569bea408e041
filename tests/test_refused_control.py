"""Refusals of control, and of constraints that contradict themselves."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from public_calls import robot

import drevo
from drevo import constraint, control
from drevo.errors import DrevoError

Q, REST, HALF, FULL, O = np.array([0.1, 0.2, 0.3]), np.zeros(3), np.eye(3), np.eye(6), (0.0, 0.0, 0.0)
PLANE = constraint.point_on_plane("link3", (0.1, 0.2, 0.0), normal=(1.0, 0.0, 0.0))


def arm() -> drevo.Robot:
    return robot("three-link")


@cache
def linear() -> Any:
    return arm().linearise(Q, REST, arm().gravity(Q))


def batch() -> Any:
    two = np.tile(Q, (2, 1))
    return arm().linearise(two, 0.0 * two, arm().gravity(two))


def bare(A: Any = ((0.0, 1.0), (-4.0, 0.0)), B: Any = ((0.0,), (1.0,)), **given: Any) -> Any:
    return control.LinearModel(np.array(A), np.array(B), **given)


def planned(cost: Any = lambda pose, q, v, tau, t: 0.0, q0: Any = Q, **given: Any) -> Any:
    return control.optimise(arm(), cost, q0, REST, 4, 0.01, **given)


def held(*constraints: Any, **given: Any) -> Any:
    return arm().constrained_dynamics(Q, REST, REST, constraints=list(constraints), **given)


def linearised(**given: Any) -> Any:
    return arm().linearise(Q, REST, REST, **given)


def far() -> Any:
    return constraint.point_on_plane("link3", O, normal=(1, 0, 0), offset=99.0)


def written(**given: Any) -> Any:
    return drevo.write_out(arm(), "constrained_dynamics", constraints=[PLANE], **given)


def moving() -> Any:
    """A law made about a state that is no rest."""
    L = arm().linearise(Q, REST + 1.0, REST)
    return control.lqr(L, FULL, HALF)(0.0, Q, REST)


SAID: dict[str, tuple[Callable[[], object], str]] = {
    "a batch at once": (lambda: control.lqr(batch(), FULL, HALF), "takes one linear model, this is a batch of"),
    "one as a batch": (lambda: len(linear()), "is a single one, no batch"),
    "units in a list": (lambda: bare(units=["m"]), "units must be {name: unit}"),
    "no outputs": (lambda: control.kalman(bare(C=np.zeros((0, 2))), 1.0, 1.0), "the model has no outputs"),
    "poles in words": (lambda: control.observer(bare(), "ab"), "poles must be 2 finite numbers"),
    "poles that grow": (lambda: control.observer(bare(), [1.0, -1.0]), "left of the axis"),
    "poles that grow in steps": (lambda: control.observer(bare(dt=0.1), [2.0, 0.1]), "within the unit circle"),
    "poles twice": (lambda: control.observer(bare(), [-1.0, -1.0, -1.0]), "one for each state"),
    "outputs of no link": (lambda: linearised(outputs=["pose:link9"]), "outputs: link 'link9' is not in robot"),
    "outputs of no kind": (lambda: linearised(outputs=["speed"]), "outputs holds 'speed'; parts are"),
    "outputs twice": (lambda: linearised(outputs=["q", "q"]), "name one part or more, each once"),
    "wrenches in a list": (lambda: linearised(f_ext=[1.0]), "f_ext must be {link: wrench}"),
    "wrenches on no link": (lambda: linearised(f_ext={"link9": np.zeros(6)}), "f_ext: link 'link9' is not in"),
    "a law of matrices": (lambda: control.lqr(bare(), 1.0, 1.0)(0.0, Q, REST), "needs the model that robot"),
    "a law that moves": (moving, "moves at|is accelerated at"),
    "weights askew": (lambda: control.lqr(bare(), [[1.0, 1.0], [0.0, 1.0]], 1.0), "symmetric"),
    "no models": (lambda: control.tracking_lqr([], 0.1, 1.0, 1.0), "must be a list of linear models"),
    "models of two sizes": (lambda: control.tracking_lqr([bare(), linear()], 0.1, 1.0, 1.0), "the same states"),
    "models of two steps": (lambda: control.tracking_lqr([bare(dt=0.2)], 0.1, 1.0, 1.0), "dt is 0.1 s, of the"),
    "one output twice": (
        lambda: bare(B=[[0.0, 0.0], [1.0, 1.0]], C=[[1.0, 0.0], [1.0, 0.0]]).zeros(), "depend on each other"
    ),
    "a start of two": (lambda: planned(q0=np.zeros((2, 3))), r"q0 has shape \(2, 3\); it must be \(3,\)"),
    "a cost of words": (lambda: planned(lambda pose, q, v, tau, t: "much"), "not one scalar; return a single sum"),
    "a cost of many": (lambda: planned(lambda pose, q, v, tau, t: q), "not one scalar"),
    "a cost without bounds": (
        lambda: planned(lambda pose, q, v, tau, t: drevo.sqrt(q[0] - 9.0) + tau[0] ** 2), "give a guess nearer"
    ),
    "no constraint": (lambda: control.stabilise(arm(), [], stiffness=1.0, damping=1.0), "give at least one"),
    "loops under a law": (
        lambda: control.stabilise(robot("four-bar"), PLANE, stiffness=1.0, damping=1.0), "has loops; the law"
    ),
    "a program of nine": (
        lambda: held(constraint.pose_tracking("link3", lambda t: [[1.0]])), "gives a 4x4 pose, four rows"
    ),
    "a weld said twice": (
        lambda: constraint.weld("link1", O, "link3", O, rotation=HALF, at=Q), "rotation and at say the same"
    ),
    "a slide without axes": (
        lambda: constraint.joint_closure("prismatic", "link1", O, (0, 0, 1), "link3", O), "prismatic"
    ),
    "a weld elsewhere": (lambda: held(constraint.weld("link1", O, "link3", O, at=np.zeros(5))), r"\(5,\)"),
    "times of an assembly": (lambda: arm().assemble(Q, constraints=[PLANE], t=[0.0, 1.0]), "must be one number"),
    "what cannot be closed": (
        lambda: arm().assemble(Q, constraints=[far()]),
        "link3",
    ),
    "gains as a matrix": (
        lambda: written(stabilise=(np.eye(1), np.eye(1))),
        "no matrix",
    ),
    "by a": (lambda: drevo.compile(arm(), "constrained_dynamics", wrt="a", constraints=[PLANE]), "wrt holds 'a'"),
    "at two places": (
        lambda: written(at=np.zeros((2, 3))),
        "one configuration",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", SAID)
def test_is_refused_in_a_sentence(what: str) -> None:
    call, sentence = SAID[what]
    with pytest.raises(DrevoError, match=sentence):
        call()


def test_matrices_stand_in_latex_where_they_fit() -> None:
    assert "x" in str(bare()._repr_latex_()) and bare(np.eye(90), np.ones((90, 1)))._repr_latex_() is None


def test_welds_at_a_configuration_are_linearised() -> None:
    """Outputs of links, wrenches on them, an orientation taken from a configuration."""
    weld = constraint.weld("world", O, "link1", O, at=Q)
    found = arm().constrained_dynamics(Q, REST, REST, constraints=[weld])
    assert np.isfinite(found.a).all()
    L = linearised(outputs=["pose:link3", "velocity:link3", "q"], f_ext={"link3": np.arange(6.0)})
    J = arm().jacobian(Q, link="link3")
    assert np.abs(L.C[:6, :3] - J).max() <= 1e-12 and np.abs(L.C[6:12, 3:] - J).max() <= 1e-12
