"""Written pages: whose coordinate each symbol is, in which posture a drawing is, exact numbers."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import strategies

import drevo
from drevo.compiler.pages.derivation import Derivation
from drevo.compiler.pages.drawing import drawing_of, robot_svg
from drevo.documents.languages.table import LANGUAGES
from drevo.documents.pictures.plot import Curve, Panel, plot

TEXTS = tuple(LANGUAGES)


def lines_with(d: Derivation, target: str, symbol: str, joint: str) -> list[str]:
    """Lines (or rows) of a text that name both."""
    text = d.text(target)
    parts = re.findall(r"<tr>.*?</tr>", text) if target == "html" else text.splitlines()
    plain = [re.sub(r"</?m\w+>|<[^>]*>|[\\{}$ ]", "", line) for line in parts]
    base, number = symbol.split("_")
    return [line for line in plain if joint in line and re.search(rf"{base}_?{number}(?!\d)", line)]


@cache
def written() -> tuple[drevo.Robot, Derivation]:
    robot = drevo.load("biped", base="floating")
    return robot, drevo.write_out(robot, "bias")


@pytest.mark.parametrize("target", TEXTS)
def test_every_symbol_is_tied_to_its_joint(target: str) -> None:
    robot, d = written()
    k = 8 + robot.joint_names.index("right_knee") - 1  # after the seven numbers of the base
    assert any("rad" in line for line in lines_with(d, target, f"q_{k}", "right_knee"))
    assert lines_with(d, target, f"v_{k - 1}", "right_knee")
    assert lines_with(d, target, "q_4", "root_joint") and lines_with(d, target, "v_6", "root_joint")


def test_rows_of_inputs_say_joint_number_kind_and_unit() -> None:
    rows = drevo.write_out(drevo.load("biped", base="floating"), "forward_dynamics").about.coordinates
    assert [len(rows[k]) for k in ("q", "v", "tau")] == [20, 19, 19]
    assert rows["q"][3] == ("root_joint", "1", "free, quaternion x", "")
    assert rows["v"][5] == ("root_joint", "1", "free, angular velocity z", "rad/s")
    assert rows["tau"][0] == ("root_joint", "1", "free, force x", "N")
    assert rows["tau"][5] == ("root_joint", "1", "free, moment z", "N m")


def test_every_kind_of_joint_has_a_row_for_every_scalar() -> None:
    model = strategies.all_kinds("floating")
    for quantity in ("inverse_dynamics", "forward_dynamics", "inertia_product"):
        d = drevo.write_out(model, quantity, formalism="newton_euler")  # rows are of joints, not of equations
        for port in d.sequence.inputs:
            rows = d.about.coordinates[port.source]
            assert len(rows) == len(port.scalars) and all(r.joint and r.kind for r in rows)
            assert all(r.unit or "quaternion" in r.kind for r in rows)


def test_names_in_tables_are_escaped() -> None:
    b = drevo.Builder("a|b")
    b.body("link", joint_name="j_1 & <x> | $y$ */ \\", mass=1.0, com=(1.0, 0.0, 0.0))
    d = drevo.write_out(b.robot(), "gravity")
    assert "<x>" not in d.html() and "*/ \\" not in d.c()
    assert r"j\_1 \& \textless{}x\textgreater{}" in d.latex()
    (row,) = [line for line in d.markdown().splitlines() if "j\\_1" in line]
    assert len(re.findall(r"(?<!\\)\|", row)) == 6


def test_drawings_say_their_posture() -> None:
    shown = drawing_of(drevo.load("puma560"))
    assert shown.posture[:2] == ("q_1 = 0.3 rad (joint1)", "q_2 = -0.55 rad (joint2)")
    for name, words in (("puma560", shown.posture), ("biped", drawing_of(drevo.load("biped")).posture)):
        text = " ".join("".join(x.itertext()) for x in ET.fromstring(robot_svg(drevo.load(name))).iter())
        assert "drawn at q_1 = 0.3 rad" in text and all(w.split(" (")[0] in text for w in words)
    b = drevo.Builder("slider")
    b.body("block", joint="prismatic", mass=1.0)
    assert "drawn at its neutral posture" in robot_svg(b.robot())


def drawings() -> list[str]:
    curves = [Curve(str(k), [0.0, 1.0], [0.0, k + 1.0]) for k in range(8)]
    return [
        robot_svg(drevo.load("two-arm-spatial")),
        plot("curves", [Panel("all", curves, areas=[[(0, 0), (1, 0), (1, 1)]])]),
        robot_svg(drevo.load("stewart")),
    ]


def test_drawings_are_plain_svg() -> None:
    """No variables: colours are attributes of the elements, and a style sheet only serves dark pages."""
    for text in drawings():
        root = ET.fromstring(text)
        assert "var(" not in text
        for style in root.iter("{http://www.w3.org/2000/svg}style"):
            assert str(style.text).startswith("@media (prefers-color-scheme:dark)")
        for x in root.iter():
            kind = x.tag.rpartition("}")[2]
            if kind in ("line", "polyline"):
                assert str(x.get("stroke")).startswith("#"), x.attrib
            if kind in ("polyline",):
                assert x.get("fill") == "none"
            if kind in ("circle", "rect", "polygon"):
                assert x.get("fill"), x.attrib


def symbolic(name: str, quantity: str, **options: Any) -> str:
    return str(drevo.write_out(drevo.load(name), quantity, **options).sympy())


@pytest.mark.parametrize("name", ["three-link", "two-arm-planar", "two-arm-spatial", "screw-arm", "scara"])
@pytest.mark.parametrize("symbols", [None, "all"])
def test_sympy_is_exact_where_a_person_would_be(name: str, symbols: str | None) -> None:
    for quantity in ("mass_matrix", "gravity", "kinetic_energy"):
        text = symbolic(name, quantity, symbols=symbols)
        assert not re.search(r"(?<![\d.])\d+\.0(?!\d)", text)
        assert "1.5707963" not in text and "0.159154943" not in text


def test_sympy_of_quarter_turns_and_screws() -> None:
    assert "sin(q_2 + q_3)" in symbolic("three-link", "mass_matrix")  # of cos(q_2 + q_3 - pi/2)
    assert "2*pi)" in symbolic("screw-arm", "kinetic_energy", symbols="all")


def test_every_language_of_the_table_is_written_and_saved_by_its_ending(tmp_path: Path) -> None:
    d = drevo.write_out(drevo.load("three-link"), "gravity")
    for language, endings in LANGUAGES.items():
        text = d.text(language)
        assert text
        for ending in endings:
            saved = d.html() if language == "html" else text  # live
            assert d.save(tmp_path / f"x{ending}").read_text(encoding="utf-8") == saved
    with pytest.raises(drevo.EmitError, match="language 'cobol' is not known; there are latex"):
        d.text("cobol")
