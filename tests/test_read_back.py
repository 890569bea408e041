"""Every written page, read back as text: with other parameters it is the robot that has them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import strategies
from page_reader import READERS
from rebuilt import rebuilt
from telegin_cases import hinged

import drevo
from drevo import robots as embedded
from drevo.compiler.formalisms import TABLE, common_algorithm
from drevo.compiler.trace import trace
from drevo.documents.letters import LETTERS
from drevo.errors import TraceError
from drevo.mechanics.configuration import random
from drevo.mechanics.formalisms.telegin import SEQUENCES
from drevo.mechanics.tree import build_tree
from drevo.model.description import Model
from drevo.model.quantities import CATALOGUE

PAGES = [(name, formalism) for formalism, name in TABLE if not CATALOGUE[name].options and name != "poses"]
PAGES = [x for x in PAGES if "derivatives" not in x[0]]
SPECIAL = 0.1  # of the largest element of M: the scale of what all but vanishes


def equal_numbers(model: Model, seed: int) -> Model:
    """The model with few different lengths, masses and moments."""
    rng, found = np.random.default_rng(seed), {}
    for p in trace(model, "inverse_dynamics", parameters=["*"]).parameters:
        kind, entry = p.name.split(".")[-2:] if "." in p.name else ("", "")
        choice = {"origin": (0.3, -0.3, 0.5), "com": (0.1, -0.1, 0.2), "inertia": (0.4, 0.5)}.get(kind)
        if kind == "inertia" and entry[0] != entry[1]:
            choice = (0.01, -0.02)
        if p.name.endswith(".mass"):
            choice = (1.0, 2.0)
        if choice:
            found[p.name] = float(rng.choice(choice))
    return rebuilt(model, found)


def robots(seed: int) -> Iterator[Model]:
    """Trees of a seed: hinged or of any joints, of any numbers or of few."""
    rng = np.random.default_rng(seed)
    model = hinged(rng, 2 + seed % 4, planar=seed % 3 == 0) if seed % 2 else strategies.robot(seed, n=1 + seed % 4)
    yield model if seed % 4 < 2 else equal_numbers(model, seed)


def numbers(x: Any) -> list[float]:
    """Nested results as a flat list."""
    return [y for part in x for y in numbers(part)] if hasattr(x, "__iter__") else [float(x)]


def read_back(model: Model, quantity: str, formats: Any = tuple(READERS), **how: Any) -> None:
    """The results by every format, each parameter at a value of its own, against the robot that has these."""
    try:
        d = replace(drevo.write_out(model, quantity, symbols="all", **how), digits=17)
    except TraceError:
        return  # a formalism that does not cover the robot
    rng = np.random.default_rng(1)
    values = {name: x * rng.uniform(0.6, 1.4) for name, x in d.parameters.items()}
    tree = build_tree(rebuilt(model, values), snap=1e-9)
    state = {
        "q": random(model, rng).tolist(),
        **{s: rng.normal(size=model.nv).tolist() for s in ("v", "a", "tau", "x")},
    }
    names = CATALOGUE[quantity].state
    want = np.array(numbers(common_algorithm(quantity)(tree, *(state[s] for s in names))))
    largest = float(np.abs(numbers(common_algorithm("mass_matrix")(tree, state["q"]))).max(initial=0.0))
    scale = max(float(np.abs(want).max(initial=0.0)), SPECIAL * largest)
    for format in formats:
        page = READERS[format](d.text(format))
        assert len(page.parameters) == len(values)
        got = np.array(numbers(page.results(d, state, values)))
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-12 * scale, err_msg=f"{model.name} {quantity} {how}")


@pytest.mark.parametrize("formalism", list(LETTERS))
@pytest.mark.parametrize("name", ["three-link", "two-arm-spatial", "screw-arm"])
def test_pages_of_papers(name: str, formalism: str) -> None:
    """By every paper, in every format."""
    for quantity in (q for q, f in PAGES if f == formalism):
        read_back(embedded.model(name), quantity, formalism=formalism)


@pytest.mark.parametrize("name", sorted({*embedded.EMBEDDED} - {"biped", "stewart", "two-arm"}))
def test_pages_of_embedded_robots(name: str) -> None:
    """The default page, Telegin's sequences, and the other formalisms in turn."""
    model = embedded.model(name)
    read_back(model, "mass_matrix", sequence=list(SEQUENCES)[len(name) % 3])
    quantity, formalism = PAGES[7 * len(name) % len(PAGES)]
    read_back(model, quantity, ("markdown",), formalism=formalism)
    read_back(model, "gravity", ("html",))


@pytest.mark.parametrize("seed", strategies.seeds(8, 50))
def test_pages_of_random_trees(seed: int) -> None:
    """Three pages by day, of every fourth formalism at night."""
    for model in robots(seed):
        for k in range(3 if seed < 8 else len(PAGES) // 4):
            quantity, formalism = PAGES[(5 * seed + 4 * k) % len(PAGES)]
            read_back(model, quantity, [list(READERS)[k % 3]], formalism=formalism)
        read_back(model, "mass_matrix", ("latex",), sequence=list(SEQUENCES)[seed % 3])


@pytest.mark.nightly
@pytest.mark.parametrize("name", sorted(embedded.EMBEDDED))
@pytest.mark.parametrize(("quantity", "formalism"), PAGES)
def test_every_page_of_embedded_robots(name: str, quantity: str, formalism: str) -> None:
    read_back(embedded.model(name), quantity, formalism=formalism)


@pytest.mark.parametrize("name", ["three-link", "two-arm-planar"])
def test_pages_of_lagrange(name: str) -> None:
    """The inertia matrix, and the sum of the terms, of the robot with other parameters."""
    model, rng = embedded.model(name), np.random.default_rng(2)
    d = replace(drevo.write_out(model, "lagrange_equations", symbols="all"), digits=17)
    values = {n: x * rng.uniform(0.6, 1.4) for n, x in d.parameters.items()}
    tree = build_tree(rebuilt(model, values))
    state = {"q": rng.normal(size=model.nv).tolist(), "v": rng.normal(size=model.nv).tolist()}
    for format, read in READERS.items():
        H, fast, mixed, _, weight = read(d.text(format)).results(d, state, values)
        want = numbers(common_algorithm("mass_matrix")(tree, state["q"]))
        np.testing.assert_allclose(H, want, rtol=0, atol=1e-12 * max(map(abs, want)))
        h = numbers(common_algorithm("bias")(tree, *state.values()))
        total = np.array(fast) + np.array(mixed) + np.array(weight)
        np.testing.assert_allclose(total, h, rtol=0, atol=1e-12 * max(map(abs, h)))


def two_lengths(first: float, second: float) -> Model:
    """Three parallel links whose offsets may be equal."""
    b = drevo.Builder("three")
    for k, x in enumerate((0.0, first, second)):
        b.body(f"link{k + 1}", f"link{k}" if k else None, axis=(0, 0, 1), origin=(x, 0, 0), mass=1.0,
               com=(0.1, 0, 0), inertia=np.diag([0.1, 0.2, 0.25]))  # fmt: skip
    return b.model()


def test_equal_lengths_are_one_symbol_only_if_asked() -> None:
    """And then the page says which."""
    model = two_lengths(0.3, -0.3)
    d = drevo.write_out(model, "mass_matrix", symbols="all", sequence="paper")
    assert {"link2_joint.origin.x", "link3_joint.origin.x"} <= {*d.parameters}
    assert d.parameters["link3_joint.origin.x"] == -0.3 and r"L_{2} &= R_{2x}" in d.markdown()
    one = drevo.write_out(model, "mass_matrix", symbols="all", sequence="paper", merge_equal=True)
    assert "link3_joint.origin.x" not in one.parameters
    assert any("link3_joint.origin.x = -link2_joint.origin.x" in x for x in one.about.assumptions)
    apart = drevo.write_out(two_lengths(0.3, 0.4), "mass_matrix", symbols="all", sequence="paper")
    assert {k: n for k, n in d.counts.items() if k != "hoisted"} == {
        k: n for k, n in apart.counts.items() if k != "hoisted"
    }


def test_a_page_says_what_it_takes_as_given() -> None:
    """Zeros, axes and turns."""
    said = " ".join(drevo.write_out(two_lengths(0.3, 0.3), "bias", symbols="all").about.assumptions)
    assert "Zero in this robot, and left out: link1.com y z;" in said and "link2_joint axis (0, 0, 1)" in said


def test_python_takes_parameters_by_name() -> None:
    """By the robot's names or by those of the equations, in the function and in its prologue."""
    model = two_lengths(0.3, 0.3)
    d, space = drevo.write_out(model, "bias", symbols="all"), dict[str, Any]()
    exec(d.python(), space)
    q, v = np.random.default_rng(0).normal(size=(2, 3))
    heavy = {"link3.mass": 5.0, "link2_joint.origin.x": 0.7}
    want = common_algorithm("bias")(build_tree(rebuilt(model, heavy)), q.tolist(), v.tolist())
    bias, prologue = space["bias"], space["prologue"]
    for got in (bias(q, v, heavy), bias(q, v, **heavy), bias(q, v, parameters=heavy), bias(q, v, prologue(heavy))):
        np.testing.assert_allclose(got, want, rtol=1e-12)
    assert bias(q, v, m_3=5.0) == bias(q, v, {"link3.mass": 5.0})
    with pytest.raises(TypeError, match="no parameters"):
        prologue({"link9.mass": 1.0})
