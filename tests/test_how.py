"""`f.how`: every way that a function is computed has a word, and the embedded robots take the ways they should."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import drevo
from drevo.codegen.store.build import FunctionFace
from drevo.compiler import ways
from drevo.robots import rod_chain

EMBEDDED = ("three-link", "two-arm-planar", "biped", "puma560", "scara")
SPEED = Path(__file__).parent.parent / "docs" / "speed.md"


def test_every_word_is_explained_where_it_is_looked_for() -> None:
    assert set(re.findall(r'"(\w+)"', FunctionFace.how.__doc__ or "")) == set(ways.HOW)
    assert set(re.findall(r"^\| `(\w+)` \|", SPEED.read_text(encoding="utf-8"), re.M)) == set(ways.HOW)


@pytest.mark.parametrize("name", EMBEDDED)
def test_embedded_robots_are_straight(name: str) -> None:
    robot = drevo.load(name)
    for quantity in ("inverse_dynamics", "forward_dynamics_derivatives"):
        assert drevo.compile(robot, quantity).how == "straight"


def test_a_large_tree_is_computed_by_its_bodies() -> None:
    for n, way in ((ways.MAX_STRAIGHT_BODIES, "straight"), (ways.MAX_STRAIGHT_BODIES + 1, "bodies")):
        assert drevo.compile(rod_chain(n=n), "gravity").how == way, n
    deep = rod_chain(n=2 * ways.MAX_STRAIGHT_DEPTH + 2)
    assert drevo.compile(deep, "forward_dynamics").how == "bodies"


@pytest.mark.filterwarnings("ignore:.*no contact geometry")
def test_steps_are_stages_and_huge_motions_are_numpys() -> None:
    assert drevo.compile(drevo.load("two-arm-planar"), "step", dt=1e-3).how == "stages"
    from drevo.compiler.products import on_manifold

    huge = on_manifold(rod_chain(n=ways.MAX_MANIFOLD_STEPS), "integrate")
    assert huge.how == "interpreted" and np.isfinite(huge(np.zeros(huge.inputs[0][1]), 1.0 + np.zeros(3000))).all()
