"""Pages by the papers' own paths: vectors and matrices first, components that read back, LaTeX that compiles."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import strategies
from page_reader import READERS
from rebuilt import rebuilt
from test_read_back import numbers, read_back, robots

import drevo
from drevo import robots as embedded
from drevo.compiler.formalisms import PAGES
from drevo.errors import TraceError
from drevo.model.base import with_base
from drevo.model.description import Model

ROWS = [(f, q) for f, names in PAGES.items() for q in names.split()]
LETTERS = {
    "vereshchagin": (
        r"M_{1}^{\star }",
        r"Q_{1}^{\star }",
        "U_{3}",
        r"a_{2}^{\prime }",
        "(17)",
        "(18)",
        "(20)",
        "(5)",
    ),
    "kovalchuk": (
        r"\theta_{2}",
        r"T_{2}\,M_{2,1}\,A_{3}",
        r"\mathrm{ns}(2)",
        "f(3)",
        r"\varepsilon_{2}",
        r"\phi_{3}",
        r"M_{2}^{o}",
        r"\omega_{2}",
        "(4)",
    ),
    "zaremba": (r"\Theta_{1}^{1\star }", "l_{3}^{1}", "f^{2}", "a_{31}", r"d_{1,2}^{1}", "(2.9)", "(2.14)"),
    "alyushin": ("R_{3}", "v_{2}^{C}", "J_{3}", "E_{1}", "(7)", "(40)"),
}


@pytest.mark.parametrize(("formalism", "quantity"), ROWS)
@pytest.mark.parametrize("name", ["three-link", "screw-arm"])
def test_components_read_back(name: str, formalism: str, quantity: str) -> None:
    """Every format, each parameter at a value of its own."""
    read_back(embedded.model(name), quantity, formalism=formalism, sequence="paper")


@pytest.mark.parametrize("seed", strategies.seeds(5, 30))
def test_random_trees_read_back(seed: int) -> None:
    for model in robots(seed):
        for formalism, quantity in ROWS:
            read_back(model, quantity, ("markdown",), formalism=formalism, sequence="paper")


@pytest.mark.parametrize("formalism", LETTERS)
def test_letters_of_the_paper(formalism: str) -> None:
    """Lines by vectors stand before the components, with the paper's letters and numbers of equations."""
    quantity = PAGES[formalism].split()[0]
    d = drevo.write_out(drevo.load("three-link"), quantity, symbols="all", formalism=formalism, sequence="paper")
    text = d.markdown()
    vectors = text[text.index("## Vectors and matrices") : text.index("## Components")]
    assert [x for x in LETTERS[formalism] if x not in vectors] == []
    assert "<details><summary>components</summary>" in d.html() and 'class="vec"' in d.html()
    defined = set(re.findall(r"^([^&\n]+?) &=", vectors, re.MULTILINE))
    legend = text[text.index("## Symbols") : text.index("## Inputs")]
    assert all(row.split("|")[2].strip() for row in legend.splitlines()[4:] if row)
    assert len(defined) > 10


def special_page_reads_back(model: Model, quantity: str, **how: Any) -> None:
    """A derivative or constrained dynamics, each parameter at a value of its own, against the robot with these."""
    robot = drevo.Robot(model)
    d = drevo.write_out(robot, quantity, symbols="all", sequence="paper", **how)
    assert d.checks[0][1] < 1e-12
    rng = np.random.default_rng(1)
    values = {name: x * rng.uniform(0.6, 1.4) for name, x in d.parameters.items()}
    how.pop("formalism", None)
    other = drevo.write_out(drevo.Robot(rebuilt(model, values)), quantity, **how)
    state = {s: rng.normal(size=1 if s == "t" else model.nv).tolist() for s in ("q", "v", "a", "tau", "t")}
    want = np.array(numbers(other.evaluate(**{p.name: state[p.name] for p in other.program.inputs})))
    for language, read in READERS.items():
        got = np.array(numbers(read(replace(d, digits=17).text(language)).results(d, state, values)))
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-12 * np.abs(want).max(), err_msg=language)


@pytest.mark.parametrize(
    ("quantity", "wrt"),
    [("mass_matrix", "q"), ("gravity", ("q", "q")), ("bias", "q"), ("inverse_dynamics", "q"), ("bias", "v")],
)
@pytest.mark.parametrize("name", ["three-link", "screw-arm", "two-arm-planar"])
def test_derivatives_by_the_theorems_of_zaremba(name: str, quantity: str, wrt: Any) -> None:
    special_page_reads_back(embedded.model(name), quantity, wrt=wrt)


@pytest.mark.parametrize("order", [2, 3])
def test_derivatives_of_higher_order(order: int) -> None:
    special_page_reads_back(embedded.model("screw-arm"), "mass_matrix", wrt=("q",) * order)


@pytest.mark.parametrize(
    ("quantity", "options"),
    [
        ("pose", {}),
        ("velocity", {"frame": "local"}),
        ("velocity", {}),
        ("jacobian", {}),
        ("jacobian", {"frame": "local"}),
        ("acceleration", {}),
        ("acceleration", {"kind": "spatial"}),
        ("acceleration", {"frame": "local", "kind": "spatial"}),
        ("pose", {"relative_to": "one that carries it"}),
        ("velocity", {"relative_to": "one that carries it"}),
        ("jacobian", {"relative_to": "one that carries it", "frame": "local"}),
        ("acceleration", {"relative_to": "one that carries it", "kind": "spatial"}),
        *(
            (quantity, {"relative_to": seen, **options})
            for seen in ("one that it carries", "another branch")
            for quantity, options in (
                ("pose", {}),
                ("velocity", {}),
                ("jacobian", {"frame": "local"}),
                ("acceleration", {"kind": "spatial"}),
                ("acceleration", {"kind": "classical", "frame": "local"}),
            )
        ),
        ("kinetic_energy", None),
    ],
)
@pytest.mark.parametrize("name", ["three-link", "screw-arm", "two-arm-spatial", "random"])
def test_motion_of_links_in_the_letters_of_papers(name: str, quantity: str, options: Any) -> None:
    """Zaremba's (1.1)-(1.10) and (2.1), Kovalchuk's (3)-(5): any link, also a welded one, or against another."""
    kinds = "revolute", "prismatic", "helical"
    model = strategies.robot(12, kinds, 4, "ground", 0.5, 0.0) if name == "random" else embedded.model(name)
    if options is None:
        read_back(model, quantity, formalism="zaremba", sequence="paper")
        return
    link, seen = model.links[-1].name, (options := {**options}).pop("relative_to", None)
    t = drevo.Robot(model).topology
    formalisms = ["zaremba", *(["kovalchuk"] if quantity in ("velocity", "jacobian") else [])]
    if seen == "one that carries it":
        options["relative_to"] = t.names[t.parent[t.parent[t.names.index(link)]]]
    elif seen is not None:
        last, moving = t.names.index(link), {j.child for j in model.moving_joints}
        ways = {"one that it carries": t.an(last)[:1], "another branch": set(range(1, last)) - {*t.an(last)}}
        others = [t.names[i] for i in ways[seen] if t.names[i] in moving]
        if not others:
            pytest.skip("a chain has no other branch")
        link, options["relative_to"] = (others[-1], link) if seen == "one that it carries" else (link, others[-1])
        formalisms = ["zaremba"]
    for formalism in formalisms:
        special_page_reads_back(model, quantity, formalism=formalism, link=link, **options)


def test_motion_that_the_page_of_zaremba_refuses() -> None:
    robot, how = drevo.load("three-link"), {"formalism": "zaremba", "sequence": "paper"}
    for options, sentence in (
        ({"link": "link3", "relative_to": "link3"}, "does not move against link3: name a link that does"),
        ({"link": robot.model.root}, "name a link that does"),
        ({"link": "link3", "frame": "world"}, "local_world_aligned"),
    ):
        with pytest.raises(TraceError, match=sentence):
            drevo.write_out(robot, "velocity", **how, **options)
    with pytest.raises(TraceError, match="'link3' does not carry 'link1': name one that does, or ask for formal"):
        how["formalism"] = "kovalchuk"
        drevo.write_out(robot, "velocity", **how, link="link1", relative_to="link3")


@pytest.mark.parametrize("formalism", ["zaremba", "kovalchuk"])
@pytest.mark.parametrize("name", ["three-link", "screw-arm", "two-arm-spatial"])
def test_constrained_dynamics_in_the_letters_of_a_paper(name: str, formalism: str) -> None:
    model = embedded.model(name)
    tip = model.links[-1].name
    special_page_reads_back(
        model, "constrained_dynamics", formalism=formalism, at=np.linspace(0.3, 0.9, model.nq),
        constraints=[drevo.constraint.point_on_plane(tip, (0.2, 0.1, 0.1), (1.0, 0.3, 0.0), offset=0.2)],
    )  # fmt: skip


def test_the_block_system_of_a_trunk() -> None:
    """Kovalchuk's table with auxiliary frames, and the system of a machine that nothing holds."""
    b = drevo.Builder("two arms", root="pelvis")
    body: dict[str, Any] = {
        "mass": 2.0,
        "com": (0.1, 0.2, 0.3),
        "inertia": ((0.4, 0.01, 0.02), (0.01, 0.5, 0.03), (0.02, 0.03, 0.6)),
    }
    b.body("left", parent="pelvis", joint="revolute", axis=(0.0, 0.0, 1.0), origin=(0.3, 0.4, 0.0), **body)
    b.body("right", parent="pelvis", joint="prismatic", axis=(1.0, 0.0, 0.0), origin=(-0.3, 0.0, 0.2), **body)
    model = b.robot().model
    pelvis = replace(model.links[0], inertial=model.links[1].inertial)
    robot = drevo.Robot(with_base(replace(model, links=(pelvis, *model.links[1:])), "trunk"))
    contact = {"link": "right", "point": (0.1, 0.0, 0.0)}
    d = drevo.write_out(
        robot, "constrained_dynamics", symbols="all", sequence="paper", formalism="kovalchuk", contacts=[contact]
    )
    text = d.markdown()
    assert d.checks[0][1] < 1e-12
    for line in (
        r"M_{6,2} &= ",
        r"A_{8} &= ",
        r"T_{8} &= T_{6}\,M_{6,2}\,A_{8}",
        r"d_{8} &= q_{8}",
        r"I_{I,I} & I_{R,I}^{T} & -J_{I}^{T}",
    ):
        assert line in text, line


@pytest.mark.parametrize(
    "ask",
    [
        {"quantity": "constrained_dynamics", "contacts": [{"link": "link3", "point": (0.1, 0.0, 0.0), "rows": 6}]},
        {"quantity": "constrained_dynamics", "formalism": "telegin"},
        {"quantity": "mass_matrix", "wrt": "q", "formalism": "kovalchuk"},
        {"quantity": "forward_dynamics", "wrt": "q"},
        {"quantity": "bias", "wrt": ("q", "q")},
        {"quantity": "gravity", "wrt": "q", "objective": "mul"},
    ],
)
def test_what_no_page_has(ask: dict[str, Any]) -> None:
    with pytest.raises(drevo.DrevoError):
        drevo.write_out(drevo.load("three-link"), ask.pop("quantity"), sequence="paper", **ask)


def test_paper_of_a_quantity_that_none_gives() -> None:
    with pytest.raises(TraceError, match="none of the five papers: leave sequence out"):
        drevo.write_out(drevo.load("three-link"), "momentum", sequence="paper")
    with pytest.raises(TraceError, match="ask for formalism='kovalchuk'"):
        drevo.write_out(drevo.load("three-link"), "jacobian", link="link3", formalism="telegin", sequence="paper")
    with pytest.raises(TraceError, match="vereshchagin"):
        drevo.write_out(drevo.load("three-link"), "forward_dynamics", formalism="zaremba", sequence="paper")


def test_parameters_of_the_page_are_arguments_of_the_program() -> None:
    """By name in the main function and its prologue."""
    robot, space = drevo.load("three-link"), dict[str, object]()
    d = drevo.write_out(robot, "forward_dynamics", symbols="all", formalism="vereshchagin", sequence="paper")
    exec(d.python(), space)
    q, v, tau = np.random.default_rng(0).normal(size=(3, 3))
    main, prologue = space["forward_dynamics"], space["prologue"]
    want = robot.forward_dynamics(q, v, tau)
    np.testing.assert_allclose(main(q, v, tau, prologue(dict(d.parameters))), want, rtol=1e-11)  # type: ignore[operator]
    changed = main(q, v, tau, **{"link3.mass": 2 * d.parameters["link3.mass"]})  # type: ignore[operator]
    assert np.max(np.abs(np.asarray(changed) - want)) > 1e-6


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="LaTeX is not installed")
@pytest.mark.parametrize("formalism", LETTERS)
def test_latex_has_no_overfull_box(tmp_path: Path, formalism: str) -> None:
    robot = drevo.load("two-arm-spatial" if formalism != "alyushin" else "screw-arm")
    quantity = PAGES[formalism].split()[0]
    d = drevo.write_out(robot, quantity, symbols="all", formalism=formalism, sequence="paper")
    d.save(tmp_path / "page.tex")
    for engine in ("pdflatex", "lualatex")[: 1 + (formalism == "kovalchuk" and bool(shutil.which("lualatex")))]:
        run = [engine, "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
        log = subprocess.run(run, cwd=tmp_path, capture_output=True, check=False).stdout.decode(errors="replace")
        assert "Output written" in log and "Overfull" not in log, re.findall(
            r"^(?:!|Overfull).*", log, re.MULTILINE
        )


@pytest.mark.parametrize("sequence", [None, "paper"])
@pytest.mark.parametrize("name", ["three-link", "screw-arm", "two-arm-spatial"])
def test_time_is_t_in_seconds(name: str, sequence: str | None) -> None:
    """Where a constraint moves; no other line is called so, and where nothing reads it it is no argument."""
    robot = drevo.load(name)
    how: dict[str, Any] = {"sequence": sequence, "at": np.linspace(0.3, 0.9, robot.nq)}
    place = robot.model.links[-1].name, (0.2, 0.1, 0.1), (1.0, 0.3, 0.0)
    moving = drevo.constraint.point_on_plane(*place, normal_rate=(0.1, 0.2, 0.3), offset=0.2)
    d = drevo.write_out(robot, "constrained_dynamics", constraints=[moving], **how)
    text = d.markdown()
    assert "| $t$ | time, s |" in text and "| $t$ |  |  | time | s |" in text
    assert "t_{" not in text.replace(r"\t", "") and r"\,t" in text
    got = d.evaluate(*np.ones((3, robot.nv)), t=[0.7])[0]
    want = robot.constrained_dynamics(*np.ones((3, robot.nv)), t=0.7, constraints=[moving]).a
    np.testing.assert_allclose(got, want, rtol=1e-9)
    still = drevo.constraint.point_on_plane(*place, offset=0.2)
    d = drevo.write_out(robot, "constrained_dynamics", constraints=[still], **how)
    assert [p.source for p in d.sequence.inputs] == ["q", "v", "tau"] and "time" not in d.markdown()
