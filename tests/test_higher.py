"""Derivatives of second and third order, of a published arm and of trees with every joint, and along a motion."""

from __future__ import annotations

from importlib.metadata import files
from itertools import product
from math import factorial
from typing import Any

import numpy as np
import pytest
import tolerances as tol
from kovalchuk_cases import Array, worst
from reference import Reference
from strategies import EVERY, SIMPLE, robot, seeds, state

import drevo
from drevo.codegen.graph.evaluate import evaluate
from drevo.compiler.differentiate import derivative, derivative_program, unpack
from drevo.compiler.search import Preparation
from drevo.mechanics.algorithms.derivatives import motion_series
from drevo.mechanics.algorithms.inertia_matrix import apply_inertia, mass_matrix
from drevo.mechanics.formalisms import zaremba
from drevo.mechanics.formalisms.zaremba_terms import ZarembaTerms
from drevo.mechanics.jet import Series, coefficient
from drevo.mechanics.tree import Tree, build_tree
from drevo.model.description import Model
from drevo.model.quantities import quantity as found
from drevo.robot.face import Robot

STEP = 1e-30
CHAINED = (*SIMPLE, "cylindrical", "universal", "planar")  # coordinates whose rates are v: derivatives commute


def panda() -> Robot:
    """Seven hinges and two fingers that one coordinate drives, as published."""
    (path,) = [f for f in files("example-robot-data") or () if f.name == "panda.urdf"]
    return drevo.load(str(path.locate()))


PANDA = panda()


BALL = robot(11, kinds=("spherical", "helical", "universal"), n=3, base="floating")
_MADE: dict[Any, Any] = {}  # of the robots above, which many tests ask


def program(r: Robot | Model, name: str, wrt: str, method: str = "auto", **options: str) -> Any:
    """The program of a derivative; wrt by letters."""

    def make() -> Any:
        return derivative_program(getattr(r, "model", r), found(name), tuple(wrt), method, options)

    key = id(r), name, wrt, method, *options.items()
    if r is not PANDA and r is not BALL:
        return make()
    if key not in _MADE:
        _MADE[key] = make()
    return _MADE[key]


def value(p: Any, *given: Any, dtype: Any = np.float64) -> Array:
    """Its only output on numbers, real or complex, without compiling it."""
    return evaluate(p, dict(zip((i.name for i in p.inputs), given)), dtype=dtype)[p.outputs[0].name]


def by_step(p: Any, at: int, *given: Array) -> Array:
    """The derivative of a program by its argument `at`, by complex steps, on one more axis."""
    ways = 1j * STEP * np.eye(len(given[at]))
    moved = [x + ways if k == at else x for k, x in enumerate(given)]
    return np.moveaxis(value(p, *moved, dtype=np.complex128).imag / STEP, 0, -1)


def dense(entries: zaremba.Entries, *shape: int) -> Array:
    out = np.zeros(shape, complex)
    for key, x in entries.items():
        out[key] = x
    return out


# -- the theorems on trees ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", seeds(2, 6))
@pytest.mark.parametrize("meeting", [0, 1, 3])
def test_orders_of_mixed_trees(seed: int, meeting: int) -> None:
    """d^p M and d^p g, p = 1, 2, 3, against complex steps of order p - 1, on branches, mimics, reduced trees."""
    model = robot(seed, kinds=CHAINED, n=4, base="fixed", mimics=0.4)
    n, q = model.nv, state(model, seed)[0]
    plain = build_tree(model)
    tree = Preparation(frames=True).prepare(plain) if meeting == 3 else plain
    below = [lambda x: dense(dict(np.ndenumerate(np.array(mass_matrix(plain, list(x)), complex))), n, n)]
    below += [lambda x, p=p: dense(zaremba.mass_matrix_derivatives(tree, list(x), p, meeting), *[n] * (2 + p))
              for p in (1, 2, 3)]  # fmt: skip
    weight = [lambda x, p=p: dense(zaremba.gravity_derivatives(tree, list(x), p, meeting), *[n] * (1 + p))
              for p in range(4)]  # fmt: skip
    for order in (below, weight):
        for p in range(3):
            stepped = np.stack([order[p](q + 1j * STEP * e).imag / STEP for e in np.eye(n)], -1)
            assert worst(order[p + 1](q).real, stepped) <= tol.COMPLEX_STEP


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("seed", seeds(2, 8))
def test_orders_along_geodesics(base: str, seed: int) -> None:
    """Ball and free joints too: d^p M in one direction w is the p-th derivative of M(q exp(s w)), p = 1, 2, 3."""
    model = robot(seed, kinds=EVERY, n=3, base=base, mimics=0.3)
    tree, n, q = build_tree(model), model.nv, list(state(model, seed)[0])
    w = np.random.default_rng(seed).normal(size=n)
    still = [[0.0] * n] * 2
    (at,) = motion_series(tree, q, [list(w), *still], 3)
    path = mass_matrix(tree, at)
    for p in (1, 2, 3):
        along = dense(zaremba.mass_matrix_derivatives(tree, q, p), *[n] * (2 + p)).real
        for _ in range(p):
            along = along @ w
        want = [[coefficient(x, p) * factorial(p) for x in row] for row in path]
        assert worst(along, want) <= tol.COMPLEX_STEP


@pytest.mark.parametrize("frame", ["local", "world", "local_world_aligned"])
def test_poses_and_jacobians(frame: str) -> None:
    """d^p T and d^p J of the tip, orders 1 to 3, against complex steps; with ball joints against the graph."""
    model = robot(5, kinds=CHAINED, n=4, base="fixed", mimics=0.4)
    tree, n, q, link = build_tree(model), model.nv, state(model, 5)[0], model.links[-1].name
    for p in range(3):
        below, above = (
            lambda x, k=k: dense(zaremba.jacobian_derivatives(tree, list(x), link, frame, k), 6, *[n] * (k + 1))
            for k in (p, p + 1)
        )
        if p == 0:
            assert worst(below(q).real, Reference(model).jacobian(q, link=link, frame=frame)) <= tol.SAME
        stepped = np.stack([below(q + 1j * STEP * e).imag / STEP for e in np.eye(n)], -1)
        assert worst(above(q).real, stepped) <= tol.COMPLEX_STEP
    q, link = state(BALL, 2)[0], BALL.links[-1].name
    given = {"pose": {"link": link}, "jacobian": {"link": link, "frame": frame}}
    for name, options in list(given.items())[frame != "local" :]:  # a pose has no frame to choose
        for wrt in ("q", "qq"):
            got, want = (value(program(BALL, name, wrt, m, **options), q) for m in ("theorems", "graph"))
            assert worst(got, want) <= tol.COMPLEX_STEP


def test_composite_inertias() -> None:
    """Theorem 3 and (2.13) to order 3 against complex steps; order 0 is the definition."""
    model = robot(2, kinds=CHAINED, n=5, base="fixed", mimics=0.0)
    tree, n, q = build_tree(model), model.nv, state(model, 2)[0]
    for body in range(len(tree)):
        for p in range(3):
            below, above = (
                lambda x, k=k, b=body: by_indices(zaremba.composite_derivatives(tree, list(x), b, k), n, k)
                for k in (p, p + 1)
            )
            stepped = np.stack([below(q + 1j * STEP * e).imag / STEP for e in np.eye(n)], -1)
            assert np.abs(above(q).real - stepped).max() <= tol.COMPLEX_STEP * max(1.0, np.abs(stepped).max())
    total = zaremba.composite_derivatives(tree, list(q), 0, 0)[()]
    assert total[0] == pytest.approx(sum(b.inertia.m for i, b in enumerate(tree.bodies) if under(tree, i, 0)))


def by_indices(parts: Any, n: int, order: int) -> Array:
    out = np.zeros((10, *[n] * order), complex)
    for ts, x in parts.items():
        out[(slice(None), *ts)] = x
    return out


def under(tree: Tree, i: int, top: int) -> bool:
    while i > top:
        i = tree.bodies[i].parent
    return i == top


@pytest.mark.parametrize("name", ["puma560", "stanford", "two-arm-spatial", "biped"])
def test_compact_christoffel(name: str) -> None:
    """The compact form as printed in (2.14)'s place: three terms of Theta <l^t>^T l at the deepest of i, s, j."""
    r = drevo.load(name)
    tree, q = build_tree(r.model), r.random(np.random.default_rng(1))
    c, want = ZarembaTerms.at(tree, list(q)), np.zeros((r.nv,) * 3)
    for m, b in enumerate(tree.bodies):
        rates = sorted(c.over[m] | {b.v})
        l = {i: c.column(i, m, ()) for i in rates}
        F = {i: apply_inertia(c.inertia(m, ()), x) for i, x in l.items()}
        owner = {x.v: k for k, x in enumerate(tree.bodies)}

        def term(x: int, t: int, y: int, l: Any = l, F: Any = F, owner: Any = owner) -> float:
            """[y above t] l^x . Theta <l^t>^T l^y."""
            return l[y].cross(l[t]).dot(F[x]) if owner[y] < owner[t] else 0.0

        for i, s, j in product(rates, repeat=3):
            if b.v in (i, s, j):
                plus = term(i, s, j) + term(j, s, i) + term(i, j, s) + term(s, j, i)
                want[i, s, j] += 0.5 * (plus - term(j, i, s) - term(s, i, j))
    got = dense(zaremba.christoffel(tree, list(q)), *[r.nv] * 3).real
    assert worst(got, want) <= tol.SAME
    assert all(np.array_equal(d, d.T) for d in got)


@pytest.mark.parametrize("quantity", ["mass_matrix", "bias", "inverse_dynamics", "coriolis_matrix", "gravity"])
@pytest.mark.parametrize("name", ["puma560", "screw-arm"])
def test_written_out(name: str, quantity: str) -> None:
    """Zaremba's book is one of the formalisms; its equations are checked against the plain recursion."""
    d = drevo.write_out(drevo.load(name), quantity, formalism="zaremba")
    assert d.formalism == "zaremba" and d.checks[0][1] <= tol.SAME
    with pytest.raises(drevo.TraceError, match="external"):
        drevo.compile(drevo.load(name), "bias", formalism="zaremba", f_ext=["link1"])


COUNTS = {"puma560": (313, 523, 787), "panda": (1196, 3073, 6387)}  # operations of d^p M / dq^p, p = 1, 2, 3


@pytest.mark.counts
@pytest.mark.parametrize("name", COUNTS)
def test_fewer_operations_than_the_graph(name: str) -> None:
    """The theorems take no more than differentiating the traced equations, and what they took before."""
    r = PANDA if name == "panda" else drevo.load(name)
    for p, known in enumerate(COUNTS[name], 1):
        auto, graph = (program(r, "mass_matrix", "q" * p, m) for m in ("auto", "graph"))
        took, other = (x.counts["mul"] + x.counts["add"] for x in (auto, graph))
        print(f"d{p}M/dq{p} of {name}: {took} operations, the graph {other}")
        assert auto.meta["formalism"] == "zaremba" and took <= known and took <= other


# -- the Panda ---------------------------------------------------------------------------------------------


def test_third_order_of_the_panda() -> None:
    """d3M/dq3 of the Panda, compiled and batched; complex steps of the second order; zeros known by structure."""
    q = PANDA.random(np.random.default_rng(4), 33)
    f = derivative(PANDA, "mass_matrix", ("q", "q", "q"), method="theorems", packed=True)
    packed, got = f(q), unpack(f, f(q))
    assert packed.shape == (33, len(f.pattern[0])) and packed.shape[1] < 8**5 / 25
    assert np.array_equal(got[(slice(None), *f.pattern)], packed) and got.shape == (33, *[8] * 5)
    assert worst(got[7], by_step(program(PANDA, "mass_matrix", "qq"), 0, q[7])) <= tol.COMPLEX_STEP
    assert np.array_equal(got, np.swapaxes(got, -1, -3)) and np.array_equal(got, np.swapaxes(got, 1, 2))
    assert not got[..., 0].any()


PAIRS = {"qq": 0, "qv": 1, "vv": 1, "qa": 2, "va": 2}  # wrt: which argument takes the last step


@pytest.mark.parametrize("wrt", PAIRS)
def test_second_order_of_inverse_dynamics(wrt: str) -> None:
    """d2 tau of the Panda by every pair, against complex steps of the first derivative, each way."""
    rng = np.random.default_rng(6)
    given = (PANDA.random(rng), *rng.normal(size=(2, 8)))
    want = by_step(program(PANDA, "inverse_dynamics", wrt[0], "graph"), PAIRS[wrt], *given)
    for method in ("auto", "theorems"):
        got = value(program(PANDA, "inverse_dynamics", wrt, method), *given)
        assert got.shape == (8, 8, 8)
        assert np.abs(got - want).max() <= tol.COMPLEX_STEP * max(1.0, np.abs(want).max())


def test_second_order_of_inverse_dynamics_compiled() -> None:
    """The same as the user calls it: a Function over batches."""
    rng = np.random.default_rng(7)
    q, v, a = PANDA.random(rng, 20), *rng.normal(size=(2, 20, 8))
    f = drevo.compile(PANDA, "inverse_dynamics", wrt=("v", "v"))
    assert f(q, v, a).shape == (20, 8, 8, 8)
    want = value(program(PANDA, "inverse_dynamics", "vv", "graph"), q[11], v[11], a[11])
    assert worst(f(q, v, a)[11], want) <= tol.COMPLEX_STEP


@pytest.mark.parametrize("wrt", ["qqq", "qqv", "qvv", "qqa"])
def test_third_order_of_inverse_dynamics(wrt: str) -> None:
    """d3 tau of a PUMA by the theorems, against complex steps of the second derivative of the graph."""
    r, rng = drevo.load("puma560"), np.random.default_rng(8)
    given = (r.random(rng), *rng.normal(size=(2, 6)))
    want = by_step(program(r, "inverse_dynamics", wrt[1:], "graph"), 0, *given)
    got = value(program(r, "inverse_dynamics", wrt, "theorems"), *given)
    assert worst(np.moveaxis(got, 1, -1), want) <= tol.COMPLEX_STEP


# -- along a motion ----------------------------------------------------------------------------------------


def quaternion_product(a: Array, b: Array) -> Array:
    x, y = a[:3], b[:3]
    return np.append(a[3] * y + b[3] * x + np.cross(x, y), a[3] * b[3] - x @ y)


def swing(model: Model, t: complex) -> tuple[Array, Array]:
    """q(t) and v(t) of an analytic motion, for complex t: sines; turns about z, then about the turned x."""
    q, v = np.zeros(model.nq, complex), np.zeros(model.nv, complex)
    for k, (j, sq, sv) in enumerate(model.slices()):
        for i in range(j.nv if j.nq == j.nv else 0):
            q[sq.start + i], v[sv.start + i] = 0.7 * np.sin(t + k + i), 0.7 * np.cos(t + k + i)
        if j.nq == j.nv:
            continue
        (z, dz), (x, dx) = (0.9 * np.sin(t + k), 0.9 * np.cos(t + k)), (0.5 * t + 0.2 * k, 0.5)
        first = np.array([0, 0, np.sin(z / 2), np.cos(z / 2)])
        turn = np.array([np.sin(x / 2), 0, 0, np.cos(x / 2)])
        q[sq.stop - 4 : sq.stop] = quaternion_product(first, turn)
        v[sv.stop - 3 : sv.stop] = [dx, dz * np.sin(x), dz * np.cos(x)]
        if j.kind == "free":
            q[sq.start : sq.start + 3] = np.sin(t + np.arange(3))
            Z = np.array([[np.cos(z), -np.sin(z), 0], [np.sin(z), np.cos(z), 0], [0, 0, 1]])
            X = np.array([[1, 0, 0], [0, np.cos(x), -np.sin(x)], [0, np.sin(x), np.cos(x)]])
            v[sv.start : sv.start + 3] = (Z @ X).T @ np.cos(t + np.arange(3))
    return q, v


def cauchy(f: Any, t: complex, order: int, radius: float = 0.5, points: int = 32) -> Array:
    """The derivative of an analytic function by Cauchy's integral over a circle; the error is of rounding only."""
    turns = np.exp(2j * np.pi * np.arange(points) / points)
    values = np.array([f(t + radius * z) * z ** (-order) for z in turns])
    return values.mean(0) * factorial(order) / radius**order


MOVING = {
    "arm": lambda: drevo.load("puma560").model,
    "tree": lambda: robot(3, kinds=CHAINED, n=4, base="fixed", mimics=0.4),
    "floating": lambda: robot(11, kinds=("spherical", "helical", "revolute"), n=3, base="floating"),
}


@pytest.mark.parametrize("case", MOVING)
def test_along_a_motion(case: str) -> None:
    """Rates of M, of poses, and of torques (jerk, snap), against Cauchy's integral along an analytic motion."""
    model = MOVING[case]()
    plain, now = Reference(model), 0.3
    rates = [cauchy(lambda t: swing(model, t)[1], now, k).real for k in range(5)]

    def torque(t: complex) -> Array:
        q, v = swing(model, t)
        return plain.inverse_dynamics(q, v, cauchy(lambda s: swing(model, s)[1], t, 1))

    link = model.links[-1].name
    along = {
        "inverse_dynamics": (torque, 2, {}),
        "mass_matrix": (lambda t: plain.mass_matrix(swing(model, t)[0]), 0, {}),
        "bias": (lambda t: plain.bias(*swing(model, t)), 1, {}),
        "pose": (lambda t: plain.pose(swing(model, t)[0], link=link), 0, {"link": link}),
    }
    q = swing(model, now)[0].real
    for name, (f, known, options) in along.items():
        for order in (1, 2, 3):
            got = value(program(model, name, "t" * order, **options), q, *rates[: known + order])
            want = cauchy(f, now, order).real
            assert np.abs(got - want).max() <= 1e-10 * max(1.0, np.abs(want).max()), (name, order)


def test_snap_torques_compiled() -> None:
    """As the user calls them: arguments q, v, a, j, s in batches; a motion at constant speed of a planar arm."""
    r = drevo.load("puma560")
    rng = np.random.default_rng(2)
    q, (v, a, j, s) = r.random(rng, 50), rng.normal(size=(4, 50, 6))
    first, second = (drevo.compile(r, "inverse_dynamics", wrt=("t",) * k) for k in (1, 2))
    assert first(q, v, a, j).shape == second(q, v, a, j, s).shape == (50, 6)
    dq, dv, M = r.inverse_dynamics_derivatives(q, v, a)
    chain = sum(np.einsum("bij,bj->bi", D, x) for D, x in ((dq, v), (dv, a), (M, j)))
    assert worst(first(q, v, a, j), chain) <= tol.DERIVATIVES
    dM = drevo.compile(r, "mass_matrix", wrt="t")(q, v)
    C = r.coriolis_matrix(q, v)
    assert worst(dM, C + np.swapaxes(C, 1, 2)) <= tol.RATES
    assert worst(second(q, v, a, j, s) - second(q, v, a, j, 0 * s), np.einsum("bij,bj->bi", M, s)) <= tol.RATES


def test_snap_torques_cost_as_the_bodies_grow() -> None:
    """O(n): every eight bodies more take the same operations."""
    took = []
    for n in (8, 16, 24):
        c = program(drevo.robots.rod_chain(n), "inverse_dynamics", "tt").counts
        took.append(c["mul"] + c["add"])
    assert took[2] - took[1] == took[1] - took[0]


def test_series() -> None:
    """Quotients, roots, powers and sines of series against those of the functions, by Cauchy's integral."""
    c = [0.7, 0.3, -0.2, 0.5, 0.1]
    x = Series(c)

    def at(t: complex) -> complex:
        return sum(a * t**k for k, a in enumerate(c))

    cases = [
        (x.sin() * 2.0 - x, lambda u: 2.0 * np.sin(u) - u),
        (1.0 - x.cos() / x, lambda u: 1.0 - np.cos(u) / u),
        (2.0 / x.sqrt(), lambda u: 2.0 / np.sqrt(u)),
        (x**3 / 4.0 + 1.0, lambda u: u**3 / 4.0 + 1.0),
    ]
    for got, f in cases:
        want = [cauchy(lambda t, f=f: f(at(t)), 0.0, k, 0.2).real / factorial(k) for k in range(5)]
        assert np.abs(np.array(got.c) - want).max() <= 1e-11  # rounding / radius^4


def test_refusals() -> None:
    """One sentence each."""
    r = drevo.load("puma560")
    with pytest.raises(drevo.InputError, match="stands alone"):
        derivative(r, "mass_matrix", ("q", "t"))
    with pytest.raises(drevo.InputError, match="differentiate inverse_dynamics"):
        derivative(r, "forward_dynamics", "t")
    with pytest.raises(drevo.InputError, match="one method"):
        derivative(r, "mass_matrix", "t", method="graph")
    with pytest.raises(drevo.InputError, match="no packed derivative"):
        unpack(derivative(r, "gravity", "q"), np.zeros(36))
