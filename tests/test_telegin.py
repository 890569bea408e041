"""Telegin: the vectors, random trees, counts of the examples, choice of statements, Lagrange equations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import strategies
from reference import on_each
from telegin_cases import CASES, case, hinged, model_of

from drevo.codegen.graph.derivative import partial
from drevo.codegen.graph.evaluate import evaluate
from drevo.codegen.graph.node import Graph
from drevo.codegen.graph.program import Program
from drevo.compiler.formalisms import TABLE
from drevo.compiler.trace import trace
from drevo.errors import TraceError
from drevo.mechanics.algorithms import inertia_matrix
from drevo.mechanics.configuration import random
from drevo.mechanics.formalisms import telegin
from drevo.mechanics.formalisms.telegin_lagrange import equations
from drevo.mechanics.scalar import atan2, cos, sin, sqrt
from drevo.mechanics.tree import build_tree
from drevo.model.description import Model
from drevo.model.quantities import quantity

SEQUENCES = list(telegin.SEQUENCES)
COUNTS = {
    ("ex1_3link_0", "paper"): (9, 7, 5, 1),
    ("ex1_3link_0", "reuse"): (10, 5, 5, 1),
    ("ex1_3link_0", "merged"): (8, 3, 3, 3),
    ("ex2_5dof_0", "paper"): (18, 13, 10, 2),
    ("ex2_5dof_0", "reuse"): (19, 10, 10, 2),
    ("ex2_5dof_0", "merged"): (15, 6, 6, 4),
    ("ex3_7dof_0", "paper"): (62, 84, 16, 2),
    ("ex3_7dof_0", "merged"): (36, 42, 26, 22),
}


def program(model: Model, sequence: str, symbols: bool = False) -> Program:
    """The written-out matrix."""
    return trace(
        model, "mass_matrix", compute=telegin.SEQUENCES[sequence], parameters=["*"] if symbols else (),
        meta=telegin.META.get(sequence, {}),
    )  # fmt: skip


def across(bodies: list[dict[str, Any]]) -> list[tuple[int, int]]:
    """Pairs of bodies of which neither carries the other."""
    paths = []
    for k in range(len(bodies)):
        path, i = [k], bodies[k]["parent"]
        while i:
            path.append(i - 1)
            i = bodies[i - 1]["parent"]
        paths.append(path)
    n = range(len(bodies))
    return [(r, c) for r in n for c in n if r not in paths[c] and c not in paths[r]]


@pytest.mark.parametrize("sequence", SEQUENCES)
@pytest.mark.parametrize("name", [c["id"] for c in CASES])
def test_vectors_through_the_written_out_sequence(name: str, sequence: str) -> None:
    c = case(name)
    expected = np.asarray(c["H"])
    M = evaluate(program(model_of(c["bodies"]), sequence), {"q": np.asarray(c["q"])})["M"]
    assert np.max(np.abs(M - expected)) <= 1e-12 * np.max(np.abs(expected))
    assert all(M[r, k] == 0.0 for r, k in across(c["bodies"]))


@pytest.mark.parametrize("sequence", SEQUENCES)
@pytest.mark.parametrize(
    "name", ["ex1_3link_1", "ex2_5dof_1", "ex3_7dof_1", "tree_6_antiparallel_6", "tree_8_planar_8"]
)
def test_symbols_give_the_same(name: str, sequence: str) -> None:
    c = case(name)
    expected = np.asarray(c["H"])
    M = evaluate(program(model_of(c["bodies"]), sequence, symbols=True), {"q": np.asarray(c["q"])})["M"]
    assert np.max(np.abs(M - expected)) <= 1e-12 * np.max(np.abs(expected))


def test_the_sequence_of_the_paper_takes_its_statements() -> None:
    """Example 3: H_33, H_66 and H_11 by (8)."""
    notes = program(model_of(case("ex3_7dof_0")["bodies"]), "paper").meta["notes"]
    assert isinstance(notes, dict)
    assert [notes[x] for x in ("H_33", "H_66", "H_11")] == ["statement 3, (8)"] * 3


@pytest.mark.counts
@pytest.mark.parametrize("symbols", [False, True])
@pytest.mark.parametrize(("name", "sequence"), list(COUNTS))
def test_counts_of_the_examples(name: str, sequence: str, symbols: bool) -> None:
    counts = program(model_of(case(name)["bodies"]), sequence, symbols).counts
    assert (counts["add"], counts["mul"], counts["trig"], counts["angle_sums"]) == COUNTS[name, sequence]
    assert counts["div"] == 0 and bool(counts["hoisted"]) == symbols


def agree(model: Model, q: list[float], sequence: str = "merged") -> None:
    tree = build_tree(model)
    expected = np.asarray(inertia_matrix.mass_matrix(tree, q), float)
    M = np.asarray(telegin.mass_matrix(tree, q, sequence), float)
    assert np.max(np.abs(M - expected)) <= 1e-12 * np.max(np.abs(expected))
    assert np.all(M[expected == 0.0] == 0.0) or np.max(np.abs(M[expected == 0.0])) < 1e-12 * np.max(np.abs(M))


def random_trees(count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    trees = [hinged(rng, int(rng.integers(1, 13)), planar=k % 5 == 0) for k in range(count)]
    on_each(trees, lambda m, k: agree(m, [float(x) for x in rng.uniform(-3, 3, m.nq)], SEQUENCES[k % 3]))


def test_500_random_hinged_trees() -> None:
    random_trees(500, 0)


@pytest.mark.nightly
def test_10000_random_hinged_trees() -> None:
    random_trees(10_000, 1)


def test_joints_beyond_the_paper() -> None:
    rng = np.random.default_rng(2)
    trees = [*(strategies.robot(seed, n=1 + seed % 6) for seed in range(60)), strategies.all_kinds("floating")]
    on_each(trees, lambda model, _: agree(model, [float(x) for x in random(model, rng, ())]))


def test_statements_are_chosen_and_recorded() -> None:
    record: dict[str, str] = {}
    c = case("ex3_7dof_0")
    telegin.mass_matrix(build_tree(model_of(c["bodies"])), c["q"], record=record)
    assert len(record) == 7 + 12
    assert record["H_33"] == "statement 3, (8)" and record["H_43"] == "statement 2, (7)"
    assert record["H_44"] == "statement 1, (5)" and record["H_42"] == "statement 1, (2)"
    mixed, antiparallel = {}, {}
    for found, name in ((mixed, "tree_4_parallel_mix_7"), (antiparallel, "tree_6_antiparallel_6")):
        telegin.mass_matrix(build_tree(model_of(case(name)["bodies"])), case(name)["q"], record=found)
    assert "statement 3, split form" in {*mixed.values(), *antiparallel.values()}
    assert "statement 2, (7), antiparallel" in antiparallel.values()


@pytest.mark.parametrize(
    "name", ["ex3_7dof_0", "tree_4_parallel_mix_7", "tree_6_antiparallel_6", "tree_15_parallel_mix_10"]
)
def test_the_choice_is_never_longer_than_statement_1(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(case(name)["bodies"])
    chosen = program(model, "paper").counts
    monkeypatch.setattr(telegin.Elements, "statement_2", lambda *a: None)
    monkeypatch.setattr(telegin.Elements, "statement_3", lambda *a: None)
    first = program(model, "paper").counts
    assert chosen["add"] + chosen["mul"] < first["add"] + first["mul"]


def test_names_in_the_paper_notation() -> None:
    def names(name: str, sequence: str) -> set[str]:
        p = program(model_of(case(name)["bodies"]), sequence)
        return {label for n in p.order() for label, _ in p.labels.get(n, ())}

    assert {"H_21", "Lm_22^e", "s_23", "c_3"} <= names("ex1_3link_0", "paper")
    assert {"m_44^e", "H_65", "s_34", "x_32^q"} <= names("ex3_7dof_0", "paper")


@pytest.mark.parametrize("name", [n for f, n in TABLE if f == "telegin" and n != "mass_matrix"])
def test_lagrange_equations_and_energies(name: str) -> None:
    rng = np.random.default_rng(5)
    kinds = ("revolute", "prismatic", "helical", "cylindrical", "planar", "universal")
    others = [strategies.robot(seed, kinds, 4, base="fixed") for seed in range(4)]

    def check(model: Model, _: int) -> None:
        state = {s: rng.normal(size=(3, model.nv)) for s in quantity(name).state}
        got = evaluate(trace(model, name, compute=TABLE["telegin", name].compute(name)), state)
        for key, expected in evaluate(trace(model, name), state).items():
            assert np.max(np.abs(got[key] - expected)) <= 1e-11 * max(1.0, np.max(np.abs(expected)))

    on_each([hinged(rng, 4), model_of(case("ex1_3link_0")["bodies"]), *others], check)


def test_gyroscopic_terms_do_no_work() -> None:
    """v . gyroscopic = 0, and v . (centrifugal + Coriolis) is what the other half of dH/dt takes."""
    model = model_of(case("ex3_7dof_0")["bodies"])

    def terms(tree: Any, q: Any, v: Any) -> list[Any]:
        e = equations(tree, q, v)
        rows = [(g, x + y) for g, x, y in zip(e.gyroscopic, e.centrifugal, e.coriolis)]
        return [sum(g * w for (g, _), w in zip(rows, v))] * 6 + [rows[0][1]]

    rng = np.random.default_rng(0)
    state = {"q": rng.normal(size=(5, 7)), "v": rng.normal(size=(5, 7))}
    out = evaluate(trace(model, "bias", compute=terms), state)["h"]
    assert np.max(np.abs(out[:, :6])) < 1e-12 * np.max(np.abs(out[:, 6]))


def test_a_joint_without_lagrange_equations_is_refused() -> None:
    with pytest.raises(TraceError, match="khalil"):
        trace(strategies.all_kinds("floating"), "bias", compute=TABLE["telegin", "bias"].compute("bias"))


def test_derivatives_of_a_graph() -> None:
    graph = Graph()
    x, y, p = graph.input("x"), graph.input("y"), graph.parameter("p")
    f = sin(x * y) / (2.0 + cos(x)) - sqrt(1.0 + y * y) * x + atan2(p, 2.0 * p) * y
    g = -x
    (fx, fy), (gx, gy) = partial([f, g], [x, y])
    a, b, c = 0.7, -1.3, 0.4
    from drevo.codegen.graph.evaluate import evaluate_edges

    def at(u: float, w: float) -> float:
        leaves = {x.edge >> 1: u, y.edge >> 1: w, p.edge >> 1: c}
        return float(evaluate_edges(graph, [graph.edge(f)], leaves)[0])

    got = evaluate_edges(graph, [graph.edge(fx), graph.edge(fy)], {x.edge >> 1: a, y.edge >> 1: b, p.edge >> 1: c})
    h = 1e-5
    assert abs(got[0] - (at(a + h, b) - at(a - h, b)) / (2 * h)) < 1e-9
    assert abs(got[1] - (at(a, b + h) - at(a, b - h)) / (2 * h)) < 1e-9
    assert (gx, gy) == (-1.0, 0.0)
    with pytest.raises(TraceError):
        partial([f], [1.0])
