"""drevo precompile: what the next process finds, and what is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from drevo.cli.main import app
from drevo.model.quantities import CATALOGUE

WARM = """
import numpy as np, drevo, drevo.compiler.recipe
def never(*_, **__): raise SystemExit("compiled anew")
drevo.compiler.recipe.Recipe.program = never
r = drevo.load("three-link")
z = np.zeros(3)
print(r.inverse_dynamics(z, z, z).shape, r.pose(z, "link3").shape, r.mass_matrix(z).shape)
"""


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DREVO_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def run(*words: str) -> Any:
    return CliRunner().invoke(app, ["precompile", *words])


def later() -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", WARM], capture_output=True, text=True, env=dict(os.environ))


def test_the_next_process_compiles_nothing(cached: Path) -> None:
    assert "compiled anew" in later().stderr
    result = run("three-link", "--quantities", "inverse_dynamics, pose,mass_matrix", "--link", "link3")
    assert result.exit_code == 0, result.output
    assert f"cache: {cached}" in result.stdout and "native" in result.stdout
    done = later()
    assert done.returncode == 0 and done.stdout == "(3,) (4, 4) (3, 3)\n", done.stderr


def test_all_quantities_and_the_ones_of_each_link(cached: Path) -> None:
    result = run("three-link", "--link", "link2", "--quantities", "pose,bias", "--layout", "batch_last", "--json",
                 "--dtype", "float32", "--packed")  # fmt: skip
    found = json.loads(result.stdout)
    assert [f["quantity"] for f in found["functions"]] == ["pose", "bias"] and found["packed"] is True
    assert len(list(cached.glob("*/*.bin"))) >= 2 * 3  # each with what computes one sample and a batch


def test_by_default_what_has_no_link(cached: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from drevo.cli import precompile

    names: list[str] = []
    monkeypatch.setattr(
        precompile,
        "compile_timed",
        lambda robot, name, options, spec: names.append(name) or {},  # type: ignore[func-returns-value]
    )
    run("three-link", "--json")
    assert names == [n for n, x in CATALOGUE.items() if "link" not in x.options]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--quantities", "poze"], "did you mean 'pose'"),
        (["--quantities", "pose"], "say which by --link; links are"),
        (["--quantities", "pose", "--link", "link9"], "did you mean 'link"),
        (["--dtype", "float16"], "there are float64, float32"),
        (["--layout", "columns"], "there are rows, batch_last"),
    ],
)
def test_refusals(cached: Path, words: list[str], said: str) -> None:
    result = run("three-link", *words)
    assert result.exit_code == 2 and said in result.stderr and result.stderr.count("\n") == 1


def test_a_cache_that_cannot_be_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("DREVO_CACHE_DIR", str(tmp_path / "file"))
    result = run("three-link")
    assert result.exit_code == 2 and "set DREVO_CACHE_DIR" in result.stderr
