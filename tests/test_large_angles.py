"""Large finite angles: as right as small ones, single and in batches, for every formalism."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
import strategies
import sympy
from test_emit import SHIM, compiled, pointers

import drevo
from drevo.codegen.graph import ops
from drevo.codegen.graph.evaluate import evaluate_edges
from drevo.codegen.graph.program import Program
from drevo.compiler.recipe import Recipe
from drevo.errors import NumericsError
from drevo.model.description import Model

Array = np.ndarray[Any, Any]
SIZES = (1.0, 15.0, 17.0, 1e3, 1e6, 1e9, 4e11)
RULES = {ops.SIN: mpmath.sin, ops.COS: mpmath.cos, ops.SQRT: mpmath.sqrt}


def arm() -> Model:
    """Skew and parallel axes, odd placements, a screw, a slide, and followers of two others."""
    b = drevo.Builder("arm")
    solid: dict[str, Any] = {"mass": 1.0, "com": (0.1, 0.2, 0.3), "inertia": np.diag([0.1, 0.2, 0.25])}
    at: dict[str, Any] = {"origin": (0.3, 0.1, 0.2), **solid}
    b.body("a", joint="revolute", axis=(0, 0, 1), rpy=(0.3, 0.1, 0.2), **solid)
    b.body("b", parent="a", joint="revolute", axis=(0, 1, 0), rpy=(0.1, 0.4, 0.7), **at)
    b.body("c", parent="b", joint="revolute", axis=(0, 1, 0), **at)
    b.body("d", parent="c", joint="revolute", axis=(0, -1, 0), **at)
    b.body("h", parent="c", joint="helical", lead=0.1, axis=(1, 0, 0), **at)
    b.body("s", parent="h", joint="prismatic", axis=(1, 0, 0), **at)
    b.body("e", parent="c", joint="revolute", axis=(0, 0, 1), mimic=("a_joint", -1.37, 0.3), **at)
    b.body("f", parent="c", joint="revolute", axis=(0, 0, 1), mimic=("b_joint", 2.0), **at)
    model: Model = b.robot().model
    return model


def exactly(program: Program, q: np.ndarray) -> np.ndarray:
    """The first output, in 60 digits."""
    leaves = {n: mpmath.mpf(float(x)) for n, x in zip(program.inputs[0].nodes, q)}
    g = program.graph
    with mpmath.workdps(60):
        for n in g.live(program.output_edges):
            if g.op[n] in RULES:
                (e,) = g.operands(n)
                (x,) = evaluate_edges(g, [e], leaves, mpmath.mpf)
                leaves[n] = RULES[g.op[n]](x)
        found = evaluate_edges(g, program.output_edges, leaves, mpmath.mpf)
    return np.array([float(x) for x in found])


@pytest.mark.parametrize("formalism", ["auto", "khalil", "newton_euler"])
@pytest.mark.parametrize("quantity", ["mass_matrix", "gravity"])
def test_large_angles(quantity: str, formalism: str) -> None:
    """Sums of angles, phases and followers lose their whole turns before they are formed."""
    model = arm()
    plain = Recipe((quantity,), formalism="newton_euler").program(model)
    f = drevo.compile(model, quantity, formalism=formalism, cache=False)
    columns = drevo.compile(model, quantity, formalism=formalism, layout="batch_last", cache=False)
    for size in SIZES:
        q = np.random.default_rng(1).uniform(-size, size, model.nq)
        q[4:] = 0.2, 0.3  # lengths
        right = exactly(plain, q)
        rows = np.tile(q, (19, 1))
        rows[:7] = 0.3
        one = f(q).ravel()
        assert np.max(np.abs(one - right)) < 2e-15 * np.max(np.abs(right)), size
        assert np.array_equal(one, f(rows)[-1].ravel()) and np.array_equal(f(rows)[0], f(rows[0]))
        assert np.array_equal(one, columns(np.ascontiguousarray(rows.T))[:, -1])


@cache
def documents(name: str) -> tuple[drevo.Derivation, Array, Array]:
    """Equations with sums of angles, states of 3, 1e6 and 1e9 rad, and the right values."""
    model = arm() if name == "arm" else drevo.load(name).model
    d = drevo.write_out(model, "mass_matrix", formalism="khalil" if name == "arm" else "planar")
    plain = Recipe(("mass_matrix",), formalism="newton_euler").program(model)
    q = np.array([np.random.default_rng(1).uniform(-s, s, model.nq) for s in (3.0, 1e6, 1e9)])
    q[:, 4:5], q[:, 5:] = 20.0, 0.3  # a screw, a slide: far out they would be all that is seen
    return d, q, np.array([exactly(plain, x) for x in q])


def c_text(d: drevo.Derivation, q: Array, folder: Path) -> Array:
    f, out = compiled(d.c(), folder, "-std=c99 -Wall -Werror -pedantic -O2"), np.empty((len(q), q.shape[1] ** 2))
    for x, y in zip(q, out):
        f.mass_matrix(*pointers(np.ascontiguousarray(x), y))
    return out


def cuda_text(d: drevo.Derivation, q: Array, folder: Path) -> Array:
    out = np.empty((q.shape[1] ** 2, len(q)))
    library = compiled(SHIM + d.cuda(), folder, "-Wall -Werror -O2", ".cpp")
    library.mass_matrix_batch_last(*pointers(np.ascontiguousarray(q.T), out), ctypes.c_longlong(len(q)))
    return out.T


def matlab_text(d: drevo.Derivation, q: Array, folder: Path) -> Array:
    d.save(folder / "mass_matrix.m")
    rows = "; ".join(" ".join(map(repr, row)) for row in q.tolist())
    call = f"for q = [{rows}]', printf('%.17g ', mass_matrix(q)'), end"
    done = subprocess.run(["octave-cli", "--eval", call], cwd=folder, capture_output=True, text=True, check=True)
    return np.array(done.stdout.split(), float)


def python_text(d: drevo.Derivation, q: Array, folder: Path) -> Array:
    """Numbers one by one, and as an array where NumPy's functions take the place of math's."""
    space: dict[str, Any] = {}
    exec(d.python(), space)
    out = np.array([space["mass_matrix"](x) for x in q.tolist()])
    space.update(sin=np.sin, cos=np.cos)
    entries = [x for row in space["mass_matrix"](q=q.T) for x in row]
    all_at_once = np.array([np.broadcast_to(x, len(q)) for x in entries]).T
    assert np.allclose(all_at_once.ravel(), out.ravel(), rtol=0.0, atol=1e-15 * np.abs(out).max())
    return out


def sympy_text(d: drevo.Derivation, q: Array, folder: Path) -> Array:
    """Its sums are exact: evaluated with digits enough for the angles."""
    symbols = [sympy.Symbol(f"q_{k + 1}") for k in range(q.shape[1])]
    f = sympy.lambdify(symbols, list(d.sympy()["M"]), "mpmath")
    with mpmath.workdps(40):
        return np.array([[float(x) for x in f(*map(mpmath.mpf, row))] for row in q.tolist()])


def evaluated(d: drevo.Derivation, q: Array, folder: Path) -> Array:
    out: Array = d.evaluate(q=q)
    return out


WAYS = {
    "evaluate": evaluated,
    "python": python_text,
    "sympy": sympy_text,
    "c": pytest.param(c_text, marks=pytest.mark.needs("gcc")),
    "cuda": pytest.param(cuda_text, marks=pytest.mark.needs("g++")),
    "matlab": pytest.param(matlab_text, marks=pytest.mark.needs("octave-cli")),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_large_angles_in_documents(way: Callable[..., Array], tmp_path: Path) -> None:
    """In every language an angle of 1e9 rad is as right as a small one."""
    for name in ("three-link",) if way is sympy_text else ("arm", "three-link"):
        (folder := tmp_path / name).mkdir()
        d, q, right = documents(name)
        for x, y in zip(way(d, q, folder).reshape(right.shape), right):
            assert np.max(np.abs(x - y)) < 2e-15 * np.max(np.abs(y))


def test_large_angles_in_planes() -> None:
    """Long sums of angles, by the formalisms that form them."""
    chain = drevo.load("rod-chain").model
    plain = Recipe(("mass_matrix",), formalism="newton_euler").program(chain)
    q = np.random.default_rng(0).uniform(-1e8, 1e8, chain.nq)
    right = exactly(plain, q)
    for formalism in ("planar", "telegin", "khalil", "kovalchuk"):
        got = drevo.compile(chain, "mass_matrix", formalism=formalism, cache=False)(q).ravel()
        assert np.max(np.abs(got - right)) < 1e-13 * np.max(np.abs(right)), formalism


def test_beyond_all_angles() -> None:
    """Angles too large for any digit, and what is no number, are refused as ever."""
    model = arm()
    f = drevo.compile(model, "mass_matrix", formalism="khalil", cache=False)
    for x in (1e300, np.inf, np.nan, 2.0**41):
        for k in range(4):
            q = np.full(model.nq, 0.3)
            q[k] = x
            with pytest.raises(NumericsError):
                f(q)
            with pytest.raises(NumericsError, match="row 8"):
                f(np.stack([np.full(model.nq, 0.3)] * 8 + [q]))


@pytest.mark.parametrize("seed", range(8))
def test_large_angles_of_random_trees(seed: int) -> None:
    """Whole turns change nothing but the last digits, followers by fractions apart."""
    model = strategies.robot(seed, kinds=("revolute", "continuous", "prismatic"), base="fixed", mimics=0.0)
    if model.nv:
        f = drevo.compile(model, "inverse_dynamics", cache=False)
        q, v, a = strategies.state(model, seed)
        turning = np.array([j.kind != "prismatic" for j in model.moving_joints])
        far = q + turning * 2.0 * np.pi * 2.0**20
        near = q + turning * (far - q - 2.0 * np.pi * 2.0**20)  # what rounding made of it
        assert np.allclose(f(far, v, a), f(near, v, a), rtol=0, atol=1e-8 * max(1.0, np.max(np.abs(f(q, v, a)))))
