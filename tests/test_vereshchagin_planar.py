"""The planar special case of separate bodies against the one in space, the mass matrix and the chain of rods."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import strategies
from scipy.integrate import solve_ivp
from tolerances import solving

from drevo.errors import TraceError
from drevo.mechanics.algorithms import inertia_matrix
from drevo.mechanics.formalisms import vereshchagin, vereshchagin_planar
from drevo.mechanics.tree import Tree, build_tree
from drevo.model.description import Model
from drevo.robots import rod_chain

CHAIN = json.loads((Path(__file__).parent / "data" / "yudintsev-chain.json").read_text())


def plane_tree(seed: int) -> Model:
    """A random tree of hinges about one direction and slides across it: each link turned about it at q = 0."""
    rng = np.random.default_rng(seed)
    model = strategies.robot(seed, ("revolute",), 10, "fixed", 0.0, 0.0)
    k = int(rng.integers(3))
    axis, slides = strategies.vec(np.eye(3)[k]), seed % 3
    joints = [
        replace(j, axis=axis, rotation=strategies.mat(strategies.about(k, float(rng.uniform(-3.0, 3.0)))))
        if j.parent != model.root
        else replace(j, axis=axis)
        for j in model.joints
    ]
    for i, j in enumerate(joints[slides:], slides):  # about every third joint is a slide in the plane
        if slides and rng.random() < 0.4:
            angle = float(rng.uniform(-3.0, 3.0))
            along = np.roll([0.0, np.cos(angle), np.sin(angle)], k)
            joints[i] = replace(j, kind="prismatic", axis=strategies.vec(along))
        elif rng.random() < 0.3:
            joints[i] = replace(j, axis=strategies.vec(-np.eye(3)[k]))
    return replace(model, joints=tuple(joints))


def numbers(x: np.ndarray) -> list[float]:
    return [float(e) for e in x]


@pytest.mark.parametrize("seed", range(30))
def test_same_as_in_space(seed: int) -> None:
    """Branches, offsets along the axis, skewed bases, bodies of any inertia."""
    model = plane_tree(seed)
    tree = build_tree(model)
    assert seed % 3 == 0 or seed > 2 or "prismatic" in {b.kind for b in tree.bodies} or len(tree) < 4
    q, v, tau = (numbers(x) for x in strategies.state(model, seed))
    M = np.array(inertia_matrix.mass_matrix(tree, q), float)
    allowed = solving(model.nv, float(np.linalg.cond(M)))
    found = np.array(vereshchagin_planar.forward_dynamics(tree, q, v, tau))
    for method in (inertia_matrix.forward_dynamics, vereshchagin.forward_dynamics):
        right = np.array(method(tree, q, v, tau))
        assert np.abs(found - right).max() <= allowed * np.abs(right).max()


def test_rows_are_those_of_the_slides() -> None:
    """C, S and a' of the chain of rods by (25)-(28), written with numpy as the slides write them."""
    tree = build_tree(rod_chain(10).model)
    rng = np.random.default_rng(0)
    q, v = rng.normal(size=(2, 10))
    rods, back, l = vereshchagin_planar.separate(tree, q.tolist(), v.tolist()), np.array([[0, 1], [-1, 0]]), 0.1
    for k, rod in enumerate(rods):
        A, before = (turn(np.sum(q[: k + 1])), turn(np.sum(q[:k])))
        own, other = A @ [-l / 2, 0], before @ [l / 2, 0] * (k > 0)
        w, w0 = np.sum(v[: k + 1]), np.sum(v[:k])
        assert np.allclose(rod.S, [*(back @ own), 1.0], rtol=0, atol=1e-15)
        assert np.allclose(np.array(rod.C)[:2, 2], back @ (own - other), rtol=0, atol=1e-15)
        assert np.allclose(rod.bias, [*(-other * w0**2 + own * w**2), 0.0], rtol=0, atol=1e-13)


def turn(angle: float) -> np.ndarray:
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def test_chain_of_rods_falls_as_the_reference() -> None:
    """Against the reference in 113 bits: 1e-10 rad at rtol 1e-12 up to t = 0.5 s."""
    tree: Tree = build_tree(rod_chain(10).model)
    zero = [0.0] * 10

    def rate(_: float, y: np.ndarray) -> np.ndarray:
        return np.array(
            [*y[10:], *vereshchagin_planar.forward_dynamics(tree, numbers(y[:10]), numbers(y[10:]), zero)]
        )

    t = np.array(CHAIN["t"])
    inside = t <= 0.5
    start = np.array([*CHAIN["q"][0], *CHAIN["qd"][0]])
    found = solve_ivp(rate, (0.0, 0.5), start, "DOP853", t[inside], rtol=1e-12, atol=1e-14).y
    assert np.abs(found[:10].T - np.array(CHAIN["q"])[inside]).max() <= 1e-10
    assert np.abs(found[10:].T - np.array(CHAIN["qd"])[inside]).max() <= 1e-8


def test_other_joints_are_refused_by_name() -> None:
    tree = build_tree(strategies.robot(1, ("helical",), 3, "fixed", 0.0, 0.0))
    with pytest.raises(TraceError, match=r"joint 'j.*helical.*vereshchagin takes every joint"):
        vereshchagin_planar.forward_dynamics(tree, [0.0] * 3, [0.0] * 3, [0.0] * 3)
