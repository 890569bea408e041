"""Separate bodies and articulated bodies against the mass matrix: accelerations and joint reactions."""

from __future__ import annotations

import numpy as np
import pytest
from strategies import SIMPLE, robot, state
from tolerances import solving

from drevo.errors import TraceError
from drevo.mechanics.algorithms import articulated_body, inertia_matrix, inverse_dynamics
from drevo.mechanics.algorithms.kinematics import body_poses
from drevo.mechanics.formalisms import vereshchagin
from drevo.mechanics.tree import build_tree

KINDS = (*SIMPLE, "universal", "cylindrical", "planar", "spherical")


def numbers(x: np.ndarray) -> list[float]:
    return [float(e) for e in x]


@pytest.mark.parametrize("seed", range(60))
def test_three_ways_to_the_acceleration(seed: int) -> None:
    """Bias, M and L^T D L; articulated bodies; separate bodies at the centres of mass: one acceleration."""
    model = robot(seed, KINDS, mimics=0.0)
    tree = build_tree(model)
    q, v, tau = (numbers(x) for x in state(model, seed))
    expected = np.array(inertia_matrix.forward_dynamics(tree, q, v, tau))
    M = np.array(inertia_matrix.mass_matrix(tree, q), float).reshape(model.nv, model.nv)
    allowed = solving(model.nv, float(np.linalg.cond(M)) if model.nv else 1.0)
    scale = np.max(np.abs(expected), initial=1e-300)
    for method in (articulated_body.forward_dynamics, vereshchagin.forward_dynamics):
        found = np.array(method(tree, q, v, tau))
        assert np.max(np.abs(found - expected), initial=0.0) <= allowed * scale


@pytest.mark.parametrize("seed", range(30))
def test_reactions_are_the_joint_wrenches(seed: int) -> None:
    """R_k at the centre of mass is what the parent exerts on the body, from the inverse dynamics at q''."""
    model = robot(seed, KINDS, mimics=0.0)
    tree = build_tree(model)
    q, v, tau = (numbers(x) for x in state(model, seed))
    solution = vereshchagin.solve(tree, q, v, tau)
    wrenches, _ = inverse_dynamics.body_wrenches(tree, q, v, solution.a)
    poses = body_poses(tree, q)
    for k, (R, f) in enumerate(zip(solution.reactions, wrenches)):
        c = poses[k].R @ vereshchagin.center(tree.bodies[k].inertia)
        force, moment = poses[k].R @ f.f, poses[k].R @ f.n
        moment = moment - c.cross(force)
        size = max(*(abs(x) for x in (*force, *moment)), *(abs(x) for x in tau), 1.0)
        for a, b in zip((*R.f, *R.n), (*force, *moment)):
            assert abs(a - b) <= 1e-9 * size


def test_external_wrench_acts_in_all_methods() -> None:
    """The same wrench on a link gives the same acceleration."""
    model = robot(7, SIMPLE, n=5, mimics=0.0)
    tree = build_tree(model)
    q, v, tau = (numbers(x) for x in state(model, 7))
    pull = {model.links[-1].name: [1.0, -2.0, 3.0, 0.5, 0.25, -1.0]}
    expected = inertia_matrix.forward_dynamics(tree, q, v, tau, pull)
    for method in (articulated_body.forward_dynamics, vereshchagin.forward_dynamics):
        assert np.allclose(method(tree, q, v, tau, pull), expected, rtol=1e-11, atol=1e-11)
    free = inertia_matrix.forward_dynamics(tree, q, v, tau)
    assert not np.allclose(free, expected, rtol=1e-3)


def test_mimic_joints_are_refused_by_name() -> None:
    """A coordinate that moves two joints couples branches, which an O(n) method cannot carry."""
    model = next(m for m in (robot(s, SIMPLE, mimics=1.0) for s in range(99)) if any(j.mimic for j in m.joints))
    tree = build_tree(model)
    name = next(j.name for j in model.joints if j.mimic)
    zeros = [0.0] * model.nv
    for method in (articulated_body.forward_dynamics, vereshchagin.forward_dynamics):
        with pytest.raises(TraceError, match="newton_euler") as caught:
            method(tree, [0.0] * model.nq, zeros, zeros)
        assert name in str(caught.value) or "mimic" in str(caught.value)
