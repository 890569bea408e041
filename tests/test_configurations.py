"""Neutral and random configurations: the builtins give the numbers of NumPy's way, and leave the rest to it."""

from __future__ import annotations

import gc
import pickle
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import BuiltinFunctionType
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


@pytest.mark.parametrize("kind", GENERATORS)
def test_one_state_has_the_numbers_of_numpy(kind: Callable[[int], Any]) -> None:
    ours, theirs = (np.random.Generator(kind(3)) for _ in range(2))
    for _ in range(50):
        q = ROBOT.random(ours)
        assert np.array_equal(q, configuration.random(ROBOT.model, theirs))
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


def test_references_are_given_back() -> None:
    rng = np.random.default_rng(0)
    held = rng.bit_generator, rng.bit_generator.lock, rng.bit_generator.capsule, rng
    before = [sys.getrefcount(x) for x in held]
    for _ in range(100):
        ROBOT.random(rng)
    gc.collect()
    assert [sys.getrefcount(x) for x in held] == before


@pytest.mark.skipif(type(ROBOT.random) is not BuiltinFunctionType, reason="what NumPy draws is drawn in parts")
def test_threads_share_a_generator() -> None:
    rng, count = np.random.default_rng(0), 2000
    with ThreadPoolExecutor(4) as pool:
        drawn = list(pool.map(lambda _: [ROBOT.random(rng).copy() for _ in range(count // 4)], range(4)))
    apart = np.random.default_rng(0)
    alone = {configuration.random(ROBOT.model, apart).tobytes() for _ in range(count)}
    assert {x.tobytes() for part in drawn for x in part} == alone


def test_the_rest_is_numpys() -> None:
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
        (lambda: ROBOT.neutral(3), r"neutral\(\) takes 0 by place, 1 are given"),
    ],
)
def test_refused(call: Callable[[], object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()
