"""drevo.where, minimum, maximum and clip on every kind of scalar, in laws and constraints; what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kovalchuk_cases import worst
from test_control import acrobot

import drevo
from drevo.codegen.graph.derivative import partial
from drevo.codegen.graph.evaluate import evaluate_edges
from drevo.codegen.graph.node import Condition, Graph
from drevo.constraint import values as constraint
from drevo.mechanics.jet import Jet
from drevo.simulate import Control, simulate

WALL = 0.2


def chosen(x: Any, y: Any) -> list[Any]:
    """Everything that may be asked of two scalars."""
    return [
        drevo.where(x > y, x, 2.0 * y),
        drevo.where(x >= y, x, -y),
        drevo.where((x < 0.3) & (y > -0.2), x * y, 1.0),
        drevo.where((x <= 0.3) | (y >= 0.5), 3.0, x),
        drevo.where((x > 0.1) & True, x, y),
        drevo.minimum(x, y),
        drevo.maximum(x, 0.25),
        drevo.clip(x + y, -0.5, 0.5),
        drevo.clip(x, -math.inf, 0.5),
        abs(x - y),
        (x - y) ** 3,
        drevo.where(x > 0.0, drevo.sqrt(drevo.maximum(x, 1e-3)), drevo.cos(x)),
    ]


def traced(f: Callable[..., list[Any]], n: int = 2) -> tuple[Graph, list[Any], list[Any]]:
    g = Graph()
    x = [g.input(f"x[{i}]") for i in range(n)]
    return g, x, f(*x)


def test_the_same_on_every_scalar() -> None:
    """Nodes, arrays and floats choose alike, also where two are equal; derivatives are those of what is chosen."""
    g, (x, y), out = traced(chosen)
    rng = np.random.default_rng(1)
    states = np.vstack(
        [rng.uniform(-1, 1, (50, 2)), [[0.3, 0.3], [0.3, -0.2], [0.0, 0.0], [0.25, 0.5], [0.5, 0.0]]]
    )
    arrays = dict(zip((x.edge >> 1, y.edge >> 1), states.T))
    values = evaluate_edges(g, [g.edge(e) for e in out], arrays)
    by_hand = np.array([[float(e) for e in chosen(float(a), float(b))] for a, b in states]).T
    with np.errstate(invalid="ignore"):
        assert worst(np.array(values), by_hand) <= 1e-15
        assert worst(np.array([np.broadcast_to(e, len(states)) for e in chosen(*states.T)]), by_hand) <= 1e-15
    rates = evaluate_edges(g, [g.edge(e) for (e, _) in partial(out, [x, y])], arrays)
    jets = [[Jet(e).by_parts(lambda u, w: u, e, 0.0).d for e in chosen(Jet(a, 1.0), Jet(b))] for a, b in states]
    assert worst(np.array([np.broadcast_to(r, len(states)) for r in rates]), np.array(jets, float).T) <= 1e-14


def test_what_is_not_taken_may_be_anything() -> None:
    """A root of what is negative, a quotient by zero: not in the value."""
    g, (x,), (root, share) = traced(
        lambda x: [drevo.where(x > 0.0, drevo.sqrt(x), 0.5), drevo.where(x > 0.0, 1.0 / x, 0.5)], 1
    )
    with np.errstate(all="ignore"):
        got = evaluate_edges(g, [root.edge, share.edge], {x.edge >> 1: np.array([-1.0, 0.0, 4.0])})
    assert np.array_equal(got, [[0.5, 0.5, 2.0], [0.5, 0.5, 0.25]])


def spring(q: Any, v: Any) -> Any:
    """A wall at WALL, one-sided, and a saturated motor."""
    push = drevo.where(q > WALL, -300.0 * (q - WALL) - 3.0 * v, 0.0)
    return push + drevo.clip(-40.0 * (q - 0.3) - v, -2.0, 2.0)


def test_in_a_law() -> None:
    """Compiled into the motion, for one state and for many, a law of choices is its own function of arrays."""
    r = acrobot()
    q = np.array([[0.1, 0.3], [0.25, -0.2], [-0.4, 0.6]])
    law = Control(lambda t, q, v: [spring(a, b) for a, b in zip(q, v)])
    for start in (q, q[0]):
        table = simulate(r, start, tau=law, duration=0.2, every=20)
        plain = simulate(r, start, tau=lambda t, q, v: spring(q, v), duration=0.2, every=20)
        assert worst(table.q, plain.q) <= 1e-11
    assert table.q[-1].max() > WALL


def test_in_a_constraint() -> None:
    """A stop that turns with the joint: f, its rates and its Jacobian against the branch that holds."""
    r = acrobot()

    def f(pose: Any, q: Any, t: Any) -> list[Any]:
        return [drevo.where(q[0] > 0.0, q[1] - q[0] ** 2, q[1] + 0.5 * q[0])]

    one = r.constrained_dynamics([0.3, 0.09], [0.1, 0.06], [0, 0], constraints=[constraint.function(f, 1)])
    other = r.constrained_dynamics([-0.3, 0.15], [0.1, -0.05], [0, 0], constraints=[constraint.function(f, 1)])
    assert worst(one.jacobian, np.array([[-0.6, 1.0]])) <= 1e-15 and worst(one.gamma, np.array([-0.02])) <= 1e-15
    assert worst(other.jacobian, np.array([[0.5, 1.0]])) <= 1e-15 and not other.gamma.any()


BRANCHES = {
    "if": lambda x: x if x > 0.0 else 0.0,
    "truth": lambda x: 1.0 if x else 0.0,
    "and": lambda x: drevo.where(x > 0.0 and x < 1.0, x, 0.0),
    "max": lambda x: max(x, 0.0),
    "np.clip": lambda x: np.clip(x, -1.0, 1.0),
    "np.where": lambda x: np.where(x > 0.0, x, 0.0),
    "math.sin": lambda x: math.sin(x),
    "float": lambda x: float(x),
    "np.float64": lambda x: np.float64(x),
    "np.sin": lambda x: np.sin(x),
    "np.minimum": lambda x: np.minimum(x, 1.0),
    "==": lambda x: 1.0 if x == 0.0 else x,
    "!=": lambda x: 1.0 if x != 0.0 else x,
    "in": lambda x: 1.0 if x in (0.0, 1.0) else x,
    "%": lambda x: x % 2.0,
    "**": lambda x: x**0.5,
}


@pytest.mark.parametrize("name", BRANCHES)
def test_branches(name: str) -> None:
    """One sentence that offers where, or the functions that there are; of laws and of constraints."""
    r, f = acrobot(), BRANCHES[name]
    offer = r"drevo\.(where|sin)"
    with pytest.raises(drevo.DrevoError, match=offer) as told:
        simulate(r, [0.1, 0.2], tau=Control(lambda t, q, v: [f(q[0]), 0.0]), duration=0.01)
    assert "\n" not in str(told.value)


def test_what_is_no_law() -> None:
    """Control of efforts, of a Control, of a tracker; of a stabiliser as it is."""
    r = acrobot()
    samples = np.zeros((3, 2))
    for given in (np.zeros(2), None, "law", Control(lambda t, q, v: [0.0, 0.0])):
        with pytest.raises(drevo.InputError, match=r"a function law\(t, q, v\) of scalars is needed"):
            Control(given)  # type: ignore[arg-type]
    with pytest.raises(drevo.InputError, match=r"Tracker looks its gains up by the time.*tau=law"):
        Control(drevo.control.track(r, 0.1, samples, samples, samples, 1.0, 1.0))
    keep = drevo.control.stabilise(
        r, constraint.function(lambda pose, q, t: [q[0] - 0.1], 1), stiffness=4.0, damping=5.0
    )
    table = simulate(r, [0.3, 0.2], tau=Control(keep), duration=5.0, every=1000)
    assert abs(table.q[-1, 0] - 0.1) < 5e-3


def test_conditions() -> None:
    """~ and what folds away."""
    g = Graph()
    x = g.input("x[0]")
    not_above = ~(x > 0.5)
    assert isinstance(not_above, Condition) and (x - x + 1.0 > 0.5) is True and (x > math.inf) is False
    out = drevo.where(not_above, 1.0, 2.0)
    assert evaluate_edges(g, [out.edge], {x.edge >> 1: np.array([0.4, 0.5, 0.6])})[0].tolist() == [1, 1, 2]
