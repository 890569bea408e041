"""Derivatives of high order: full arrays from packed ones; what would take minutes is refused with its cost."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import strategies

import drevo
from drevo.codegen.runtime.scatter import Scattered
from drevo.compiler import differentiate
from drevo.compiler.differentiate import derivative
from drevo.errors import TraceError


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
    [("mass_matrix", 7), ("coriolis_matrix", 5), ("forward_dynamics", 5), ("kinetic_energy", 9)],
)
def test_what_would_take_minutes_is_refused(quantity: str, order: int) -> None:
    """Before anything is traced, with the number of entries and the time."""
    for packed in (False, True):
        with pytest.raises(TraceError, match=r"entries and would take about .* of compiling; take a lower order"):
            drevo.load("puma560").derivative(quantity, wrt=("q",) * order, packed=packed)


@pytest.mark.parametrize("quantity", ["mass_matrix", "gravity", "forward_dynamics"])
def test_first_derivatives_of_large_trees_are_refused(quantity: str) -> None:
    """The first order too, where it would take minutes, not by running out of Python's stack."""
    with pytest.raises(TraceError, match=r"entries and would take about .* of compiling"):
        drevo.robots.rod_chain(n=300).derivative(quantity, wrt="q")
