"""Documents by Telegin: statements beside elements, inputs of the robot, drawings, pages, verbs."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import strategies
from telegin_cases import hinged
from typer.testing import CliRunner

import drevo
from drevo import robots
from drevo.cli.main import app
from drevo.compiler.formalisms import FORMALISMS, TABLE
from drevo.compiler.pages.derivation import Derivation, write_out_program
from drevo.compiler.pages.drawing import drawing_of, robot_svg
from drevo.compiler.pages.telegin_inputs import described, inputs_of
from drevo.compiler.trace import trace
from drevo.documents.pictures.drawing import Drawing, DrawnBody, svg
from drevo.documents.sequence.expression import Style, write_terms
from drevo.documents.sequence.sequence import Statement
from drevo.documents.sources import FORMALISM as REFERENCES
from drevo.mechanics.tree import build_tree
from drevo.model.quantities import CATALOGUE

DOCS = Path(__file__).parent.parent / "docs"
EXAMPLES = ("three-link", "two-arm-planar", "two-arm-spatial")
TEXT = Style(name=lambda name: name, number=repr)


def derived(name: str, **options: Any) -> Derivation:
    return drevo.write_out(drevo.load(name), "mass_matrix", formalism="telegin", **options)


def run(*words: str) -> Any:
    return CliRunner().invoke(app, list(words))


# -- the statement beside each element ----------------------------------------------------------------------


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_element_has_its_statement(name: str) -> None:
    d = derived(name)
    notes = d.program.meta["notes"]
    assert isinstance(notes, dict)
    lower = {(r, c) for r, row in enumerate(d.evaluate(q=[0.3] * len(drevo.load(name).joint_names)), 1)
             for c, x in enumerate(row, 1) if c <= r and x != 0.0}  # fmt: skip
    assert {f"H_{r}{c}" for r, c in lower} <= {*notes}
    rows = re.findall(r"<tr>.*?</tr>", d.html())
    for text in (d.latex().splitlines(), d.markdown().splitlines(), rows):
        assert sum("statement" in line for line in text) == len(notes)


def test_the_statement_stands_in_the_row_of_its_element() -> None:
    d = derived("two-arm-spatial")
    assert re.search(r"H_\{33\} &= .* && \\quad\\text\{statement 3, \(8\)\}", d.latex())
    assert re.search(r"H_\{43\} &= .* && \\quad\\text\{statement 2, \(7\)\}", d.markdown())
    assert re.search(r"H_\{44\} &= [\d.]+ && \\quad\\text\{statement 1, \(5\)\}", d.markdown())
    assert "<i>statement 1, (2)</i>" in d.html()


def test_entries_of_other_joints_get_no_note_of_a_hinge() -> None:
    """Numbers of joints are not numbers of rates where a joint has several."""
    model = strategies.all_kinds("floating")
    d = drevo.write_out(model, "mass_matrix", formalism="telegin")
    for line in d.latex().splitlines():
        if "statement" in line or "beyond" in line:
            assert "H_{" in line


def test_notes_are_escaped() -> None:
    p = trace(drevo.load("three-link").model, "mass_matrix", meta={"notes": {"M_33": "<b>$_{\n"}})
    d = write_out_program(p)
    assert "<b>$" not in d.html() and r"\textless{}b\textgreater{}\$\_\{" in d.latex()


# -- inputs -------------------------------------------------------------------------------------------------


def definitions(d: Derivation) -> list[Statement]:
    """What the inputs define through other names."""
    inputs = d.about.inputs
    assert inputs is not None
    return [s for section in inputs.sections for s in section.statements if s.name in inputs.values]


LETTERS = ("d_", "m_", "I_")


@pytest.mark.parametrize("name", EXAMPLES)
def test_inputs_are_right(name: str) -> None:
    """Judged by check_formulas, which computes the names from the robot by its own way."""
    d = derived(name)
    inputs = d.about.inputs
    assert inputs is not None and len(inputs.sections) == (3 if "spatial" in name else 4)
    lines = [f"{s.name} = {write_terms(s.terms, TEXT)}" for s in definitions(d) if s.name[:2] in LETTERS]
    lines += [f"{name} = {x!r}" for name, x in inputs.values.items() if name[:2] in LETTERS]
    found = drevo.check_formulas(drevo.load(name), "\n".join(lines))
    assert found.wrong == () and len(found.right) == len(lines) > 10
    given = [s for section in inputs.sections[:2] for s in section.statements]
    bare = [s for s in given if s.name[0] != "e" and not s.name.startswith("q_") and s.name[:2] != "L_"]
    found = drevo.check_formulas(
        drevo.load(name), "\n".join(f"{s.name} = {write_terms(s.terms, TEXT)}" for s in bare)
    )
    assert found.wrong == () and len(found.right) == len(bare)


def test_inputs_in_the_manner_of_the_paper() -> None:
    inputs = derived("two-arm-spatial").about.inputs
    assert inputs is not None
    text = {s.name: write_terms(s.terms, TEXT) for section in inputs.sections for s in section.statements}
    assert text["e_5"] == "-x_1" and text["e_4"] == "y_3" and text["q_3"] == "z_3" and text["q_5"] == "y_5"
    assert text["d_y3"] == "m_o3*y_c3 + m_4*L_4" and text["m_1"] == "m_o1 + m_2 + m_5"
    assert "L_3" not in text and "e_1" not in text


@pytest.mark.parametrize("name", EXAMPLES[:2])
def test_merged_constants_give_the_projections(name: str) -> None:
    """L_i m_ji^e of a leaf j is A cos + B sin of the angles from i to j."""
    d, robot = derived(name), drevo.load(name)
    merged = [s for s in definitions(d) if s.name[0] in "AB"]
    lines = [f"{s.name} = {write_terms(s.terms, TEXT)}" for s in merged]
    names = {s.name for s in merged}
    leaves = {"three-link": ("33", "32"), "two-arm-planar": ("33", "32", "55", "54")}[name]
    for pair in leaves:
        angle = "".join(sorted({*pair}))
        terms = [f"{c}_{pair}*{f}_{angle}" for c, f in (("A", "c"), ("B", "s")) if f"{c}_{pair}" in names]
        lines.append(f"m_{pair}^e = ({' + '.join(terms)})/L_{pair[1]}")
    found = drevo.check_formulas(robot, "\n".join(lines))
    assert found.wrong == () and len(found.right) == len(leaves) and {*found.defined} == names


def test_values_stand_in_a_table_of_bodies() -> None:
    d = derived("three-link")
    assert r"d_{x3} &= m_{o3}\,x_{c3}" in d.latex() and "$0.169131$" in d.markdown()
    assert "<msqrt>" in d.html() and r"R_{22} &= L_{2}\,\sqrt{d_{x2}^{2} + d_{y2}^{2}}" in d.latex()
    assert "| bodies | $A$ | $B$ |" in derived("three-link", symbols="all", sequence="paper").markdown()


def test_symbols_do_not_clash_with_the_paper() -> None:
    """m_i is the mass of a subtree there, L_i the distance of poles."""
    d = derived("three-link", symbols="all")
    names = {s.name for s in d.sequence.symbols}
    assert {"m_o3", "R_2y", "R_3x", "R_3y"} <= names and not names & {"m_3", "L_1", "L_2"}


def test_inputs_of_any_tree_are_written() -> None:
    rng = np.random.default_rng(3)
    for k in range(20):
        model = hinged(rng, 5, planar=k % 2 == 0)
        assert inputs_of(build_tree(model)).sections
    assert inputs_of(build_tree(strategies.all_kinds("floating"))).sections


# -- sources ------------------------------------------------------------------------------------------------


def test_every_row_of_the_formalisms_has_its_function() -> None:
    for (_, name), row in TABLE.items():
        assert callable(row.compute(name))
    assert {name for formalism, name in TABLE if formalism == "newton_euler"} == {*CATALOGUE}


def test_formalisms_name_their_sources() -> None:
    assert {*REFERENCES} <= {*FORMALISMS} and all(REFERENCES.values())
    for text in (derived("three-link").html(), derived("three-link").markdown(), derived("three-link").latex()):
        assert "10.14529/ctcr250203" in unescape(text)
    d = drevo.write_out(drevo.load("puma560"), "inverse_dynamics", formalism="khalil")
    assert "Kleinfinger" in d.markdown() and "Telegin" not in d.markdown()


# -- drawings -----------------------------------------------------------------------------------------------


def count(drawing: str, kind: str) -> int:
    """Elements of a class, without those of the legend."""
    root = ET.fromstring(drawing)
    found = sum(1 for x in root.iter() if x.get("class") == kind)
    return found - {"m-mass": 2, "m-star": 1, "m-pole": 1, "m-dot": 1, "m-axis": 2}.get(kind, 0)


@pytest.mark.parametrize(
    ("name", "base"), [*((name, "fixed") for name in robots.EMBEDDED), ("biped", "floating"), ("biped", "trunk")]
)
def test_drawings_show_every_body(name: str, base: str) -> None:
    robot = drevo.load(name, base=base)
    shown, drawing = drawing_of(robot), robot_svg(robot)
    assert count(drawing, "m-mass") == 2 * sum(p.center is not None for p in shown.parts)
    assert count(drawing, "m-star") == sum(p.augmented is not None for p in shown.parts)
    numbers = "".join(ET.fromstring(drawing).itertext())
    assert all(p.number in numbers for p in shown.parts)
    assert np.allclose([np.dot(shown.up, shown.right), np.dot(shown.up, shown.up)], [0.0, 1.0])


@pytest.mark.parametrize("letters", [None, {}])
@pytest.mark.parametrize("name", [*EXAMPLES, "screw-arm"])
def test_everything_is_on_the_page(name: str, letters: dict[str, str] | None) -> None:
    robot = drevo.load(name)
    root = ET.fromstring(robot.draw(letters=letters).svg)
    width, height = float(root.get("width", "0")), float(root.get("height", "0"))
    for x in root.iter():
        for key, limit in (
            ("x", width),
            ("x1", width),
            ("cx", width),
            ("y", height),
            ("y2", height),
            ("cy", height),
        ):
            assert 0.0 <= float(x.get(key, "0")) <= limit


def test_letters_are_those_of_the_papers() -> None:
    """Lengths, the parts of an offset that lies along no axis, angles, axes; those of equal parts are the same."""
    robot = drevo.load("two-arm-planar")
    said = ["".join(x.itertext()) for x in ET.fromstring(robot.draw(letters={}).svg)]
    assert {f"{x}{k}" for x in "Oqxy" for k in range(1, 6)} | {"L2", "L3", "L4", "L5", "A", "B"} <= set(said)
    assert said.count("A") == 1 and said.count("B") == 2 and "z1" not in said and "L1" not in said
    screw = drevo.load("screw-arm")
    drawn = screw.draw(letters={"O_2": "A", "L_2": "H"}).svg
    assert "H = 0.6 m, L_3 = 0.5 m" in drawn and ">A</text>" in drawn
    rows = [{"a": a, "d": d, "mass": 1.0, "inertia": np.eye(3)} for a, d in ((0.3, 0.2), (0.1, 0.4), (0.2, 0.1))]
    several = drevo.from_dh(rows)
    assert "A_2 = " in several.draw(letters={}).svg and "A_3 = " in several.draw(letters={}).svg


def test_planes_are_seen_from_the_front() -> None:
    assert count(robot_svg(drevo.load("two-arm-planar")), "m-dot") == 5
    assert count(robot_svg(drevo.load("two-arm-planar")), "m-axis") == 0
    spatial = drawing_of(drevo.load("two-arm-spatial"))
    assert spatial.flat((0.0, 1.0, 0.0))[1] > 0.9 and count(svg(spatial), "m-axis") > 3


def test_centres_of_the_augmented_bodies() -> None:
    """In the frame of a body the star stands at d_i / m_i; at the leaves there is none."""
    parts = {p.number: p for p in drawing_of(drevo.load("three-link")).parts}
    values = derived("three-link").about.inputs
    assert values is not None and parts["3"].augmented is None and parts["1"].augmented is not None
    distance = float(np.linalg.norm(np.subtract(parts["1"].augmented, parts["1"].pole)[:2]))
    assert distance == pytest.approx(values.values["d_y1"] / values.values["m_1"], rel=1e-12)


def test_drawings_of_odd_mechanisms() -> None:
    for model in (strategies.all_kinds("fixed"), strategies.all_kinds("floating")):
        ET.fromstring(robot_svg(model))
    point = DrawnBody("1", -1, (0.0, 0.0, 0.0), "free", None, None, None)
    ET.fromstring(svg(Drawing((point,), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0))))
    hostile = DrawnBody("<&\"'", -1, (0.0, 0.0, 0.0), "prismatic", (1.0, 0.0, 0.0), (1.0, 1.0, 1.0), None)
    ET.fromstring(svg(Drawing((hostile,), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0))))


def test_pages_have_the_drawing_and_large_robots_none() -> None:
    d = drevo.write_out(drevo.load("puma560"), "gravity")
    (drawing,) = re.findall(r"<svg.*?</svg>", d.html(), re.DOTALL)
    ET.fromstring(drawing)
    assert "<svg" in d._repr_html_()
    model = drevo.robots.rod_chain(60).model
    assert described(trace(model, "potential_energy"), model).meta.get("drawing") is None


# -- pages --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXAMPLES)
def test_committed_drawings_are_current(name: str) -> None:
    robot = drevo.load(name)
    assert (DOCS / f"telegin-{name}.svg").read_text(encoding="utf-8") == robot.draw(letters={}).svg


def test_conditions_on_the_page_are_those_found() -> None:
    page = (DOCS / "telegin-two-arm-spatial.md").read_text(encoding="utf-8")
    c = drevo.conditions(drevo.load("two-arm-spatial"), constant="mass_matrix")
    assert str(c) in page and "\n".join(c.motion) in page


# -- verbs --------------------------------------------------------------------------------------------------


def test_conditions_verb() -> None:
    result = run("conditions", "two-arm-spatial", "--constant", "mass_matrix")
    assert result.exit_code == 0 and result.stdout.startswith("28 conditions")
    assert "I_3^yz + L_4*d_z4 = 0" in result.stdout and "I_4^z*a_3 + I_4^z*a_4 = tau_4" in result.stdout
    data = json.loads(run("conditions", "two-arm-spatial", "--constant", "mass_matrix", "--json").stdout)
    assert data["count"] == len(data["equations"]) == 28 and len(data["motion"]) == 7
    assert data["M"][3][3] == "I_4^z" and "I_6^xz = 0" in data["by_body"]["6"]


def test_conditions_verb_with_choices() -> None:
    data = json.loads(run("conditions", "two-arm-spatial", "--constant", "H_33", "--json").stdout)
    assert data["equations"] == ["d_x4 = 0", "d_y4 = 0"]
    result = run("conditions", "three-link", "--constant", "mass_matrix", "--free", "L_2")
    assert result.exit_code == 0 and "L_2*d_x2 = 0" in result.stdout
    for words in (("three-link",), ("three-link", "--constant", "H_99"), ("two-arm-planar", "--zero", "H_21")):
        result = run("conditions", *words)
        assert result.exit_code == 2 and result.stderr.startswith("drevo: ") and result.stderr.count("\n") == 1


def test_check_formulas_verb(tmp_path: Path) -> None:
    file = tmp_path / "printed.txt"
    file.write_text("H_33 = I_3^q\nH_55 = I_3^q\n")
    result = run("check-formulas", "two-arm-planar", str(file))
    assert result.exit_code == 1 and "it holds as H_55 = I_5^q" in result.stdout
    data = json.loads(run("check-formulas", "two-arm-planar", str(file), "--json").stdout)
    assert data["right"] == ["H_33"] and data["wrong"][0]["suggestion"] == "H_55 = I_5^q"
    file.write_text("H_33 = I_3^q\n")
    assert run("check-formulas", "two-arm-planar", str(file)).exit_code == 0


def test_check_formulas_verb_refuses(tmp_path: Path) -> None:
    file = tmp_path / "bad.txt"
    for content in (b"\xff\xfe\x00", b"H_33", b"H_33 = foo"):
        file.write_bytes(content)
        result = run("check-formulas", "two-arm-planar", str(file))
        assert result.exit_code == 2 and result.stderr.startswith("drevo: ") and result.stderr.count("\n") == 1
    assert run("check-formulas", "two-arm-planar", str(tmp_path / "none.txt")).exit_code == 2


def test_write_out_verb_takes_a_sequence() -> None:
    result = run("write-out", "three-link", "mass_matrix", "--sequence", "paper", "--to", "python")
    assert result.exit_code == 0 and "Operations: 9 additions, 7 multiplications" in result.stdout
    assert run("write-out", "three-link", "mass_matrix", "--sequence", "shortest").exit_code == 2


def test_the_unit_of_length_stands_at_the_symbols_of_a_page() -> None:
    page = drevo.write_out(drevo.load("puma560"), "inverse_dynamics").html()
    symbols = page[page.rindex(">Symbols<") : page.rindex(">Sines and cosines<")]
    assert "Lengths inside the equations are in units of 0.4318 m" in symbols
