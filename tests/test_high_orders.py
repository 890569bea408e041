"""Derivatives of high order: full arrays from packed ones; what would take minutes is refused with its cost."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import strategies
from contact_cases import CRAWLER

import drevo
from drevo.codegen.graph.evaluate import evaluate
from drevo.codegen.store import build
from drevo.compiler import differentiate
from drevo.compiler.differentiate import derivative, derivative_program, unpack
from drevo.compiler.packing import Scattered
from drevo.errors import TraceError
from drevo.model.quantities import quantity


@pytest.mark.parametrize("layout", ["rows", "batch_last"])
@pytest.mark.parametrize(("quantity", "wrt"), [("mass_matrix", "qq"), ("inverse_dynamics", "qv"), ("bias", "qv")])
def test_full_arrays_from_packed_ones(
    quantity: str, wrt: str, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same numbers as the dense kernel, in every kind of call."""
    model = strategies.robot(4, kinds=("revolute", "prismatic"), n=3, base="fixed", welds=0.0, mimics=0.0)
    dense = derivative(model, quantity, tuple(wrt), layout=layout)
    monkeypatch.setattr(differentiate, "SCATTERED", 1)
    f = derivative(model, quantity, tuple(wrt), layout=layout)
    assert isinstance(f, Scattered) and f.outputs == dense.outputs and not f.packed
    state = np.random.default_rng(0).normal(size=(len(f.inputs), 5, model.nv))
    args = [np.ascontiguousarray(x.T) if layout == "batch_last" else x for x in state]
    got, right = (y if isinstance(y, tuple) else (y,) for y in (f(*args), dense(*args)))
    for x, y in zip(got, right):
        assert x.shape == y.shape and np.allclose(x, y, rtol=1e-12, atol=1e-12)
    one = f(*state[:, 0])
    assert np.array_equal((one if isinstance(one, tuple) else (one,))[0].ravel(), got[0].reshape(
        (5, -1) if layout == "rows" else (-1, 5))[0 if layout == "rows" else (slice(None), 0)])  # fmt: skip
    assert isinstance(pickle.loads(pickle.dumps(f)), Scattered)  # noqa: S301


@pytest.mark.parametrize(
    ("quantity", "order"),
    [("mass_matrix", 16), ("coriolis_matrix", 5), ("forward_dynamics", 8), ("kinetic_energy", 9)],
)
def test_what_would_take_minutes_is_refused(quantity: str, order: int) -> None:
    """Before anything is traced, with the number of entries and the time."""
    for packed in (False, True):
        with pytest.raises(TraceError, match=r"entries and would take about .* of compiling; take a lower order"):
            drevo.compile(drevo.load("puma560"), quantity, wrt=("q",) * order, packed=packed)


@pytest.mark.parametrize("quantity", ["mass_matrix", "gravity", "forward_dynamics"])
def test_first_derivatives_of_large_trees_are_refused(quantity: str) -> None:
    """The first order too, where it would take minutes, not by running out of Python's stack."""
    with pytest.raises(TraceError, match=r"entries and would take about .* of compiling"):
        drevo.compile(drevo.robots.rod_chain(n=300), quantity, wrt="q")


def test_high_orders_are_made() -> None:
    """Order 7 of three joints by differences of the order below; order 12 of two, whose orders nobody lists."""
    r = drevo.robots.rod_chain(3)
    low, f = (drevo.compile(r, "mass_matrix", wrt=("q",) * k, packed=True) for k in (6, 7))
    q, h = np.array([0.3, -0.4, 0.5]), 1e-5
    full = unpack(f, f(q))
    assert full.shape == (3,) * 9 and f.pattern[0].size < 100
    slopes = [(unpack(low, low(q + e)) - unpack(low, low(q - e))) / (2 * h) for e in np.eye(3) * h]
    assert np.abs(full - np.stack(slopes, -1)).max() <= 1e-8 * np.abs(full).max()
    assert np.array_equal(full, np.swapaxes(full, 3, 7)) and np.array_equal(full, np.swapaxes(full, 0, 1))
    twelve = drevo.compile(drevo.robots.rod_chain(2), "mass_matrix", wrt=("q",) * 12)
    assert twelve([0.1, 0.2]).shape == (2,) * 14


def test_long_compiling_is_told_and_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Before it begins, whatever it is; a budget of the caller's. Of code that is kept nothing is said."""
    monkeypatch.setenv("DREVO_CACHE_DIR", str(tmp_path))
    r = drevo.load("puma560")
    with pytest.raises(TraceError, match=r"has \d+ operations, about \d+ s of compiling; give budget="):
        drevo.compile(drevo.load("panda"), "coriolis_matrix", wrt="q", budget=5.0)
    monkeypatch.setattr(build, "PROMPT_SECONDS", 0.0)
    told = r"of 'puma560': about \d+ s of compiling, once: the code is kept"
    with pytest.warns(drevo.DrevoWarning, match=told):
        drevo.compile(r, "bias", wrt=("q", "v"), packed=True)
    with pytest.warns(drevo.DrevoWarning, match=told):
        drevo.compile(r, "step", dt=1e-3, ground=None, product="vjp")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drevo.compile(drevo.load("puma560"), "step", dt=1e-3, ground=None, product="vjp")
    with pytest.raises(
        drevo.InputError, match="derivative: budget is -1; it must be a positive number of seconds"
    ):
        drevo.compile(r, "mass_matrix", wrt="q", budget=-1)
    with pytest.raises(drevo.InputError, match="take packed=True, whose pattern says"):
        drevo.compile(r, "gravity", wrt=("q",) * 9)


def test_the_cost_of_the_second_kernel_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """One for a sample, one for batches: the first that is called is told with the program."""
    monkeypatch.setattr(build, "PROMPT_SECONDS", 0.0)
    r, q = drevo.load("puma560"), np.zeros(6)
    with pytest.warns(drevo.DrevoWarning, match="gravity of 'puma560': about"):
        f = drevo.compile(r, "gravity", cache=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(q)
    with pytest.warns(
        drevo.DrevoWarning, match=r"gravity of 'puma560' for batches: about \d+ s of compiling, once"
    ):
        f(np.tile(q, (64, 1)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(np.tile(q, (64, 1)))


@pytest.mark.parametrize(
    ("quantity", "options"),
    [
        ("step", {"product": "vjp"}), ("step", {"law": "coulomb"}), ("step", {"law": "coulomb", "product": "jvp"}),
        ("forward_dynamics_derivatives", {}), ("forward_dynamics_derivatives", {"product": "vjp"}),
    ],
)  # fmt: skip
def test_the_cost_is_told_before_anything_is_traced(
    quantity: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """And is right within a factor of 2.5 where it is large."""
    monkeypatch.setenv("DREVO_CACHE_DIR", str(tmp_path))
    if quantity == "step":
        options = {"dt": 1e-3, **options}
        robot = drevo.load(CRAWLER.format(option="", condim=3, floor=""))
    else:
        robot = drevo.load("puma560")
    seconds, tell = list[float](), build._tell_cost

    def stop(what: str, s: float) -> bool:
        seconds.append(s)
        assert repr(robot.name) in what
        return tell(what, s)

    monkeypatch.setattr(build, "_tell_cost", stop)
    with warnings.catch_warnings(), pytest.raises(drevo.DrevoWarning, match="s of compiling, once"):
        warnings.simplefilter("error")
        monkeypatch.setattr(build, "PROMPT_SECONDS", 0.0)
        drevo.compile(robot, quantity, **options)
    monkeypatch.setattr(build, "PROMPT_SECONDS", 1e9)
    drevo.compile(robot, quantity, **options)
    ahead, again, after = seconds
    assert ahead == again and 0.4 < ahead / after < 2.5


@pytest.mark.parametrize(
    ("wrt", "at"),
    [
        ("qq", "q"),
        *(pytest.param(*x, marks=pytest.mark.nightly) for x in (("qv", "v"), ("qtau", "tau"), ("vv", "v"))),
    ],
)
def test_second_order_of_forward_dynamics(wrt: str, at: str) -> None:
    """A Panda's, against complex steps of the first order: 1e-11 of the largest."""
    model = drevo.load("panda").model
    x = quantity("forward_dynamics")
    rng = np.random.default_rng(1)
    state = {"q": rng.uniform(-1, 1, 8), "v": rng.normal(size=8), "tau": rng.normal(size=8)}
    names = (wrt[0], wrt[1:])
    first = derivative_program(model, x, names[:1], "auto", {})
    second = evaluate(derivative_program(model, x, names, "auto", {}), state)
    columns = []
    for e in np.eye(8):
        moved = {k: y + 1e-30j * e * (k == at) for k, y in state.items()}
        columns.append(next(iter(evaluate(first, moved, dtype=complex).values())).imag / 1e-30)
    expected, got = np.stack(columns, -1), next(iter(second.values()))
    assert np.abs(got - expected).max() <= 1e-11 * np.abs(expected).max()
