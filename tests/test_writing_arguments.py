"""write_out and Derivation with arguments that do not fit: one sentence each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import drevo

WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("mass_matrx", {}, "did you mean 'mass_matrix'"),
    ("mass_matrix", {"formalism": "telegn"}, "formalism 'telegn' is not known; did you mean 'telegin'"),
    ("mass_matrix", {"formalism": ["khalil"]}, "formalism .* is not known; there are auto, newton_euler"),
    ("mass_matrix", {"formalism": np.zeros(0)}, "formalism .* is not known"),
    ("mass_matrix", {"formalism": None}, "formalism None is not known"),
    ("mass_matrix", {"objective": ["mul"]}, "objective .* is not known; there are mul, "),
    (
        "mass_matrix",
        {"sequence": "papre"},
        "sequence 'papre' is not known; there are paper, reuse, merged; did you mean 'paper'",
    ),
    ("mass_matrix", {"sequence": []}, "sequence .* is not known; there are paper"),
    ("mass_matrix", {"symbols": 3}, "symbols must be 'all' or names"),
    ("mass_matrix", {"symbols": True}, "symbols must be 'all' or names"),
    ("mass_matrix", {"symbols": ["*.mass", None]}, "symbols must be 'all' or names"),
    ("mass_matrix", {"symbols": "*.weight"}, "names nothing that is not zero"),
    ("mass_matrix", {"link": "link1"}, "takes no option 'link'"),
    ("lagrange_equations", {"formalism": "khalil"}, "formalism 'khalil' is not known; there are auto, telegin"),
    ("lagrange_equations", {"frame": "local"}, "takes no option 'frame'"),
    ("pose", {}, "say which by link="),
    ("pose", {"link": "link9"}, "link 'link9' is not known"),
    ("kinetic_energy", {"mode": []}, "mode .* is not known"),
    ("inverse_dynamics", {"passive": np.ones(2)}, "passive is array.*; it must be True or False"),
    ("mass_matrix", {"limits": np.ones(2)}, "limits is array.*; it must be True or False"),
    ("pose", {"link": "link1", "relative_to": np.ones(2)}, "relative_to array.* is not known"),
]


@pytest.mark.parametrize("name, options, sentence", WRONG)
def test_write_out_refuses(name: str, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(drevo.DrevoError, match=sentence) as caught:
        drevo.write_out(drevo.load("three-link"), name, **options)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("robot", ["puma560", None, 3, [], object()])
def test_write_out_takes_a_robot(robot: Any) -> None:
    with pytest.raises(drevo.DrevoError, match=r"write_out takes a robot, not .*: make one with drevo\.load"):
        drevo.write_out(robot, "mass_matrix")


@pytest.mark.parametrize("name", [None, 3, [], ["mass_matrix", "gravity"], {}, np.zeros((2, 3))])
def test_write_out_takes_one_quantity(name: Any) -> None:
    with pytest.raises(drevo.DrevoError, match="one quantity by its name"):
        drevo.write_out(drevo.load("three-link"), name)


Q = np.zeros(3)
EVALUATE: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
    ((), {}, "'q' is missing"),
    ((Q, Q), {}, r"evaluate\(q\) takes 1 arguments, 2 were given"),
    ((Q,), {"q": Q}, "'q' twice"),
    ((Q,), {"v": Q}, "takes no argument 'v'"),
    ((None,), {}, "q must hold real numbers, it holds None"),
    (("x",), {}, "q must hold real numbers"),
    ((1j * Q,), {}, "q must hold real numbers, it holds values of type complex128"),
    ((np.zeros(4),), {}, r"q has shape \(4,\); it must be \(\.\.\., 3\)"),
    ((0.0,), {}, r"q has shape \(\)"),
    ((Q * np.nan,), {}, r"q\[0\] is nan: inputs must be finite"),
    ((np.full((2, 3), np.inf),), {}, r"q\[0\] in row 0 is inf"),
    ((Q,), {"parameters": 3}, "parameters must be {name: number}, not int"),
    ((Q,), {"parameters": {"link1.mass": None}}, "'link1.mass' must be a finite number"),
    ((Q,), {"parameters": {"link1.mass": "2"}}, "'link1.mass' must be a finite number"),
    ((Q,), {"parameters": {"link1.mass": np.nan}}, "'link1.mass' must be a finite number"),
    ((Q,), {"parameters": {"link1.mass": 10**400}}, "'link1.mass' must be a finite number"),
    ((Q,), {"parameters": {"link1.weight": 2.0}}, "'link1.weight' cannot be set; symbolic are "),
    ((Q,), {"f_ext": {"link1": np.zeros(6)}}, "takes no argument 'f_ext:link1'"),
    ((Q,), {"f_ext": 5}, "f_ext must be {link: wrench}"),
    ((Q,), {"out": Q}, "takes no argument 'out'"),
]


@pytest.mark.parametrize("args, named, sentence", EVALUATE)
def test_evaluate_refuses(args: Any, named: Any, sentence: str) -> None:
    d = drevo.write_out(drevo.load("three-link"), "mass_matrix", symbols="all")
    with pytest.raises(drevo.DrevoError, match=sentence):
        d.evaluate(*args, **named)


def test_evaluate_refuses_batches_that_do_not_agree() -> None:
    d = drevo.write_out(drevo.load("three-link"), "bias")
    with pytest.raises(drevo.InputError, match=r"do not agree: q \(2,\), v \(3,\)"):
        d.evaluate(np.zeros((2, 3)), np.zeros((3, 3)))
    assert d.evaluate(np.zeros((2, 1, 3)), np.zeros((4, 3))).shape == (2, 4, 3)
    assert d.evaluate(np.zeros((0, 3)), np.zeros(3)).shape == (0, 3)


@pytest.mark.parametrize("path", [None, 3, "x", "x.docx", "", ".", "no/such/folder/x.md", "\0.md", "x.md/"])
def test_save_refuses(path: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    d = drevo.write_out(drevo.load("three-link"), "gravity")
    if path == "x.md/":
        (tmp_path / "x.md").mkdir()
    with pytest.raises(drevo.InputError, match=r"a derivation (is|cannot be) saved"):
        d.save(path)
    with pytest.raises(drevo.InputError, match=r"a table (is|cannot be) saved"):
        drevo.load("three-link").simulate(Q, duration=0.01).save(path if path != "x.md/" else "no/x.csv")


@pytest.mark.parametrize("text", ["q,q", "q, q"])
@pytest.mark.parametrize("name", ["three-link", "screw-arm", "two-arm-planar"])
def test_derivatives_by_a_text_with_commas(name: str, text: str) -> None:
    """As at the command line: "q,q" is ("q", "q"), for pages and for compiled derivatives."""
    robot = drevo.load(name)
    for sequence in (None, "paper"):
        one, other = (drevo.write_out(robot, "gravity", wrt=w, sequence=sequence) for w in (text, ("q", "q")))
        assert one == other and one.sequence.results[0].shape == (robot.nv,) * 3
    q = np.linspace(0.1, 0.9, robot.nq)
    np.testing.assert_array_equal(
        robot.derivative("gravity", wrt=text)(q), robot.derivative("gravity", wrt=("q", "q"))(q)
    )
    with pytest.raises(drevo.InputError, match="does not depend on 'z'"):
        drevo.write_out(robot, "gravity", wrt="q,z")
