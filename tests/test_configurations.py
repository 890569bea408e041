"""Neutral and random configurations."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import drevo
from drevo.errors import InputError
from drevo.mechanics import configuration

GENERATORS: list[Callable[[int], Any]] = [
    np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64,
]  # fmt: skip


def tree() -> drevo.Robot:
    """All rules of coordinates, with and without limits, neighbours of one and of several joints."""
    b = drevo.Builder("tree")
    kinds = ("free", "revolute", "prismatic", "spherical", "spherical", "planar", "universal", "continuous")
    for k, kind in enumerate(kinds):
        limits = {"limit": (-0.3, 1.5)} if kind == "revolute" else {}
        b.body(f"b{k}", f"b{k - 1}" if k else "world", joint=kind, axis=(0, 0, 1), mass=1.0, inertia=np.eye(3),
               **({"axis2": (1, 0, 0)} if kind == "universal" else {}), **limits)  # fmt: skip
    return b.robot()


ROBOT = tree()
JOINTS = [j for j, _, _ in ROBOT.model.slices()]
LOW, WIDTH = configuration.ranges(ROBOT.model)


def turn(rng: np.random.Generator) -> np.ndarray:
    x = rng.normal(size=4)
    return x / np.sqrt((x * x).sum())


@pytest.mark.parametrize("kind", GENERATORS)
def test_one_state_has_the_numbers_of_numpy(kind: Callable[[int], Any]) -> None:
    ours, theirs = (np.random.Generator(kind(3)) for _ in range(2))
    for _ in range(50):
        q = ROBOT.random(ours)
        want = [
            theirs.random(j.nq) if not j.turns else np.r_[theirs.random(j.nq)[:-4], turn(theirs)] for j in JOINTS
        ]
        assert np.array_equal(q, np.concatenate(want) * WIDTH + LOW)
        configuration.require_unit_quaternions(ROBOT.model, "random", q)
    assert ours.random() == theirs.random()


def test_kept_results_stay() -> None:
    rng = np.random.default_rng(0)
    drawn = [ROBOT.random(rng) for _ in range(5)]
    copies = [x.copy() for x in drawn]
    view = ROBOT.neutral()[2:]
    ROBOT.random(rng), ROBOT.neutral()
    assert all(map(np.array_equal, drawn, copies))
    first = ROBOT.neutral()
    first += 1.0
    assert np.array_equal(ROBOT.neutral(), configuration.neutral(ROBOT.model))
    assert np.array_equal(view, configuration.neutral(ROBOT.model)[2:])


def test_shapes_generators_and_pickles() -> None:
    def rng() -> np.random.Generator:
        return np.random.default_rng(5)

    one = ROBOT.random(rng())
    assert np.array_equal(ROBOT.random(rng=rng()), one) and np.array_equal(ROBOT.random(rng(), ()), one)
    assert ROBOT.random(rng(), 3).shape == (3, ROBOT.nq) and ROBOT.random(rng(), (2, 0)).shape == (2, 0, ROBOT.nq)
    assert ROBOT.random(np.random.RandomState(0)).shape == ROBOT.random().shape == (ROBOT.nq,)
    again = pickle.loads(pickle.dumps((ROBOT.random, ROBOT.neutral)))  # noqa: S301
    assert np.array_equal(again[0](rng()), one) and np.array_equal(again[1](), ROBOT.neutral())


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ROBOT.random(3), "rng must be a generator"),
        (lambda: ROBOT.random(None, -1), "shape must be whole numbers from 0"),
        (lambda: ROBOT.random(x=3), "takes no argument 'x'"),
        (lambda: ROBOT.neutral(3), r"neutral\(\) takes no arguments by position, 1 is given"),
    ],
)
def test_refused(call: Callable[[], object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()
