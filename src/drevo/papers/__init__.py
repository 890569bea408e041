"""The five papers made anew: pages, figures, errata, and a table of formulas with the worst error of each.

Errors are computed when the table is made. "agrees": relative error below 1e-9, or below 1e-5 against differences;
"misprint": the formula as printed, and how far it is off.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..compiler.formalisms import PAGES, PAPERS
from ..constraint.values import point_on_plane
from ..errors import InputError, one_of
from ..robot.face import Robot
from ..robot.writing import write_out
from ..robots import model
from .checks import CHECKS
from .figure import index_figure
from .program import LISTINGS, separate_bodies_program
from .rows import CheckedFormula, agreeing, example
from .together import together

__all__ = ["CheckedFormula", "make_paper", "separate_bodies_program"]

EXAMPLES = {
    "telegin": ("three-link", "two-arm-planar", "two-arm-spatial"),
    "vereshchagin": ("three-link", "two-arm-spatial"),
    "kovalchuk": ("three-link", "screw-arm", "two-arm-spatial"),
    "alyushin": ("screw-arm", "two-arm-spatial"),
    "zaremba": ("three-link", "screw-arm"),
}


FIGURE_LETTERS = {"alyushin": {"O_2": "A", "O_3": "B", "L_2": "H", "L_3": "L_1"}}  # of the screw arm's figure
DERIVED = {"zaremba": ("mass_matrix", "gravity", "inverse_dynamics")}  # by q, by theorems 1 and 3
LINK_MOTIONS = {
    "kovalchuk": "velocity jacobian",
    "zaremba": "pose velocity jacobian acceleration",
}  # of the last link
MARKS_PATTERN = re.compile(r"[|<>*_\\]")  # of Markdown
CONSTRAINED_FORMALISMS = ("kovalchuk", "zaremba")


def make_paper(name: str, folder: Path) -> list[CheckedFormula]:
    """Writes a paper's pages, figures and table into a folder, and returns the rows of the table.

    name: telegin, vereshchagin, kovalchuk, alyushin or zaremba; "together" writes the five side by side.
    """
    if one_of("paper", name, (*PAPERS, "together"), InputError) == "together":
        return together(folder)
    checks = [
        row for part in CHECKS[name] for row in part()
    ]  # before anything is written: they may need a package
    folder.mkdir(parents=True, exist_ok=True)
    rows = [*_pages(name, folder), *checks]
    if name == "vereshchagin":
        _programs(folder / "program")
    if name == "kovalchuk":
        biped = Robot(model("biped", base="trunk"))
        (folder / "figure-1.svg").write_text(index_figure(biped, "pelvis"), "utf-8")
    table = [
        "| formula | what it says | call | checked against | worst error | verdict |",
        "|---|---|---|---|---|---|",
    ]
    plain = [[MARKS_PATTERN.sub(r"\\\g<0>", x) for x in (r.formula, r.says, r.against)] for r in rows]
    table += [
        f"| {formula} | {says} | `{r.call}` | {against} | {r.error:.1e} | {r.verdict} |"
        for (formula, says, against), r in zip(plain, rows)
    ]
    (folder / "table.md").write_text(
        "\n".join([f"# {name.title()}: formulas and checks", "", *table, ""]), "utf-8"
    )
    return rows


def _pages(name: str, folder: Path) -> Iterator[CheckedFormula]:
    """The pages of the examples by the paper's own path."""
    names = "mass_matrix kinetic_energy gravity" if name == "telegin" else PAGES[name]
    for title in EXAMPLES[name]:
        robot = example(title)
        robot.draw(letters=FIGURE_LETTERS.get(name, {})).save(folder / f"{title}.svg")
        asked: list[tuple[str, str, dict[str, Any]]] = [(x, "", {}) for x in names.split()]
        asked += [(x, ", wrt='q'", {"wrt": "q"}) for x in DERIVED.get(name, ())]
        last = {"link": robot.link_names[-1]}
        asked += [(x, f", link={last['link']!r}", last) for x in LINK_MOTIONS.get(name, "").split()]
        if name == "zaremba":
            back = {"link": robot.link_names[1], "relative_to": robot.link_names[-1]}
            said = ", ".join(("", *(f"{key}={value!r}" for key, value in back.items())))
            asked += [(x, said, back) for x in LINK_MOTIONS[name].split()]
        if name in CONSTRAINED_FORMALISMS:
            plane = point_on_plane(robot.link_names[-1], (0.2, 0.1, 0.1), (1.0, 0.3, 0.0), offset=0.2)
            held = {"constraints": [plane], "at": np.linspace(0.3, 0.9, robot.nq)}
            asked.append(("constrained_dynamics", ", constraints=[plane]", held))
        for quantity, more, how in asked:
            d = write_out(robot, quantity, formalism=name, sequence="paper", symbols="all", **how)
            kind = "derivative-" if "wrt" in how else "back-" if "relative_to" in how else ""
            for ending in ("html", "md", "tex"):
                d.save(folder / f"{title}-{kind}{quantity}.{ending}")
            numbers = dict.fromkeys(line.equation for s in d.about.vectors for line in s.lines if line.equation)
            formula = ", ".join(numbers) or "(1)-(12)"
            call = f"write_out({title}, {quantity!r}{more}, formalism={name!r}, sequence='paper')"
            for what, worst, _ in d.about.checks:
                yield agreeing(formula, call, what, worst, says=f"{quantity}, the page of {title}")


def _programs(folder: Path) -> None:
    """The slides' program for their chain."""
    folder.mkdir(exist_ok=True)
    for language in LISTINGS:
        start = [-1.0, *[0.0] * 9]
        for file, text in separate_bodies_program(example("rod-chain"), language, start).items():
            (folder / file).write_text(text, "utf-8")
