"""The expression graph: every rule on construction is an identity, and none costs an operation."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from drevo.codegen.graph.derivative import cotangents, partial, tangents
from drevo.codegen.graph.evaluate import evaluate, evaluate_edges
from drevo.codegen.graph.node import Expr, Graph
from drevo.codegen.graph.nodes import CEILING
from drevo.codegen.graph.ops import FUNCTIONS
from drevo.codegen.graph.program import Input, Output, Parameter, Program
from drevo.errors import TraceError
from drevo.mechanics import jet, scalar

DYADIC = (0.0, 1.0, -1.0, 2.0, -0.5, 0.25, -3.0)  # constants whose folding is exact in doubles


def exact(graph: Graph, x: Any, leaves: dict[int, Fraction]) -> Fraction:
    """Value of a scalar in rational arithmetic."""
    if isinstance(x, float):
        return Fraction(x)
    return evaluate_edges(graph, [x.edge], leaves, Fraction)[0]


def grow(rng: random.Random, graph: Graph, pool: list[tuple[Any, Fraction]]) -> None:
    """Adds one random operation to a pool of (traced, exact) pairs."""
    (x, fx), (y, fy) = rng.choice(pool), rng.choice(pool)
    op = rng.choice("+-*n" if abs(fx) + abs(fy) < 10**6 else "+-n")
    if op == "+":
        pool.append((x + y, fx + fy))
    elif op == "-":
        pool.append((x - y, fx - fy))
    elif op == "*":
        pool.append((x * y, fx * fy))
    else:
        pool.append((-x, -fx))


def start(rng: random.Random) -> tuple[Graph, list[tuple[Any, Fraction]], dict[int, Fraction]]:
    """Inputs, parameters and constants with random rational values."""
    graph = Graph()
    leaves = [graph.input(f"x{i}") for i in range(3)] + [graph.parameter(f"p{i}") for i in range(2)]
    values = {x.edge >> 1: Fraction(rng.randint(-9, 9), rng.randint(1, 9)) for x in leaves}
    pool: list[tuple[Any, Fraction]] = [(x, values[x.edge >> 1]) for x in leaves]
    pool += [(c, Fraction(c)) for c in DYADIC]
    return graph, pool, values


@pytest.mark.parametrize("seed", range(300))
def test_rules_are_identities(seed: int) -> None:
    """Whatever the rules make of an expression has exactly its value, in rational arithmetic."""
    rng = random.Random(seed)
    graph, pool, values = start(rng)
    for _ in range(60):
        grow(rng, graph, pool)
    for x, expected in pool[-30:]:
        assert exact(graph, x, values) == expected


@pytest.mark.parametrize("seed", range(50))
def test_rules_never_cost(seed: int) -> None:
    """The graph never holds more operations than were asked for."""
    rng = random.Random(1000 + seed)
    graph, pool, _ = start(rng)
    before, asked = len(graph) - len(graph.constants), 40
    for _ in range(asked):
        grow(rng, graph, pool)
    edges = [x.edge for x, _ in pool if isinstance(x, Expr)]
    operations = [n for n in graph.live(edges) if graph.op[n] > 2]
    assert len(operations) <= len(graph) - before
    for x, _ in pool[-5:]:
        alone = graph.live([x.edge]) if isinstance(x, Expr) else []
        assert len([n for n in alone if graph.op[n] > 2]) <= asked


def test_negation_makes_no_node() -> None:
    """Signs live on edges."""
    graph = Graph()
    x, y = graph.input("x"), graph.input("y")
    size = len(graph)
    assert (-x).edge >> 1 == x.edge >> 1 and len(graph) == size
    assert (x - y).edge == (-(y - x)).edge
    assert ((-x) * y).edge == (-(x * (-y) * -1.0)).edge


def test_structural_zeros_and_ones_fold_to_numbers() -> None:
    """0 x, x - x and x / x are Python floats, so they never enter an algorithm as nodes."""
    x = Graph().input("x")
    assert 0.0 * x == 0.0 and isinstance(x * 0.0, float)
    assert x - x == 0.0 and x / x == 1.0 and -x / x == -1.0
    assert (1.0 * x).edge == x.edge and (x + 0.0).edge == x.edge
    assert -0.0 * x == 0.0 and math.copysign(1.0, -0.0 * x) == 1.0


def test_odd_and_even_functions() -> None:
    """sin(-x) = -sin x and cos(-x) = cos x share one node."""
    x = Graph().input("x")
    assert (-x).sin().edge == (-(x.sin())).edge and (-x).cos().edge == x.cos().edge


@pytest.mark.counts
def test_parameter_work_is_gathered() -> None:
    """p (r x) = (p r) x and p x + r x = (p + r) x: one product with the state."""
    graph = Graph()
    x, p, r = graph.input("x"), graph.parameter("p"), graph.parameter("r")
    y = p * (r * x) + r * x
    program = Program(
        "y",
        graph,
        (Input("x", (), (x.edge >> 1,)),),
        tuple(Parameter(n, e.edge >> 1, 1.0) for n, e in (("p", p), ("r", r))),
        (Output("y", (), (y.edge,)),),
    )
    assert program.counts["mul"] == 1 and program.counts["add"] == 0 and program.counts["hoisted"] == 2


def test_counts_follow_the_convention() -> None:
    """2x is an addition, sums inside sines only are angle sums, a shared sum is not."""
    graph = Graph()
    a, b = graph.input("a"), graph.input("b")
    angle = a + b
    outputs = [angle.sin(), 2.0 * a, a * b]
    program = Program(
        "f", graph, (Input("x", (2,), (0, 1)),), (), (Output("y", (3,), tuple(graph.edge(x) for x in outputs)),)
    )
    assert program.counts == {"add": 1, "mul": 1, "div": 0, "trig": 1, "angle_sums": 1, "hoisted": 0}
    more = Program("g", graph, program.inputs, (), (Output("y", (2,), (outputs[0].edge, angle.edge)),))
    assert more.counts["add"] == 1 and more.counts["angle_sums"] == 0


def test_the_rate_of_a_rotation_is_its_other_component(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sweeps give what they give without that rule, whatever the signs; backwards six operations fewer."""

    def swept(signs: tuple[int, ...]) -> tuple[list[np.ndarray], list[int]]:
        g = Graph()
        t, x, y, w, z = map(g.input, "txywz")
        c, s = t.cos(), t.sin()
        a, b, d, e = signs
        ends = [a * c * x + b * s * y, d * s * x + e * c * y]
        rows = [
            cotangents(ends, [w, z], [t, x, y]),
            [r for one in (t, x, y) for r in tangents(ends, {one.edge: w})],
        ]
        known = dict(zip((u.edge >> 1 for u in (t, x, y, w, z)), (0.3, 0.7, -1.1, 0.4, 2.0)))
        values = [np.array(evaluate_edges(g, [g.edge(r) for r in row], known, float)) for row in rows]
        made = [len(g.live([*(g.edge(r) for r in row), *(o.edge for o in ends)])) for row in rows]
        return values, made

    for signs in product((1, -1), repeat=4):
        found, nodes = swept(signs)
        with monkeypatch.context() as patch:
            patch.setenv("DREVO_WITHOUT", "rates")
            wanted, more = swept(signs)
        assert all(np.allclose(one, other, rtol=1e-14) for one, other in zip(found, wanted))
        paired = signs[0] * signs[1] == -signs[2] * signs[3]
        assert nodes[0] == more[0] - 6 if paired else nodes == more, signs


def test_evaluate_broadcasts() -> None:
    """Leading dimensions broadcast as in NumPy."""
    graph = Graph()
    x, y = graph.input("x"), graph.input("y")
    program = Program(
        "f", graph, (Input("x", (1,), (0,)), Input("y", (1,), (1,))), (), (Output("z", (1,), ((x * y).edge,)),)
    )
    z = evaluate(program, {"x": np.ones((4, 1, 1)), "y": np.arange(3.0)[:, None]})["z"]
    assert z.shape == (4, 3, 1)


def test_failures_are_sentences() -> None:
    """Mixing graphs, branching on a state, dividing by nothing and constants that are no numbers are refused."""
    x, y = Graph().input("x"), Graph().input("y")
    with pytest.raises(TraceError, match="different graphs"):
        x + y
    with pytest.raises(TraceError, match="branched"):
        bool(x)
    with pytest.raises(TraceError, match="structural zero"):
        x / 0.0
    with pytest.raises(TraceError, match="constant became"):
        x * float("nan")
    assert CEILING >= 1_000_000


@pytest.mark.parametrize("name", FUNCTIONS.values())
def test_a_function_goes_by_its_row_through_graphs_jets_and_series(name: str) -> None:
    """What the table says of its rate is right in every kind of scalar, to the third derivative."""
    f = scalar.named_function(name)
    x, d, dd = 0.7, 0.3, -0.4
    y = f(jet.Jet(x, d, dd))
    t = f(jet.Series([x, d, dd / 2, 0.1]))
    assert t.c[:3] == pytest.approx([y.x, y.d, y.dd / 2], rel=1e-14)
    h = 1e-4
    path = [float(f(x + d * s + dd * s * s / 2)) for s in (-h, 0.0, h)]
    assert y.d == pytest.approx((path[2] - path[0]) / (2 * h), rel=1e-6, abs=1e-9)
    assert y.dd == pytest.approx((path[2] - 2 * path[1] + path[0]) / h**2, rel=1e-5, abs=1e-5)
    g = Graph()
    u = g.input("u")
    ((slope,),) = partial([f(u)], [u])
    edge = g.edge(slope)
    (value,) = evaluate_edges(g, [edge], {u.edge >> 1: x})
    assert value == pytest.approx(y.d / d, rel=1e-14, abs=1e-14)


def test_an_angle_goes_through_graphs_jets_and_series() -> None:
    """atan2 of two states or a state and a number, its derivatives to the third; on numbers and arrays too."""
    path = lambda s: (0.7 + 0.3 * s - 0.2 * s * s + 0.1 * s**3, -0.4 + 0.5 * s + 0.25 * s * s)  # noqa: E731
    t = scalar.atan2(jet.Series([0.7, 0.3, -0.2, 0.1]), jet.Series([-0.4, 0.5, 0.25, 0.0]))
    y = scalar.atan2(jet.Jet(0.7, 0.3, -0.4), jet.Jet(-0.4, 0.5, 0.5))
    assert t.c[:3] == pytest.approx([y.x, y.d, y.dd / 2], rel=1e-14)
    at = [scalar.atan2(*path(k * 1e-2)) for k in (-2, -1, 0, 1, 2)]
    assert t.c[1] == pytest.approx((at[0] - 8 * at[1] + 8 * at[3] - at[4]) / 12e-2, abs=1e-7)
    assert t.c[3] == pytest.approx((at[4] - 2 * at[3] + 2 * at[1] - at[0]) / 12e-6, abs=1e-3)
    assert np.array_equal(scalar.atan2(np.array([1.0, -1.0]), -1.0), np.arctan2([1.0, -1.0], -1.0))
    g = Graph()
    u, w = g.input("u"), g.input("w")
    for angle, slopes in (
        (scalar.atan2(u, w), (-0.4 / 0.65, -0.7 / 0.65)),
        (scalar.atan2(u, -0.4), (-0.4 / 0.65, 0.0)),
        (scalar.atan2(0.7, w), (0.0, -0.7 / 0.65)),
    ):
        found = [angle, *partial([angle], [u, w])[0], scalar.atan2(jet.Jet(u, 1.0), angle).d]
        leaves = {u.edge >> 1: 0.7, w.edge >> 1: -0.4}
        value, *rates, mixed = evaluate_edges(g, [g.edge(x) for x in found], leaves)
        assert value == pytest.approx(math.atan2(0.7, -0.4), rel=1e-15)
        assert rates == pytest.approx(slopes, rel=1e-14)
        assert mixed == pytest.approx(value / (value * value + 0.49), rel=1e-14)
