"""Zaremba's theorems: his vectors, complex steps of an independent sweep, the graph's own derivatives, batches."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tolerances as tol
from kovalchuk_cases import Array, worst
from strategies import HINGED, all_kinds, robot, state
from test_constraints import mechanism

import drevo
from drevo.codegen.graph.evaluate import evaluate
from drevo.compiler.differentiate import derivative, derivative_program
from drevo.mechanics.algorithms.inverse_dynamics import inverse_dynamics
from drevo.mechanics.formalisms import zaremba
from drevo.mechanics.tree import build_tree
from drevo.model.quantities import options_of
from drevo.model.quantities import quantity as found
from drevo.robot.face import Robot

MECHANISMS = json.loads((Path(__file__).parent / "data" / "zaremba.json").read_text())["mechanisms"]
DERIVATIVE = 1e-11


def computed(
    r: Robot | Any, quantity: str, wrt: str | tuple[str, ...], method: str, *given: Any, **options: str
) -> Array:
    """The program of a derivative on numbers, without compiling it."""
    model, x = getattr(r, "model", r), found(quantity)
    program = derivative_program(
        model, x, tuple(wrt), method, options_of((quantity,), options, [l.name for l in model.links])
    )
    return evaluate(program, dict(zip(x.state, given)))[program.outputs[0].name]


WRT: list[tuple[str, ...]] = [("q",), ("v",), ("a",), ("q", "q"), ("v", "q"), ("a", "q"), ("v", "v"), ("a", "v")]


@pytest.mark.parametrize("m", MECHANISMS, ids=lambda m: str(m["name"]))
def test_vectors(m: dict[str, Any]) -> None:
    """dM/dq and the derivatives of inverse dynamics as published, by the theorems and by the graph."""
    r, q, v, a = mechanism(m), m["q"], m["qd"], m["qdd"]
    for method in ("theorems", "graph"):
        assert worst(computed(r, "mass_matrix", "q", method, q), m["dM_dq"]) <= DERIVATIVE
        for s, name in (("q", "dID_dq"), ("v", "dID_dqd"), ("a", "M")):
            got = computed(r, "inverse_dynamics", s, method, q, v, a)
            assert worst(got, m[name]) <= DERIVATIVE, (method, s)


@pytest.mark.parametrize("m", MECHANISMS, ids=lambda m: str(m["name"]))
def test_equations(m: dict[str, Any]) -> None:
    """(2.9), (2.15) with the compact Christoffel symbols, on numbers."""
    tree, q, v = build_tree(mechanism(m).model), m["q"], m["qd"]
    assert worst(np.array(zaremba.mass_matrix(tree, q), float), m["M"]) <= tol.VECTORS
    assert worst(np.array(zaremba.bias(tree, q, v), float), m["bias"]) <= tol.VECTORS
    dM = np.array(m["dM_dq"])
    d = np.zeros_like(dM)
    for key, x in zaremba.christoffel(tree, q).items():
        d[key] = x
    expected = 0.5 * (np.einsum("ijs->isj", dM) + dM - np.einsum("sji->isj", dM))
    assert worst(d, expected) <= DERIVATIVE


def stepped(tree: Any, q: Array, wish: Any, axes: int) -> Array:
    """Order + 1 by a complex step in every coordinate of the order below, a function of q over scalars."""
    h = 1e-30
    return np.stack([wish(q + 1j * h * e).imag / h for e in np.eye(len(q))], axes)


@pytest.mark.parametrize("seed", range(8))
def test_orders_by_complex_step(seed: int) -> None:
    """Order 1 is the complex step of Newton-Euler's M, order p + 1 that of order p, on branching hinged trees."""
    model = robot(seed, kinds=HINGED, n=5, base="fixed", mimics=0.3, welds=0.0)
    tree, n = build_tree(model), model.nv
    q, _, _ = state(model, seed)

    def newton_euler(x: Array) -> Array:
        zero = [0.0] * n
        cut = tree.replace(gravity=tree.gravity * 0.0)
        return np.array([inverse_dynamics(cut, list(x), zero, list(e)) for e in np.eye(n)], complex)

    def theorem(p: int) -> Any:
        return lambda x: dense(zaremba.mass_matrix_derivatives(tree, list(x), p), n, 2 + p)

    def weight(p: int) -> Any:
        return lambda x: dense(zaremba.gravity_derivatives(tree, list(x), p), n, 1 + p)

    assert worst(theorem(0)(q).real, newton_euler(q).real) <= tol.COMPLEX_STEP
    for p in range(3):
        below = newton_euler if p == 0 else theorem(p)
        assert worst(theorem(p + 1)(q).real, stepped(tree, q, below, -1)) <= tol.COMPLEX_STEP
        assert worst(weight(p + 1)(q).real, stepped(tree, q, weight(p), -1)) <= tol.COMPLEX_STEP


def dense(entries: zaremba.Entries, n: int, axes: int) -> Array:
    """Entries as a complex array."""
    out = np.zeros((n,) * axes, complex)
    for key, x in entries.items():
        out[key] = x
    return out


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_every_joint(base: str) -> None:
    """Ball, free, screw, planar joints: the theorems against the traced equations at q (+) d, orders 1 and 2."""
    model = all_kinds(base, 2)
    model = robot(11, kinds=("spherical", "helical", "universal"), n=3, base=base) if base == "floating" else model
    q, _, _ = state(model, 5)
    for quantity in ("mass_matrix", "gravity"):
        for order in (1, 2) if base == "floating" else (1,):
            wrt = ("q",) * order
            got, want = (computed(model, quantity, wrt, m, q) for m in ("theorems", "graph"))
            assert worst(got, want) <= tol.COMPLEX_STEP
            assert order < 2 or np.array_equal(got, np.swapaxes(got, -1, -2))


def test_tangent_space() -> None:
    """With respect to q means along exp: order eight differences of f(q (+) d), to second order."""
    r = Robot(robot(11, kinds=("spherical", "revolute"), n=3, base="floating"))
    q, _, _ = state(r.model, 1)
    first, second = (computed(r, "gravity", ("q",) * p, "auto", q) for p in (1, 2))
    w, h = np.random.default_rng(0).normal(size=r.nv), 0.01
    f = {k: r.gravity(r.integrate(q, k * h * w)) for k in range(-4, 5)}
    along = sum(c * (f[k] - f[-k]) for k, c in ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280))) / h
    twice = -205 / 72 * f[0] + sum(
        c * (f[k] + f[-k]) for k, c in ((1, 8 / 5), (2, -1 / 5), (3, 8 / 315), (4, -1 / 560))
    )
    assert worst(first @ w, along) <= tol.DIFFERENCES and worst(second @ w @ w, twice / h**2) <= 1e-7


@pytest.mark.parametrize("wrt", WRT, ids="".join)
def test_mixed(wrt: tuple[str, ...]) -> None:
    """Inverse dynamics by q, v and a in mixed orders: every way gives the same, axes in the order asked."""
    r = Robot(robot(4, kinds=("revolute", "prismatic", "helical"), n=4, base="fixed"))
    q, v, a = state(r.model, 4)
    want = computed(r, "inverse_dynamics", wrt, "graph", q, v, a)
    for method in ("auto", "theorems"):
        assert worst(computed(r, "inverse_dynamics", wrt, method, q, v, a), want) <= tol.COMPLEX_STEP
    if len(wrt) == 2:
        back = computed(r, "inverse_dynamics", wrt[::-1], "auto", q, v, a)
        assert worst(np.swapaxes(back, -1, -2), want) <= tol.COMPLEX_STEP


def test_other_quantities() -> None:
    """Poses, Jacobians, forward dynamics: compiled first derivatives against those that Drevo has otherwise."""
    r = Robot(robot(11, kinds=("spherical", "helical", "universal"), n=3, base="floating"))
    q, v, tau = state(r.model, 2)
    link = r.link_names[-1]
    turn = computed(r, "velocity", "v", "auto", q, v, link=link)
    assert worst(turn, r.jacobian(q, link)) <= tol.KINEMATICS
    known = r.forward_dynamics_derivatives(q, v, tau)
    for s, want in zip(("q", "v", "tau"), known):
        assert worst(computed(r, "forward_dynamics", (s,), "auto", q, v, tau), want) <= 1e-9
    J = computed(r, "jacobian", "q", "auto", q, link=link)
    dv = computed(r, "velocity", "q", "auto", q, v, link=link)
    assert worst(np.einsum("ijs,j->is", J, v), dv) <= tol.COMPLEX_STEP


def test_third_order_of_an_arm() -> None:
    """d3M/dq3 of a PUMA, compiled: batches, packed storage, zeros, pickling, symmetry, complex step."""
    r = drevo.load("puma560")
    q = r.random(np.random.default_rng(3), 40)
    f = derivative(r, "mass_matrix", ("q", "q", "q"), method="theorems")
    got = f(q)
    assert got.shape == (40, 6, 6, 6, 6, 6)
    assert np.array_equal(got, np.swapaxes(got, -1, -3)) and np.array_equal(got, np.swapaxes(got, 1, 2))
    assert not got[..., 0].any()  # M does not depend on the first angle, nor an entry on what is above it
    tree = build_tree(r.model)

    def second(x: Array) -> Array:
        return dense(zaremba.mass_matrix_derivatives(tree, list(x), 2), 6, 4)

    assert worst(got[7], stepped(tree, q[7], second, -1)) <= tol.COMPLEX_STEP
    packed = derivative(r, "mass_matrix", ("q", "q", "q"), method="theorems", packed=True)
    assert packed(q).shape[-1] < 6**5 / 2
    assert np.array_equal(got[(slice(None), *packed.pattern)], packed(q))
    assert np.array_equal(pickle.loads(pickle.dumps(f))(q), got)  # noqa: S301


def test_branches_are_zero() -> None:
    """Entries and derivatives across branches are structural zeros."""
    r = drevo.load("two-arm-planar")
    f = derivative(r, "mass_matrix", ("q", "q"), packed=True)
    rows, columns, *by = f.pattern
    assert len(rows) < r.nv**4
    M = r.mass_matrix(r.random(np.random.default_rng(0)))
    assert all(M[i, j] != 0.0 for i, j in zip(rows, columns)) and len(by) == 2


def test_refusals() -> None:
    """One sentence each."""
    r = Robot(all_kinds())
    with pytest.raises(drevo.InputError, match="does not depend on 'v'"):
        derivative(r, "mass_matrix", "v")
    with pytest.raises(drevo.InputError, match="wrt is empty"):
        derivative(r, "mass_matrix", ())
    with pytest.raises(drevo.InputError, match="no theorem"):
        derivative(r, "kinetic_energy", "q", method="theorems")
    with pytest.raises(drevo.InputError, match="there are auto"):
        derivative(r, "mass_matrix", "q", method="magic")
    tree = build_tree(r.model)
    with pytest.raises(drevo.TraceError, match="Christoffel"):
        zaremba.bias(tree, r.neutral(), np.zeros(r.nv))
