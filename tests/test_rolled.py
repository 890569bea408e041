"""The rolled form against the same algorithms on numbers, and against itself: lanes, threads, cache, bad input."""

from __future__ import annotations

import numpy as np
import pytest
import strategies
from tolerances import DYNAMICS

from drevo.algorithms.forward_dynamics import forward_dynamics
from drevo.algorithms.inverse_dynamics import bias, inverse_dynamics
from drevo.errors import InputError, NumericsError
from drevo.mechanics.configuration import random
from drevo.mechanics.tree import build_tree
from drevo.model.description import Model
from drevo.robots import rod_chain
from drevo.rolled import rolled_function
from drevo.runtime import cache
from drevo.runtime.build import Spec
from drevo.runtime.function import Function

ALGORITHM = {"inverse_dynamics": inverse_dynamics, "bias": bias, "forward_dynamics": forward_dynamics}
LOOSE = {"inverse_dynamics": DYNAMICS, "bias": DYNAMICS, "forward_dynamics": 1e-8}


def rolled(model: Model, quantity: str, **options: object) -> Function:
    """The rolled function, whatever the size."""
    found = rolled_function(model, quantity, Spec(**options), smallest=0)  # type: ignore[arg-type]
    assert found is not None
    return found


def tree_of(seed: int, kinds: tuple[str, ...] = strategies.EVERY, base: str = "fixed", n: int = 30) -> Model:
    return strategies.robot(seed, kinds, n, base, welds=0.1, mimics=0.0)


def states(model: Model, count: int, quantity: str) -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    q = np.array([random(model, rng) for _ in range(count)])
    return [q, rng.normal(size=(count, model.nv)), rng.normal(size=(count, model.nv))][: 2 + (quantity != "bias")]


def expected(model: Model, quantity: str, args: list[np.ndarray]) -> np.ndarray:
    """All samples at once, on arrays."""
    columns = [list(x.T) for x in args]
    found = ALGORITHM[quantity](build_tree(model), *columns)
    return np.stack([np.broadcast_to(x, len(args[0])) for x in found], -1)


@pytest.mark.parametrize("quantity", ALGORITHM)
@pytest.mark.parametrize("kinds", [("revolute",), ("prismatic",), ("helical",), strategies.EVERY])
@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_same_as_the_algorithm(quantity: str, kinds: tuple[str, ...], base: str) -> None:
    for seed in range(2):
        model = tree_of(seed, kinds, base)
        args = states(model, 11, quantity)
        found, right = rolled(model, quantity)(*args), expected(model, quantity, args)
        assert np.abs(found - right).max() <= LOOSE[quantity] * np.abs(right).max()


@pytest.mark.parametrize("quantity", ALGORITHM)
def test_same_bits_in_every_lane_and_thread(quantity: str) -> None:
    model = tree_of(3, base="floating")
    f, args = rolled(model, quantity), states(model, 301, quantity)
    right = np.array([f(*(x[k] for x in args)) for k in range(301)])
    for count in (1, 7, 8, 9, 301):
        assert np.array_equal(f(*(x[:count] for x in args)), right[:count])
    many = [np.tile(x, (20, 1)) for x in args]  # enough for threads to be worth their start
    assert np.array_equal(f(*many, threads=2), np.tile(right, (20, 1)))
    out = np.empty((301, 2 * model.nv))[:, ::2]
    assert f(*(x.tolist() for x in args), out=out) is out and np.array_equal(out, right)
    assert np.array_equal(f(args[0].reshape(7, 43, -1), *(x[0] for x in args[1:]))[0, 0], right[0])


def test_float32() -> None:
    model = tree_of(5)
    args = states(model, 20, "inverse_dynamics")
    found = rolled(model, "inverse_dynamics", dtype="float32")(*args)
    right = expected(model, "inverse_dynamics", args)
    assert found.dtype == np.float32 and np.abs(found - right).max() <= 2e-4 * np.abs(right).max()


def test_long_chain_takes_samples_one_by_one() -> None:
    model = tree_of(1, ("revolute", "prismatic"), n=2600)
    f, args = rolled(model, "inverse_dynamics"), states(model, 3, "inverse_dynamics")
    found = f(*args)
    assert np.array_equal(found, [f(*(x[k] for x in args)) for k in range(3)])
    right = expected(model, "inverse_dynamics", args)
    assert np.abs(found - right).max() <= 1e-10 * np.abs(right).max()


def test_code_is_kept_by_kinds_not_by_size(monkeypatch: pytest.MonkeyPatch) -> None:
    from drevo import rolled as module

    rolled(rod_chain(40).model, "inverse_dynamics")

    def never(*_: object) -> None:
        raise AssertionError("traced again")

    if cache.directory() is not None:
        monkeypatch.setattr(module, "rolled_program", never)
    model = rod_chain(50).model
    args = states(model, 3, "inverse_dynamics")
    right = expected(model, "inverse_dynamics", args)
    assert np.abs(rolled(model, "inverse_dynamics")(*args) - right).max() <= DYNAMICS * np.abs(right).max()


def test_bad_input_is_named() -> None:
    model = tree_of(4, base="floating")
    f, (q, v, a) = rolled(model, "inverse_dynamics"), states(model, 9, "inverse_dynamics")
    with pytest.raises(InputError, match="v has shape"):
        f(q, v[:, :-1], a)
    v[5, 2] = np.nan
    for rows in (slice(None), slice(5, 6)):
        with pytest.raises(NumericsError, match=r"v\[2\].* is nan"):
            f(q[rows], v[rows], a[rows])
    v[5, 2], q[2, 3:7] = 0.0, (1.0, 1.0, 0.0, 0.0)
    with pytest.raises(NumericsError, match=r"quaternion q\[3:7\] in row 2"):
        f(q, v, a)


def test_left_to_straight_line_code() -> None:
    small, mimics = tree_of(0, n=20), strategies.robot(0, ("revolute",), 80, "fixed", 0.0, 0.5)
    assert rolled_function(small, "inverse_dynamics", Spec()) is None
    assert rolled_function(mimics, "inverse_dynamics", Spec()) is None
    large = tree_of(0, n=100)
    assert rolled_function(large, "mass_matrix", Spec()) is None
    assert rolled_function(large, "inverse_dynamics", Spec(layout="batch_last")) is None
    assert rolled_function(large, "inverse_dynamics", Spec()) is not None
