"""The command line under random words: an answer, or one sentence and the exit code 2; never a traceback."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from drevo.cli.main import VERBS, app

CALLS = int(os.environ.get("DREVO_WORDS", "8"))  # of each verb
SLOW = ("demo", "bench", "precompile", "walk", "swing-up")
ROBOTS = ("three-link", "scara", "screw-arm", "four-bar", "nope", "5", "", "stops.csv", "empty.urdf", ".", "\0x")
WORDS = (
    "0", "1", "-1", "nan", "inf", "1e400", "x", "", "0.1", "1,2,3", "0,0,0,", "link2", "all", "*.mass", "joint1",
    "telegin", "mass_matrix", "H_11", "d_*", "é", "\u2028", "world", "paper", "A", "floating", "trunk", "normal",
    "99999999999999999999", "none/x.csv", ".", "--",
)  # fmt: skip
FITTING: dict[str, tuple[str, ...]] = {
    "robot": ROBOTS[:4] * 4 + ROBOTS,
    "quantity": ("mass_matrix", "gravity", "pose", "potential_energy", "x", ""),
    "quantities": ("mass_matrix", "gravity", "x", ""),
    "file": ("formulas.txt", "bad.txt", "none", "."),
    "--export": ("o.html", "o.svg", "o", "none/o.html", "."),
    "--duration": ("0.01", "nan", "-1", "x", "0"),
    "to": ("o.urdf", "o.xml", "o.sdf", "o.toml", "o", "none/o.urdf", "."),
    "--output": ("o.csv", "o.npz", "o.md", "o.svg", "o", "none/o.csv", "o.xyz", "."),
    "--trajectory": ("stops.csv", "stops.csv", "bad.txt", "none", "."),
    "--monte-carlo": ("5", "-1", "x"),
    "--states": ("10", "0", "x"),
    "--sections": ("3", "1", "0", "x"),
    "--dt": ("0.01", "0", "x", "-1", "nan"),
}


def words(verb: str, rng: random.Random) -> list[str]:
    """A call of a verb: its arguments mostly, its options sometimes, with values that mostly fit."""
    command: Any = typer.main.get_command(app)
    out = [verb]
    for p in command.commands[verb].params:
        name = next((o for o in p.opts if o.startswith("--")), p.opts[0])
        kind = {"-o": "--output"}.get(name, name)
        fits = FITTING.get(kind, WORDS)
        value = rng.choice(fits if rng.random() < 0.9 else WORDS)
        if p.param_type_name == "argument":
            out += [value] if rng.random() < 0.95 else []
        elif name not in ("--help", "--open") and rng.random() < (0.9 if getattr(p, "required", False) else 0.2):
            out += [name] if getattr(p, "is_flag", False) else [name, value]
    if verb == "simulate" and "--duration" not in out:
        out += ["--duration", "0.01"]
    if verb == "view" and "--export" not in out:  # else a window opens where viser is, and waits for Ctrl+C
        out += ["--export", rng.choice(("o.html", "o.svg", "o", "none/o.html"))]
    return out


@pytest.mark.parametrize("verb", [name for name, _, _ in VERBS if name not in SLOW])
def test_any_words_end_in_an_answer_or_a_sentence(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("stops.csv").write_text("t,q:joint1,q:joint2,q:joint3\n0,0,0,0\n1,1,0.5,0.2\n")
    Path("formulas.txt").write_text("H_33 = I_3^d\n")
    Path("bad.txt").write_bytes(b"\xff\xfe\x00")
    Path("empty.urdf").write_text("")
    rng = random.Random(verb)
    for _ in range(CALLS):
        said = words(verb, rng)
        result = CliRunner().invoke(app, said)
        assert result.exception is None or isinstance(result.exception, SystemExit), said
        assert result.exit_code in (0, 1, 2), said
        if result.exit_code == 2:
            last = result.stderr.splitlines()[-1]
            assert last.startswith(("drevo: ", "  ")) and len(result.stderr) < 1500, said
