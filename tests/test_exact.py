"""Reduced programs equal their unreduced twins in rational arithmetic, to the last digit.

All parameters are symbols, so regrouping happens on the graph; sines and cosines take rational points.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest

from drevo.codegen.graph import verify
from drevo.codegen.graph.evaluate import evaluate_edges
from drevo.codegen.graph.node import ADD, CONST, COS, SIN
from drevo.codegen.graph.program import Program
from drevo.compiler.compile import make_program
from drevo.compiler.formalisms import searched_recursion
from drevo.compiler.search import Preparation
from drevo.compiler.trace import trace
from drevo.errors import TraceError
from drevo.model.description import Inertial, Joint, Link, Mat3, Model

QUARTERS: tuple[Mat3, ...] = (
    ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    ((1.0, 0.0, 0.0), (0.0, 0.0, -1.0), (0.0, 1.0, 0.0)),
    ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (-1.0, 0.0, 0.0)),
    ((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)),
)
AXES = tuple(tuple(s if i == k else 0.0 for i in range(3)) for k in range(3) for s in (1.0, -1.0))


def dyadic(rng: random.Random) -> float:
    """A number whose double is exact."""
    return rng.choice((-1, 1)) * rng.randint(1, 40) / 16


def tree(seed: int, kinds: tuple[str, ...]) -> Model:
    """A random tree whose placements are quarter turns."""
    rng = random.Random(seed)
    links, joints = [Link("world")], []
    for i in range(rng.randint(2, 5)):
        tensor = [[dyadic(rng) for _ in range(3)] for _ in range(3)]
        rows = tuple(tuple(tensor[min(a, b)][max(a, b)] for b in range(3)) for a in range(3))
        com = (dyadic(rng), dyadic(rng), dyadic(rng) if rng.random() < 0.5 else 0.0)
        links.append(Link(f"l{i}", Inertial(abs(dyadic(rng)), com, rows)))  # type: ignore[arg-type]
        parent = links[rng.randint(max(0, i - 1), i)].name
        origin = tuple(dyadic(rng) if rng.random() < 0.6 else 0.0 for _ in range(3))
        axis = rng.choice(AXES)
        joints.append(Joint(f"j{i}", rng.choice(kinds), parent, f"l{i}", origin, rng.choice(QUARTERS), axis))
    return Model(f"exact {seed}", tuple(links), tuple(joints))


def coordinate(program: Program, angle: int) -> tuple[int, int]:
    """An angle as a coordinate, with its sign, plus quarter turns."""
    g = program.graph
    if g.op[angle >> 1] != ADD:
        return angle, 0
    terms = [e ^ (angle & 1) for e in g.operands(angle >> 1)]
    phase = next(e for e in terms if g.op[e >> 1] == CONST)
    turns = float(g.expr(phase)) / (math.pi / 2)
    assert turns == round(turns), "a phase that is no quarter turn"
    return next(e for e in terms if e != phase), round(turns)


def exact(program: Program, seed: int) -> list[Fraction]:
    """Outputs in rational arithmetic at a random state, with tan(q/2) rational."""
    rng, g = random.Random(seed), program.graph
    leaves = {n: Fraction(rng.randint(-20, 20), 7) for port in program.inputs for n in port.nodes}
    leaves.update((p.node, Fraction(p.value)) for p in program.parameters)
    half = {n: Fraction(rng.randint(-20, 20), 9) for n in program.inputs[0].nodes}
    for n in program.order():
        if g.op[n] in (SIN, COS):
            q, turns = coordinate(program, g.a[n])
            t = half[q >> 1]
            s, c = (-2 * t if q & 1 else 2 * t) / (1 + t * t), (1 - t * t) / (1 + t * t)
            for _ in range(turns % 4):
                s, c = c, -s
            leaves[n] = s if g.op[n] == SIN else c
    return evaluate_edges(g, program.output_edges, leaves, Fraction)


PLANS = {
    "gauge": Preparation(frames=False, phase=False, unit=False, parallel=False, sums=False),
    "frames": Preparation(frames=True, phase=False, unit=False, parallel=False, sums=False),
    "unit": Preparation(frames=True, phase=False, unit=True, parallel=False, sums=False),
}


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("quantity", ["inverse_dynamics", "bias", "gravity", "mass_matrix"])
@pytest.mark.parametrize("kinds", [("prismatic",), ("revolute",), ("revolute", "prismatic")])
@pytest.mark.parametrize("seed", range(10))
def test_reduced_equals_unreduced_exactly(kinds: tuple[str, ...], quantity: str, plan: str, seed: int) -> None:
    """The same rational numbers."""
    chosen, khalil = PLANS[plan], searched_recursion(quantity)
    model = tree(seed, kinds)
    plain = trace(model, quantity, parameters=("*",))

    def compute(*state: object, **extra: object) -> object:
        return khalil.compute(*state, **extra, **chosen.options(khalil.switches))

    reduced = trace(model, quantity, parameters=("*",), compute=compute, prepare=chosen.prepare)
    assert exact(plain, seed) == exact(reduced, seed)


def test_verification_follows_its_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """DREVO_VERIFY=2 compares what is compiled with the plain recursion, and says so where it differs."""
    model = tree(3, ("revolute",))
    monkeypatch.setenv("DREVO_VERIFY", "2")
    good = make_program(model, ("inverse_dynamics",), (), "auto", (), {})
    assert verify.twins(good, trace(model, "inverse_dynamics")) <= verify.TOLERANCE
    verify.legal(good)
    with pytest.raises(TraceError, match="differs from the plain recursion"):
        verify.require_twins(good, trace(tree(3, ("revolute", "prismatic")), "inverse_dynamics"))
