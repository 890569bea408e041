"""Reduced programs equal their unreduced twins in rational arithmetic, to the last digit.

All parameters are symbols, so regrouping happens on the graph; sines and cosines take rational points.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction
from functools import partial

import pytest
from program_checks import REGROUPING_TOLERANCE, legal, twins

from drevo.codegen.graph.evaluate import evaluate_edges
from drevo.codegen.graph.node import ADD, CONST, COS, SIN
from drevo.codegen.graph.program import Program
from drevo.compiler.formalisms import searched_recursion
from drevo.compiler.recipe import Recipe
from drevo.compiler.search import Preparation, by_inertia_matrix
from drevo.compiler.trace import trace
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


WHEELS = {
    "kept": Preparation(frames=True, phase=False, unit=False, parallel=False, sums=False, wheels="kept"),
    "locked": Preparation(frames=False, phase=False, unit=True, parallel=False, wheels="locked"),
}


def rover() -> Model:
    """A hinged base with wheels on three axes; the symmetry of a wheel is one symbol for two equal moments."""
    base = tree(1, ("revolute",))
    links, joints = list(base.links), list(base.joints)
    for k, axis in enumerate(AXES[:5:2]):
        moments = tuple(tuple((0.25 if axis[a] else 0.5) * (a == b) for b in range(3)) for a in range(3))
        com = tuple(0.125 * x for x in axis)
        links.append(Link(f"w{k}", Inertial(1.5 + k, com, moments)))  # type: ignore[arg-type]
        joints.append(Joint(f"w{k}", "revolute", base.links[-1].name, f"w{k}", (0.5, k / 4, 0.25), axis=axis))
    return Model("rover", tuple(links), tuple(joints))


@pytest.mark.parametrize("plan", WHEELS)
@pytest.mark.parametrize("quantity", ["inverse_dynamics", "bias", "mass_matrix", "forward_dynamics"])
def test_bodies_that_need_not_turn_give_the_same_numbers(quantity: str, plan: str) -> None:
    """Wheels of the equations and of the plain recursion; those of accelerations are solved for beforehand."""
    model, chosen = rover(), WHEELS[plan]
    plain = trace(model, quantity, parameters=("*",), merge_equal=True)
    if quantity == "forward_dynamics":
        kept = chosen._replace(wheels="kept")
        reduced = trace(
            model,
            quantity,
            parameters=("*",),
            merge_equal=True,
            compute=by_inertia_matrix(kept, kept._replace(wheels="apart")),
        )
    elif quantity == "mass_matrix" and plan == "locked":
        return
    else:
        run = searched_recursion(quantity)
        compute = partial(run.compute, **chosen.options(run.switches))
        reduced = trace(
            model, quantity, parameters=("*",), merge_equal=True, compute=compute, prepare=chosen.prepare
        )
    assert exact(plain, 4) == exact(reduced, 4)
    wheels = {n for p in reduced.inputs[:1] for n in p.nodes[-3:]}
    assert not wheels & set(reduced.order())


def test_regrouping_changes_no_number() -> None:
    model = tree(3, ("revolute",))
    good = Recipe(("inverse_dynamics",)).program(model)
    assert twins(good, trace(model, "inverse_dynamics")) <= REGROUPING_TOLERANCE
    legal(good)
