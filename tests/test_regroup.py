"""Regrouped sums: the same rational numbers, fewer operations, names and sections where they were."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from program_cases import every_op
from program_checks import legal, twins

from drevo.codegen.graph.evaluate import evaluate_edges
from drevo.codegen.graph.node import Expr, Graph
from drevo.codegen.graph.program import Input, Output, Parameter, Program
from drevo.codegen.graph.rebuild import rebuilt
from drevo.codegen.graph.regroup import regrouped


def program(inputs: int, make: Any, parameters: int = 0, **more: Any) -> Program:
    """Outputs of make(graph, x, p) as one vector."""
    g = Graph()
    x = [g.input(f"x[{k}]") for k in range(inputs)]
    p = [g.parameter(f"p{k}") for k in range(parameters)]
    edges = tuple(g.edge(e) for e in make(g, x, p))
    ports = (Input("x", (inputs,), tuple(e.edge >> 1 for e in x)),)
    known = tuple(Parameter(f"p{k}", e.edge >> 1, 1.0 + k) for k, e in enumerate(p))
    return Program("f", g, ports, known, (Output("y", (len(edges),), edges),), **more)


def values(p: Program, seed: int = 0) -> list[Fraction]:
    """Outputs at rational inputs, which belong to the places of the inputs and the parameters."""
    rng = random.Random(seed)
    leaves = {n: Fraction(rng.randint(-20, 20), 7) for port in p.inputs for n in port.nodes}
    leaves |= {x.node: Fraction(rng.randint(1, 20), 3) for x in p.parameters}
    return evaluate_edges(p.graph, p.output_edges, leaves, Fraction)


def work(p: Program) -> tuple[int, int]:
    return p.counts["add"], p.counts["mul"]


@pytest.mark.counts
def test_a_common_factor_is_taken_out() -> None:
    before = program(4, lambda g, x, p: [x[0] * x[1] + x[3] - x[0] * x[2]])
    after = regrouped(before)
    assert work(before) == (2, 2) and work(after) == (2, 1) and values(before) == values(after)


@pytest.mark.counts
def test_a_sum_adds_one_constant() -> None:
    before = program(3, lambda g, x, p: [1.0 + x[0] * (x[1] + (x[2] + 2.0)) + (x[1] * x[2] + 3.0) + 4.0 * p[0]], 1)
    after = regrouped(before)
    assert (work(before), work(after)) == ((6, 2), (4, 2)) and values(before) == values(after)


@pytest.mark.counts
def test_constants_go_to_the_sums_that_read_them() -> None:
    """But what has a name keeps its own, where names are kept."""
    found = []

    def make(g: Graph, x: list[Expr], p: list[Expr]) -> list[Any]:
        found.append(x[0] * x[1] + 2.0)
        return [found[0] + x[2] + 3.0, (found[0] - x[3] - 2.0) * x[1], found[0] + x[3] + 4.0]

    before = program(4, make)
    before = replace(before, labels={found[0].edge >> 1: (("inner", 0),)})
    for names, sums in ((True, 7), (False, 5)):
        after = regrouped(before, names=names)
        assert work(after)[0] == sums and values(before) == values(after) and bool(after.labels) == names


@pytest.mark.counts
def test_factors_of_a_factor() -> None:
    before = program(5, lambda g, x, p: [x[0] * (x[1] + x[2]) + x[4] + x[0] * x[3]])
    assert work(regrouped(before)) == (3, 1) and values(before) == values(regrouped(before))


@pytest.mark.counts
def test_common_pairs_are_added_once_whatever_their_sign() -> None:
    before = program(5, lambda g, x, p: [x[0] + x[1] - x[2], x[3] - (x[4] - x[2]) - x[1], (x[2] + x[3]) - x[1]])
    after = regrouped(before)
    assert (work(before), work(after)) == ((7, 0), (4, 0)) and values(before) == values(after)


def test_what_is_used_twice_or_has_a_name_stays() -> None:
    def twice(g: Graph, x: list[Any], p: list[Any]) -> list[Any]:
        a = x[0] * x[1]
        return [a + x[0] * x[2], a]

    assert work(regrouped(program(3, twice))) == (1, 2)
    named: dict[int, tuple[tuple[str, int], ...]] = {}

    def labelled(g: Graph, x: list[Any], p: list[Any]) -> list[Any]:
        a = x[0] * x[1]
        named[a.edge >> 1] = (("a", 0),)
        return [a + x[0] * x[2]]

    after = regrouped(program(3, labelled, labels=named))
    assert work(after) == (1, 2)


@pytest.mark.counts
def test_work_on_parameters_is_hoisted() -> None:
    before = program(2, lambda g, x, p: [p[0] * x[0] + x[1] + p[1] * x[0]], parameters=2)
    after = regrouped(before)
    assert work(after) == (1, 1) and after.counts["hoisted"] == 1 and values(before) == values(after)


def test_sums_wait_for_their_constants() -> None:
    """One constant of several is the youngest node of all, and sums of sums may have one each."""

    def make(g: Graph, x: list[Any], p: list[Any]) -> list[Any]:
        u = x[0] * x[1] + (x[2] + 2.0) + (x[3] * x[1] + 3.0)
        return [u * x[0], u + x[1] * x[1] + (x[2] * x[0] + 7.0) + (x[3] * x[3] + 1.0), u * x[2]]

    before = program(4, make)
    for early in (False, True):
        assert values(regrouped(before, early)) == values(before)


def test_repeated_and_opposite_terms() -> None:
    before = program(3, lambda g, x, p: [x[0] + x[1] + x[0] + x[2], x[0] - (x[1] + x[0] * x[2]) + x[1]])
    for early in (False, True):
        assert values(regrouped(before, early)) == values(before)


def test_names_and_sections_are_carried_over() -> None:
    sections: list[tuple[int, str]] = []
    names: dict[int, tuple[tuple[str, int], ...]] = {}

    def make(g: Graph, x: list[Any], p: list[Any]) -> list[Any]:
        sections.append((len(g), "first"))
        a = x[0] * x[1] + x[0] * x[2]
        names[a.edge >> 1] = (("a", 1),)
        sections.append((len(g), "second"))
        b = a - x[3] * x[1] - x[3] * x[2]
        names[b.edge >> 1] = (("b", 0),)
        return [a, b]

    before = program(4, make, labels=names)
    before = Program(
        **{**{f: getattr(before, f) for f in before.__dataclass_fields__}, "sections": tuple(sections)}
    )
    after = regrouped(before)
    legal(after)
    told = {name: (n, sign) for n, given in after.labels.items() for name, sign in given}
    a, b = after.output_edges
    assert told["a"] == (a >> 1, 1 ^ (a & 1)) and told["b"] == (b >> 1, b & 1)
    (at, first), (then, second) = after.sections
    assert (first, second) == ("first", "second") and at <= a >> 1 < then <= b >> 1


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("early", [False, True])
def test_random_programs_keep_their_rational_values(seed: int, early: bool) -> None:
    rng = random.Random(seed)

    def make(g: Graph, x: list[Any], p: list[Any]) -> list[Any]:
        pool = [*x, *p]
        for _ in range(60):
            a, b = rng.choice(pool[-25:]), rng.choice(pool if rng.random() < 0.7 else (0.5, -3.0, 2.5))
            new = a * b if rng.random() < 0.45 else a + b if rng.random() < 0.5 else a - b
            pool += [new] if isinstance(new, Expr) else []
        return rng.sample(pool[-20:], 6)

    before = program(6, make, parameters=2)
    after = regrouped(before, early)
    legal(after)
    assert values(before, seed) == values(after, seed)
    assert sum(work(after)) <= sum(work(before))


@pytest.mark.parametrize("early", [False, True])
def test_every_operation_is_copied(early: bool) -> None:
    before = every_op()
    after = rebuilt(before, {}, {}, early)
    legal(after)
    assert after.counts == before.counts and twins(after, before) == 0.0
    assert [p.name for p in after.parameters] == ["mass", "length"] and len(after.units) == 1


def test_long_sums_need_no_deep_stack() -> None:
    def make(g: Graph, x: list[Any], p: list[Any]) -> list[Any]:
        total, out = x[0], []
        for k in range(3000):
            total = total + x[k % 7] * x[(k + 1) % 5]
            out.append(total)
        return [out[-1], out[1500]]

    before = program(7, make)
    for early in (False, True):
        assert values(regrouped(before, early)) == values(before)


@pytest.mark.parametrize("seed", range(20))
def test_constants_that_move_on_keep_every_value(seed: int) -> None:
    """Random sums that read one another, also twice and with either sign: a constant goes along each time."""
    rng = random.Random(seed)

    def make(g: Graph, x: Any, p: Any) -> Any:
        made = list(x)
        while len(made) < 40:
            terms = [rng.choice([1, -1]) * rng.choice(made) for _ in range(rng.randrange(2, 5))]
            total = sum(terms, rng.choice([0.0, 1.5, -2.25]))
            made += [total] if isinstance(total, Expr) else []
        return made[-1], made[-2] * made[-3], made[20], made[30]

    p = program(6, make)
    for early in (False, True):
        assert values(regrouped(p, early=early, names=False)) == values(p)
