"""Derivatives of one state across the lanes, where the equations of a batch are too long for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import oracles
import pytest
import strategies
from tolerances import inverting

import drevo
from drevo.codegen.llvm import module as llvm
from drevo.codegen.llvm.ports import Target
from drevo.codegen.store import build
from drevo.compiler.ways.across import QUANTITIES, plan_across
from drevo.errors import NumericsError
from drevo.model.description import Model

ID, FD = QUANTITIES
KINDS = ("revolute", "prismatic", "helical", "spherical", "cylindrical", "universal", "planar")


@pytest.fixture(autouse=True)
def long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every program is too long."""
    monkeypatch.setattr(llvm, "SINGLE", 0)


def tree_of(seed: int, n: int = 5, kinds: tuple[str, ...] = KINDS, base: str = "floating") -> Model:
    """A random tree, its joints depth first, as loaders leave them."""
    model, joints = strategies.robot(seed, kinds, n, base, welds=0.1, mimics=0.0), list[Any]()

    def visit(link: str) -> None:
        for j in (j for j in model.joints if j.parent == link):
            joints.append(j)
            visit(j.child)

    visit(model.root)
    return replace(model, joints=tuple(joints))


def made(model: Model, quantity: str, **options: Any) -> drevo.Function:
    assert plan_across(model, quantity) is not None
    return drevo.compile(model, quantity, cache=False, **options)


@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize(("seed", "base"), [(0, "floating"), (1, "fixed")])
def test_one_state_as_in_a_batch(quantity: str, seed: int, base: str) -> None:
    """Pinocchio's numbers; those of a batch to rounding; an array of one row is one state too."""
    model = tree_of(seed, base=base)
    oracle, f = oracles.pinocchio_of(model), made(model, quantity)
    states = [np.array(x) for x in zip(*(strategies.state(model, k) for k in range(3)))]
    many = f(*states)
    for k in range(3):
        one = [x[k].copy() for x in states]
        found, right = f(*one), getattr(oracle, quantity)(*one)
        cond = float(np.linalg.cond(oracle.mass_matrix(one[0]))) if quantity == FD else 1.0
        for x, y, z in zip(found, right, many):
            assert np.abs(x - y).max() <= inverting(model.nv, cond) * np.abs(y).max()
            assert np.abs(x - z[k]).max() <= inverting(model.nv, cond) * np.abs(y).max()
        assert np.array_equal(found[2], found[2].T)
        for again in (f(*(x[None] for x in one)), f.general(tuple(one), {})):
            assert all(np.array_equal(x, np.reshape(y, x.shape)) for x, y in zip(found, again))


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_narrower_machines_compute_the_same_bits(quantity: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tree_of(5, 9, ("revolute", "prismatic"), "fixed")
    state, found, host = strategies.state(model, 0), [], build.target_of(build.Spec())
    for lanes in {2, host.lanes}:
        monkeypatch.setattr(build, "target_of", lambda spec, n=lanes: host._replace(lanes=n))
        found.append(made(model, quantity)(*state))
    assert all(np.array_equal(x, y) for other in found[1:] for x, y in zip(found[0], other))


def test_single_precision_and_rotors() -> None:
    b = drevo.Builder("geared")
    for k, axis in enumerate(np.eye(3)):
        b.body(
            f"l{k}", parent=f"l{k - 1}" if k else "world", axis=axis, origin=(0.1, 0.2, 0.3),
            armature=0.1 * (k + 1), mass=1.0 + k, com=(0.1, 0.0, 0.2), inertia=np.diag([0.1, 0.2, 0.25]),
        )  # fmt: skip
    model, rng = b.robot().model, np.random.default_rng(0)
    x = rng.normal(size=(3, model.nv))
    for quantity in QUANTITIES:
        double, single = made(model, quantity), made(model, quantity, dtype="float32")
        right = double(*(np.array([y, y]) for y in x))
        for z, found, wide in zip(right, double(*x), single(*x.astype(np.float32))):
            assert np.abs(z[0] - found).max() <= 1e-13 * np.abs(z).max()
            assert wide.dtype == np.float32 and np.abs(z[0] - wide).max() <= 1e-4 * np.abs(z).max()


def test_what_is_refused() -> None:
    """As in a batch: no unit quaternion, nothing finite, no mass that a joint moves."""
    model = tree_of(0)
    f, state = made(model, ID), strategies.state(model, 0)
    bent = np.array(state[0])
    bent[3:7] *= 1.01
    with pytest.raises(NumericsError, match="normalise"):
        f(bent, *map(np.array, state[1:]))
    with pytest.raises(NumericsError, match="beyond the largest number"):
        f(np.array(state[0]), np.full(model.nv, 1e200), np.array(state[2]))
    b, light = drevo.Builder("wrist"), {"mass": 0.0, "inertia": np.zeros((3, 3))}
    for k, axis in enumerate(((0, 0, 1), (0, 1, 0), (0, 0, 1))):
        solid = {"mass": 1.0, "inertia": np.diag([0.1, 0.2, 0.25]), "com": (0.1, 0.0, 0.2)} if k == 2 else light
        b.body(f"l{k}", parent=f"l{k - 1}" if k else "world", axis=axis, **solid)  # type: ignore[arg-type]
    with pytest.raises(NumericsError, match="l0"):  # its first axis and its last are one
        made(b.robot().model, FD)(np.zeros(3), np.ones(3), np.ones(3))


def test_other_trees_take_a_tile() -> None:
    """Joints that follow others, and matrices without their zeros."""
    follows = strategies.robot(2, ("revolute",), 9, "fixed", welds=0.0, mimics=0.5)
    assert any(j.mimic for j in follows.joints) and plan_across(follows, ID) is None
    assert (
        plan_across(strategies.robot(0, KINDS, 9, "floating", welds=0.1, mimics=0.0), ID) is None
    )  # not depth first
    model = tree_of(4, 3)
    state = [np.array(x) for x in strategies.state(model, 0)]
    f = drevo.compile(model, ID, packed=True, cache=False)
    one, many = f(*state), f(*(np.array([x, x]) for x in state))
    assert all(np.array_equal(x, y[0]) for x, y in zip(one, many))
    assert isinstance(build.target_of(build.Spec()), Target)
