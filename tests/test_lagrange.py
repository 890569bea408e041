"""The Lagrange equations with their terms apart."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import drevo
from drevo.errors import TraceError


@pytest.mark.parametrize("name", ["three-link", "two-arm-planar", "two-arm-spatial", "stanford"])
@pytest.mark.parametrize("symbols", [None, "all"])
def test_terms_add_up(name: str, symbols: str | None) -> None:
    """H and the sum of the terms are M and the bias; gyroscopic terms do no work; squares stand apart."""
    d = drevo.write_out(drevo.load(name), "lagrange_equations", symbols=symbols)
    assert d.formalism == "telegin" and all(worst <= 1e-13 for _, worst, _ in d.checks)
    n = drevo.load(name).nv
    rng = np.random.default_rng(0)
    q, v = rng.normal(size=n), np.zeros(n)
    v[-1] = 2.0
    _, fast, mixed, _, _ = d.evaluate(q=q, v=v)
    assert np.all(mixed == 0.0)  # one joint alone makes no products v_i v_j
    _, faster, _, _, _ = d.evaluate(q=q, v=2.0 * v)
    assert np.allclose(faster, 4.0 * fast, rtol=1e-13, atol=1e-15)


def test_rates_that_are_no_derivatives_are_refused() -> None:
    """A ball joint's rates are no derivatives of its coordinates: the sentence names the joint and who can."""
    b = drevo.Builder("ball")
    b.body("a", "world", "spherical", mass=1.0, com=(0.1, 0.0, 0.2), inertia=np.diag([0.1, 0.2, 0.25]))
    with pytest.raises(TraceError, match=r"spherical.*khalil"):
        drevo.write_out(b.robot(), "lagrange_equations")


@pytest.mark.needs("octave-cli")
@pytest.mark.parametrize("symbols", [None, "all"])
def test_matlab_text_runs(tmp_path: Path, symbols: str | None) -> None:
    """Octave computes what `evaluate` does, the hoisted work through the file's own entrance."""
    robot = drevo.load("two-arm-spatial")
    d = drevo.write_out(robot, "inverse_dynamics", symbols=symbols)
    d.save(tmp_path / "inverse_dynamics.m")
    rng = np.random.default_rng(3)
    q, v, a = rng.normal(size=(3, robot.nv))
    given = ", ".join(f"[{'; '.join(map(repr, x.tolist()))}]" for x in (q, v, a))
    values = "; ".join(repr(p.value) for p in d.program.parameters)
    before = f"k = inverse_dynamics('prologue', [{values}]);" if symbols else ""
    call = f"{before} printf('%.17g ', inverse_dynamics({given}{', k' if symbols else ''}))"
    done = subprocess.run(["octave-cli", "--eval", call], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert np.allclose(np.array(done.stdout.split(), float), d.evaluate(q=q, v=v, a=a), rtol=1e-14, atol=1e-13)
