"""A Robot's methods: typed and documented from the catalogue, and as fast as the builtin behind them."""

from __future__ import annotations

import os
import pickle
import pydoc
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import drevo
from drevo.model.quantities import ALIASES, CATALOGUE

ROOT = Path(__file__).parents[1]
PLAIN = [name for name, x in CATALOGUE.items() if not x.options]


def test_the_generated_file_is_current() -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "methods.py"))
    written = (Path(drevo.__file__).parent / "robot" / "methods.py").read_text(encoding="utf-8")
    assert tool["text"]() == written, "run tools/methods.py"


def test_a_method_becomes_the_builtin_on_its_first_use() -> None:
    r, q = drevo.load("three-link"), np.full(3, 0.3)
    assert "mass_matrix" not in vars(r)
    first = r.mass_matrix  # an entry point even where it is taken before it is called
    assert first is drevo.compile(r, "mass_matrix").fast is vars(r)["mass_matrix"] is r.mass_matrix
    assert r.crba is first and (r.rnea(q, q, q) == r.inverse_dynamics(q, q, q)).all()
    assert {*PLAIN, *ALIASES} <= set(dir(r)) and {*PLAIN, *ALIASES} <= set(dir(drevo.Robot))


@pytest.mark.parametrize("name", PLAIN)
def test_help_says_shapes_and_units(name: str) -> None:
    r, x = drevo.load("three-link"), CATALOGUE[name]
    for doc in (pydoc.render_doc(getattr(drevo.Robot, name)), pydoc.render_doc(getattr(r, name))):
        for s in x.state:
            assert f"{s}: " in doc and "(..., nq)" in doc
        assert x.about in doc and "out: " in doc and "threads" in doc and "Gives " in doc
        assert ("f_ext" in doc and "world axes" in doc) == x.external


def test_unknown_names() -> None:
    r = drevo.load("three-link")
    with pytest.raises(AttributeError, match="a Robot has no 'mass_matrx'; did you mean 'mass_matrix'"):
        r.mass_matrx  # type: ignore[attr-defined] # noqa: B018
    assert not hasattr(r, "_anything")


def test_a_guarded_method_pickles() -> None:
    trunk = drevo.load("biped", base="trunk")
    again = pickle.loads(pickle.dumps(trunk.inverse_mass_matrix))  # noqa: S301
    q = np.full(trunk.nq, 0.1)
    assert (again(q) == trunk.inverse_mass_matrix(q)).all()


TYPED = """
import drevo
import numpy as np
r = drevo.load("puma560")
q = np.zeros(6)
M: np.ndarray = r.mass_matrix(q)
M = r.inverse_dynamics_derivatives(q, q, q).dtau_dq
tau = r.inverse_dynamics(q, q, q, f_ext={"link6": np.zeros(6)}, out=np.empty(6))
"""
TYPOS = [
    "r.mass_matrx(q)", "r.mass_matrix(q, q, q, q)", "r.inverse_dynamics(q, q)", "r.gravity(q, fext={})",
    "r.inverse_dynamics_derivatives(q, q, q).dtau_dp",
]  # fmt: skip


@pytest.mark.nightly
@pytest.mark.needs("mypy")
def test_typos_fail_under_mypy(tmp_path: Path) -> None:
    file = tmp_path / "user.py"
    file.write_text(TYPED + "\n".join(TYPOS) + "\n")
    words = [
        sys.executable,
        "-m",
        "mypy",
        "--config-file=",
        "--cache-dir",
        str(tmp_path),
        "--no-error-summary",
        str(file),
    ]
    env = dict(os.environ, MYPYPATH=str(Path(drevo.__file__).parents[1]))
    said = subprocess.run(words, env=env, capture_output=True, text=True, cwd=tmp_path).stdout.splitlines()
    lines = [line for line in said if line.startswith("user.py") and "error" in line]
    first = len(TYPED.splitlines()) + 1
    assert {int(line.split(":")[1]) for line in lines} == set(range(first, first + len(TYPOS))), said


def test_a_method_called_on_the_class_computes() -> None:
    robot = drevo.load("three-link")
    q, f_ext = np.full(3, 0.1), {"link3": np.ones(6)}
    assert np.array_equal(drevo.Robot.mass_matrix(robot, q), robot.mass_matrix(q))
    under = drevo.Robot.inverse_dynamics(robot, q, q, q, f_ext=f_ext)
    assert np.array_equal(under, robot.inverse_dynamics(q, q, q, f_ext=f_ext))
