"""Operations of machines that may only fall; rotations by three products; how few an inertia matrix can have."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import tolerances as tol
from strategies import state

import drevo
from drevo.codegen.graph import levers
from drevo.codegen.graph.evaluate import evaluate
from drevo.codegen.graph.program import Program
from drevo.compiler.compete import compete
from drevo.compiler.search import OBJECTIVES
from drevo.compiler.trace import trace

ROOT = Path(__file__).parent.parent
QUANTITIES = ("inverse_dynamics", "mass_matrix", "forward_dynamics")
# products, sums and divisions of inverse dynamics, mass matrix and forward dynamics
GOLDEN = {
    "hand": (880, 196, 1304),
    "hexapod": (1818, 848, 3812),
    "wheeled": (346, 70, 591),
    "tracked": (699, 173, 1096),
    "excavator": (228, 54, 301),
    "drone with an arm": (511, 197, 992),
}


@pytest.fixture(scope="module")
def scripts() -> Iterator[tuple[ModuleType, ModuleType, ModuleType]]:
    """The benchmark's machines and links, the search for the least."""
    folders = [str(ROOT / "benchmarks"), str(ROOT / "tools")]
    sys.path[:0] = folders
    import machines
    import minimal
    import operations

    yield machines, operations, minimal
    for folder in folders:
        sys.path.remove(folder)


@cache
def rx90(objective: str) -> Program:
    return compete(drevo.load("rx90").model, "inverse_dynamics", objective).program


@pytest.mark.counts
@pytest.mark.parametrize("name", GOLDEN)
def test_machines_reach_their_counts(name: str, scripts: tuple[ModuleType, ...]) -> None:
    model = scripts[0].MACHINES[name]().model
    for quantity, most in zip(QUANTITIES, GOLDEN[name]):
        assert OBJECTIVES["add+mul"](compete(model, quantity).program) <= most, quantity


def test_an_inner_link_takes_48_products_and_47_sums(scripts: tuple[ModuleType, ...]) -> None:
    _, operations, _ = scripts
    robot = operations.subjects()["rx90"]
    found = operations.by_link(drevo.write_out(robot, "inverse_dynamics", formalism="khalil"))
    assert found["5"] == (48, 47) and found["6"] == (33, 30)
    page = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    assert f"| rx90 | 205/203 | {' | '.join(f'{m}/{a}' for m, a in found.values())} | |" in page


def test_objectives_reach_what_they_ask_for() -> None:
    """Products alone, instructions, operations: each is least under its own objective, and all are right."""
    programs = {objective: rx90(objective) for objective in ("add+mul", "mul", "fma")}
    for objective in programs:
        prices = {name: OBJECTIVES[objective](p) for name, p in programs.items()}
        assert prices[objective] == min(prices.values()), (objective, prices)
    assert programs["mul"].counts["mul"] <= programs["add+mul"].counts["mul"] - 10
    model = drevo.load("rx90").model
    q, v, a = state(model, 1)
    given = {"q": q, "v": v, "a": a}
    (expected,) = evaluate(trace(model, "inverse_dynamics"), given).values()
    for p in programs.values():
        (got,) = evaluate(p, given).values()
        np.testing.assert_allclose(got, expected, rtol=0, atol=tol.DYNAMICS * np.abs(expected).max())


@pytest.mark.nightly
def test_instructions_are_fewest_where_their_own_search_misses_a_plan() -> None:
    model = drevo.robots.puma560(inertia="general").model
    programs = [compete(model, "forward_dynamics", objective).program for objective in ("fma", "add+mul")]
    assert programs[0].instructions <= programs[1].instructions <= 489


def test_a_rotation_takes_three_products() -> None:
    """Of 4 products 3 are left for each pair c x - s y, s x + c y of one angle, two sums more for the angle."""
    b = drevo.Builder("two hinges", gravity=(0.3, -9.81, 0.2))
    for k in range(2):
        b.body(f"link{k}", f"link{k - 1}" if k else None, axis=(k, 0, 1 - k), origin=(0.3, 0.2, 0.1), mass=1.0,
               com=(0.1, 0.2, 0.3), inertia=((0.5, 0.1, 0.05), (0.1, 0.6, 0.02), (0.05, 0.02, 0.7)))  # fmt: skip
    model = b.model()
    with levers.without("three"):
        four = compete(model, "inverse_dynamics", "mul").program.counts
    three = compete(model, "inverse_dynamics", "mul").program.counts
    assert three["mul"] < four["mul"] and three["add"] > four["add"]


def test_the_least_of_plane_chains(scripts: tuple[ModuleType, ...]) -> None:
    """Two links: 4 operations are necessary. Three: 11; a search finds what is there, and the page says it."""
    *_, minimal = scripts
    two, three, arms = minimal.problems()
    assert minimal.bound(two)[0] + two.constants == two.known == 4
    start = [minimal.unit(3, k) for k in range(3)]
    search = minimal.Search(three)
    assert not search.possible(start, 1)
    u, v, w = (minimal.scaled(x, k) for x, k in zip(start, (three.targets[0][0], *three.targets[3][1:])))
    assert search.possible([*start, v, w, minimal.added(minimal.added(u, v), w)], 0)  # so three values suffice
    page = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    for p in (two, three, arms):
        assert f"| {p.name} | {p.known - p.constants} | {p.constants} | {p.known} | {p.known} |" in page


@pytest.mark.nightly
def test_the_table_of_the_least_is_found_again(scripts: tuple[ModuleType, ...]) -> None:
    assert "\n".join(scripts[2].table()) in (ROOT / "docs/operations.md").read_text(encoding="utf-8")
