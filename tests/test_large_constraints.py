"""Constraints of large trees: terms by loops of the links, M^-1 by sweeps; beside what is written out, by laws."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import strategies
from test_constraints import every_constraint
from test_large import chain
from test_rolled import chain_with, states
from tolerances import ACCELERATIONS, EPS, solving

import drevo.constraint.terms as module
from drevo.constraint import collection, terms
from drevo.constraint import values as constraint
from drevo.constraint.closing import hold
from drevo.constraint.dynamics import constrained_dynamics, impact
from drevo.constraint.solve import Cholesky, Sweeps
from drevo.errors import NumericsError
from drevo.robot.face import Robot

Array = np.ndarray[Any, Any]


def test_terms_by_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every kind of constraint but functions, on bodies far out, welded and on the ground: one state and many."""
    robot = Robot(strategies.robot(8, strategies.EVERY, 22, "floating", welds=0.1, mimics=0.0))
    q, v = states(robot.model, 4, "bias")
    t, links = np.array([0.1, 0.2, 0.3, 0.4]), robot.link_names
    more = [
        constraint.weld(links[-3], (0.1, 0.0, 0.2), links[4], (0.3, 0.1, 0.0)),
        constraint.contact(robot.model.root, (0.1, 0.2, 0.3)),
    ]
    kinds = [c for c in every_constraint(robot) if not isinstance(c, constraint.Traced)]
    found = collection.collect(robot.model, [{"link": links[9], "point": (0, 0, 0.1), "rows": 6}], [*kinds, *more])
    right = module.constraint_terms(robot, found, q, v, t)
    held = module.held_at(robot, found, q)
    monkeypatch.setattr(terms, "MAX_TRACED_BODIES", 0)
    monkeypatch.setattr(module, "constraint_program", None)
    for name, x, y in zip(right._fields, module.constraint_terms(robot, found, q, v, t), right):
        assert x.shape == y.shape and np.abs(x - y).max() <= ACCELERATIONS * np.abs(y).max(), name
    one = module.constraint_terms(robot, found, q[2], v[2], t[2], held[2])
    assert np.array_equal(one.jacobian, module.constraint_terms(robot, found, q, v, t, held).jacobian[2])
    assert np.abs(module.held_at(robot, found, q) - held).max() <= ACCELERATIONS * np.abs(held).max()


def test_sweeps_are_a_factor() -> None:
    """F^T F = M^-1, and F^T is the transpose of F."""
    robot = Robot(strategies.robot(2, ("revolute", "prismatic"), 70, "floating", welds=0.1, mimics=0.0))
    q, x, y = states(robot.model, 5, "inverse_dynamics")
    F = Sweeps(robot, q)
    Fx, Fy = (F.inwards(a[:, None])[:, 0] for a in (x, y))
    M = robot.mass_matrix(q)
    L = Cholesky(np.linalg.cholesky(M))
    right, cond = L.outwards(L.inwards(x[:, None])), float(np.linalg.cond(M).max())
    assert np.abs(F.outwards(Fx[:, None]) - right).max() <= solving(robot.nv, cond) * np.abs(right).max()
    products = [np.einsum("bi,bi->b", a, b) for a, b in ((Fx, Fy), (x, F.outwards(Fy[:, None])[:, 0]))]
    size = np.linalg.norm(Fx, axis=1) * np.linalg.norm(Fy, axis=1)
    assert (np.abs(products[0] - products[1]) <= solving(robot.nv, cond) * size).all()


def test_a_long_chain_held_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written out and no matrix formed: M a + h = tau + Gamma^T N and Gamma a + gamma = 0."""
    n = 1000
    robot, rng = chain(n), np.random.default_rng(0)
    q, v, tau = rng.normal(size=(3, n)) / np.sqrt(n)
    monkeypatch.setattr(module, "constraint_program", None)
    matrix = robot.mass_matrix
    monkeypatch.setattr(robot, "mass_matrix", None)
    held: list[Any] = [
        {"link": "l999", "point": (0.5, 0.0, 0.0)},
        {"link": "l300", "point": (0, 0, 0), "rows": 6},
    ]
    m = constrained_dynamics(robot, q, v, tau, contacts=held)
    assert m.rank == 9
    left = robot.inverse_dynamics(q, v, m.a) - tau - m.jacobian.T @ m.reactions
    monkeypatch.setattr(robot, "mass_matrix", matrix)
    assert np.abs(left).max() <= n * EPS * (np.abs(matrix(q)) @ np.abs(m.a)).max()
    rows = np.abs(m.jacobian) @ np.abs(m.a)
    assert np.abs(m.jacobian @ m.a + m.gamma).max() <= n * EPS * rows.max()
    after = impact(robot, q, v, contacts=held[1:])
    assert np.abs(after.jacobian @ after.v).max() <= n * EPS * (np.abs(after.jacobian) @ np.abs(after.v)).max()
    twice = constrained_dynamics(robot, q, v, tau, contacts=held[:1] * 2)
    assert twice.rank == 3


def test_a_large_tree_is_put_on_its_constraints() -> None:
    robot = chain(120)
    q = np.full(120, 0.01)
    at = robot.pose(q, "l119")[:3, 3] + (0.0, 0.01, 0.02)
    foot = [constraint.contact("l119", (0.0, 0.0, 0.0), anchor=at)]
    there, _ = hold(robot, q, 0 * q, constraints=foot)
    assert np.abs(robot.pose(there, "l119")[:3, 3] - at).max() <= 1e-11
    found = robot.assemble(q, constraints=foot)
    assert np.abs(robot.pose(found, "l119")[:3, 3] - at).max() <= 1e-11


def test_a_singular_state_is_named() -> None:
    """A wrist without mass far in a chain: the joint, and the state of a batch, not the row of the constraint."""
    n = 80
    axes = [np.eye(3)[i % 3] for i in range(n)]
    axes[50:53] = np.eye(3)[[2, 1, 2]]
    model = chain_with(["revolute"] * n, axes, [0.0 if k in (50, 51) else 1.0 for k in range(n)])
    joints = [replace(j, origin=(0.0, 0.0, 0.0)) if k in (51, 52) else j for k, j in enumerate(model.joints)]
    robot = Robot(replace(model, joints=tuple(joints)))
    q = np.random.default_rng(0).normal(size=(3, n))
    q[1, 51] = 1e-9
    held: list[Any] = [{"link": "l79", "point": (0.0, 0.0, 0.0)}]
    for states_, where in ((q, "in row 1:"), (q[1], ":")):
        with pytest.raises(NumericsError, match=rf"singular to working precision at joint 'j5[01]' ?{where}"):
            constrained_dynamics(robot, states_, 0 * states_, 0 * states_, contacts=held)
