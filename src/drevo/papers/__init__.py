"""The five papers made anew: pages, figures, errata, and a table of formulas with the worst error of each.

Errors are computed when the table is made. "agrees": relative error below 1e-9, or below 1e-5 against differences;
"misprint": the formula as printed, and how far it is off.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..compiler.formalisms import PAGES, PAPERS
from ..compiler.pages.write_out import quantity_equations
from ..documents.pictures.drawing import svg
from ..errors import InputError, one_of
from .checks import CHECKS
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


def make_paper(name: str, folder: Path) -> list[CheckedFormula]:
    """Writes a paper's pages, figures and table into a folder, and returns the rows of the table.

    name: telegin, vereshchagin, kovalchuk, alyushin or zaremba; "together" writes the five side by side.
    """
    if one_of("paper", name, (*PAPERS, "together"), InputError) == "together":
        return together(folder)
    checks = [*CHECKS[name]()]  # before anything is written: they may need a package
    folder.mkdir(parents=True, exist_ok=True)
    rows = [*_pages(name, folder), *checks]
    if name == "vereshchagin":
        _programs(folder / "program")
    table = ["| formula | call | against | worst error | verdict |", "|---|---|---|---|---|"]
    table += [f"| {r.formula} | `{r.call}` | {r.against} | {r.error:.1e} | {r.verdict} |" for r in rows]
    (folder / "table.md").write_text(
        "\n".join([f"# {name.title()}: formulas and checks", "", *table, ""]), "utf-8"
    )
    return rows


def _pages(name: str, folder: Path) -> Iterator[CheckedFormula]:
    """The pages of the examples by the paper's own path."""
    names = "mass_matrix kinetic_energy gravity" if name == "telegin" else PAGES[name]
    for title in EXAMPLES[name]:
        robot = example(title)
        for quantity in names.split():
            d = quantity_equations(robot, quantity, formalism=name, sequence="paper", symbols="all")
            for ending in ("html", "md", "tex"):
                d.save(folder / f"{title}-{quantity}.{ending}")
            if d.about.drawing is not None:
                (folder / f"{title}.svg").write_text(svg(d.about.drawing), "utf-8")
            numbers = dict.fromkeys(line.equation for s in d.about.vectors for line in s.lines if line.equation)
            formula = ", ".join(numbers) or "statements 1 to 4, (1)-(12)"
            call = f"write_out({title}, {quantity!r}, formalism={name!r}, sequence='paper')"
            for what, worst, _ in d.about.checks:
                yield agreeing(formula, call, what, worst)


def _programs(folder: Path) -> None:
    """The slides' program for their chain."""
    folder.mkdir(exist_ok=True)
    for language in LISTINGS:
        start = [-1.0, *[0.0] * 9]
        for file, text in separate_bodies_program(example("rod-chain"), language, start).items():
            (folder / file).write_text(text, "utf-8")
