"""The five papers side by side: the same robots by all methods, letters, operations, accuracy, growth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ..documents.pictures.plot import Curve, Panel, plot
from ..robot.builder import Builder
from ..robot.face import Robot
from ..robot.writing import write_out
from ..robots import rod_chain
from .rows import CheckedFormula, agreeing, example

GIVES = {
    "telegin": ("mass_matrix", "inverse_dynamics"),
    "vereshchagin": ("forward_dynamics",),
    "kovalchuk": ("mass_matrix", "inverse_dynamics"),
    "zaremba": ("mass_matrix", "inverse_dynamics"),
    "alyushin": ("kinetic_energy",),
}
GROWTH = (1, 2, 4, 8)  # bodies of the chains
LETTERS_OF_PAPERS = (
    ("quantity", "Telegin", "Vereshchagin", "Kovalchuk", "Zaremba", "Alyushin"),
    ("joint coordinate", "q_i", "q_k", "q_i", "q_i", "theta_i"),
    ("mass matrix", "H", "-", "I", "A = (a_ij)", "-"),
    ("joint axis as a twist", "-", "S_k", "z_i, sigma_i", "f^i, carried l_k^i", "-"),
    ("angular velocity", "-", "omega_k", "omega_i", "in V_k", "theta_x,t and on"),
    ("inertia of a body", "I_i^x, I_i^xy and on, m_oi", "M_k", "J_ci, m_i", "Theta_i^i", "J_C, I_ij"),
    (
        "inertia with all that it carries",
        "augmented body I_i^d, d_i, m_i",
        "M*_k, joints free",
        "-",
        "Theta_i^i*",
        "-",
    ),
    ("force through a joint", "-", "R_k", "f_i, M_i", "-", "(W_e) is its power"),
    ("joint efforts", "tau", "tau_k", "tau", "Q", "-"),
    ("reactions of constraints", "-", "-", "R", "N", "-"),
)
BEST = (
    "* Telegin: elements of the mass matrix as formulas, by hand and by conditions on them.",
    "* Vereshchagin: accelerations, of which the work grows with the number of bodies alone.",
    "* Kovalchuk: efforts and reactions link by link, of machines that walk.",
    "* Zaremba: derivatives of any order and linear models with constraints.",
    "* Alyushin: energies and powers of single bodies.",
)


def together(folder: Path) -> list[CheckedFormula]:
    """Writes together.md and growth.svg into a folder, and returns the rows of accuracy."""
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[CheckedFormula] = []
    work: list[tuple[str, ...]] = [
        ("robot", "method", "quantity", "additions", "products", "divisions", "sines and cosines")
    ]
    for robot in (example("three-link"), slide_and_screw()):
        for method, quantity in _pairs():
            d = write_out(robot, quantity, formalism=method)
            numbers = (str(d.counts[x]) for x in ("add", "mul", "div", "trig"))
            work.append((robot.name, method, quantity, *numbers))
            against, worst, _ = max(d.checks, key=lambda check: check[1])
            call = f"write_out(robot, {quantity!r}, formalism={method!r})"
            rows.append(agreeing(f"{robot.name}: {quantity}", call, against, worst))
    growth, drawing = growth_with_bodies()
    (folder / "growth.svg").write_text(drawing, "utf-8")
    checked = [("formula", "call", "against", "worst error")]
    checked += [(r.formula, f"`{r.call}`", r.against, f"{r.error:.1e}") for r in rows]
    text = ["# The five papers side by side", "", "## Letters", "", *_table(LETTERS_OF_PAPERS), "",
            "## Operations", "", *_table(work), "", "## Accuracy", "", *_table(checked), "",
            "## Growth with the number of bodies", "", "Additions and products for chains of n rods.", "",
            *_table(growth), "", "![growth](growth.svg)", "",
            "## For what each is best", "", *BEST, ""]  # fmt: skip
    (folder / "together.md").write_text("\n".join(text), "utf-8")
    return rows


def slide_and_screw() -> Robot:
    """A tree of a hinge that carries a slide, and a screw with a hinge on it."""
    b = Builder("slide-and-screw")
    box = ((0.02, 0.001, 0.0), (0.001, 0.03, 0.002), (0.0, 0.002, 0.04))
    b.body("column", axis=(0, 0, 1), mass=3.0, com=(0.05, 0.0, 0.2), inertia=box)
    b.body("slide", "column", joint="prismatic", axis=(1, 0, 0), origin=(0.1, 0.0, 0.4), mass=1.0,
           com=(0.2, 0.01, 0.0), inertia=box)  # fmt: skip
    b.body("screw", "column", joint="helical", axis=(0, 1, 0), origin=(0.0, 0.1, 0.3), lead=0.05, mass=0.8,
           com=(0.0, 0.1, 0.02), inertia=box)  # fmt: skip
    b.body("hand", "screw", axis=(1, 0, 0), origin=(0.0, 0.2, 0.0), mass=0.5, com=(0.1, 0.0, 0.1), inertia=box)
    return b.robot()


def _pairs() -> Iterator[tuple[str, str]]:
    for method, quantities in GIVES.items():
        yield from ((method, quantity) for quantity in quantities)


def growth_with_bodies() -> tuple[list[tuple[str, ...]], str]:
    """Additions and products of every method for chains of n rods, as a table and as SVG."""
    table: list[tuple[str, ...]] = [("method", "quantity", *(f"n = {n}" for n in GROWTH))]
    curves: dict[str, list[Curve]] = {}
    for method, quantity in _pairs():
        counts = [write_out(rod_chain(n), quantity, formalism=method).counts for n in GROWTH]
        work = [x["add"] + x["mul"] for x in counts]
        table.append((method, quantity, *map(str, work)))
        curves.setdefault(quantity, []).append(Curve(method, GROWTH, work))
    panels = [Panel(quantity, lines) for quantity, lines in curves.items()]
    return table, plot("Operations by the number of bodies", panels, 2, "bodies")


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    head, *body = [f"| {' | '.join(row)} |" for row in rows]
    return [head, "|" + "---|" * len(rows[0]), *body]
