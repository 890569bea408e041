"""The five papers made anew: pages, figures, errata, and a table of formulas with the worst error of each.

Errors are computed when the table is made. "agrees": relative error below 1e-9, or below 1e-5 against differences;
"misprint": the formula as printed, and how far it is off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..compiler.formalisms import PAGES, PAPERS
from ..compiler.pages.write_out import quantity_equations
from ..design.formulas import check_formulas
from ..documents.pictures.drawing import svg
from ..errors import InputError, one_of
from ..io.given import Array
from ..mechanics.formalisms.alyushin import rigid_body_energy
from ..robot.face import Robot
from ..robots import model
from .program import LISTINGS, separate_bodies_program

__all__ = ["CheckedFormula", "make_paper", "separate_bodies_program"]

TIGHT, BY_DIFFERENCES = 1e-9, 1e-5  # relative errors of what agrees
STEP = 1e-6  # of central differences
STATES = 16
EXAMPLES = {
    "telegin": ("three-link", "two-arm-planar", "two-arm-spatial"),
    "vereshchagin": ("three-link", "two-arm-spatial"),
    "kovalchuk": ("three-link", "screw-arm", "two-arm-spatial"),
    "alyushin": ("screw-arm", "two-arm-spatial"),
    "zaremba": ("three-link", "screw-arm"),
}


class CheckedFormula(NamedTuple):
    """A formula, the call that gives it, what it was compared with, the worst relative error, and the verdict."""

    formula: str
    call: str
    against: str
    error: float
    verdict: str


def make_paper(name: str, folder: Path) -> list[CheckedFormula]:
    """Writes a paper's pages, figures and table into a folder, and returns the rows of the table."""
    one_of("paper", name, PAPERS, InputError)
    checks = [*_CHECKS[name]()]  # before anything is written: they may need a package
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
    for example in EXAMPLES[name]:
        robot = _example(example)
        for quantity in names.split():
            d = quantity_equations(robot, quantity, formalism=name, sequence="paper", symbols="all")
            for ending in ("html", "md", "tex"):
                d.save(folder / f"{example}-{quantity}.{ending}")
            if d.about.drawing is not None:
                (folder / f"{example}.svg").write_text(svg(d.about.drawing), "utf-8")
            numbers = dict.fromkeys(line.equation for s in d.about.vectors for line in s.lines if line.equation)
            formula = ", ".join(numbers) or "statements 1 to 4, (1)-(12)"
            call = f"write_out({example}, {quantity!r}, formalism={name!r}, sequence='paper')"
            for what, worst, _ in d.about.checks:
                yield _row(formula, call, what, worst)


def _programs(folder: Path) -> None:
    """The slides' program for their chain."""
    folder.mkdir(exist_ok=True)
    for language in LISTINGS:
        start = [-1.0, *[0.0] * 9]
        for file, text in separate_bodies_program(_example("rod-chain"), language, start).items():
            (folder / file).write_text(text, "utf-8")


def _example(name: str) -> Robot:
    return Robot(model(name))


def _row(formula: str, call: str, against: str, error: float, limit: float = TIGHT) -> CheckedFormula:
    return CheckedFormula(formula, call, against, float(error), "agrees" if error <= limit else "differs")


def _worst(got: Any, want: Any) -> float:
    got, want = np.asarray(got), np.asarray(want)
    scale = float(np.max(np.abs(want), initial=0.0)) or 1.0
    return float(np.max(np.abs(got - want), initial=0.0)) / scale


def _states(robot: Robot, names: int) -> list[Array]:
    rng = np.random.default_rng(1)
    return [robot.random(rng, (STATES,)), *rng.normal(size=(names - 1, STATES, robot.nv))]


def _differences(f: Callable[[Array], Array], q: Array) -> Array:
    """Central differences by each coordinate, last axis."""
    steps = STEP * np.eye(q.shape[-1])
    return np.stack([(f(q + h) - f(q - h)) / (2.0 * STEP) for h in steps], axis=-1)


def _telegin() -> Iterator[CheckedFormula]:
    robot = _example("two-arm-spatial")
    (q,) = _states(robot, 1)
    energy = [[robot.kinetic_energy(q, np.tile(a, (STATES, 1))) for a in (e, d, e + d)]
              for e in np.eye(robot.nv) for d in np.eye(robot.nv)]  # fmt: skip
    M = np.array([c - a - b for a, b, c in energy]).reshape(robot.nv, robot.nv, STATES)
    yield _row(
        "H_ij", "robot.mass_matrix(q)", "kinetic energy of pairs of rates", _worst(M, robot.mass_matrix(q).T)
    )
    printed = "H_55 = I_3^q\nm_32^e = d_x3*s_23\nm_54^e = d_x5*s_45"  # of example 2
    judged = check_formulas(_example("two-arm-planar"), printed)
    for slip in judged.wrong:
        call = f"check_formulas: {slip.suggestion}"
        yield CheckedFormula(
            f"example 2 as printed: {slip.printed}", call, "the element itself", float(slip.error), "misprint"
        )


def _vereshchagin() -> Iterator[CheckedFormula]:
    for example in ("rod-chain", "two-arm-spatial"):
        robot = _example(example)
        q, v, tau = _states(robot, 3)
        rest = tau - robot.bias(q, v)
        want = np.linalg.solve(robot.mass_matrix(q), rest[..., None])[..., 0]
        yield _row("(17)-(21)", f"{example}: robot.forward_dynamics(q, v, tau)", "M^-1 (tau - h)",
                   _worst(robot.forward_dynamics(q, v, tau), want), 1e-7)  # fmt: skip


def _kovalchuk() -> Iterator[CheckedFormula]:
    robot = _example("two-arm-spatial")
    q, v, a = _states(robot, 3)
    want = np.einsum("...ij,...j", robot.mass_matrix(q), a) + robot.bias(q, v)
    yield _row(
        "I a + H = tau",
        "robot.inverse_dynamics(q, v, a)",
        "M a + h",
        _worst(robot.inverse_dynamics(q, v, a), want),
    )
    contacts = [{"link": robot.link_names[-1], "point": (0.1, 0.0, 0.0), "rows": 3}]
    for k in range(2):
        held = robot.constrained_dynamics(q[k], v[k], a[k], contacts=contacts)
        left = robot.mass_matrix(q[k]) @ held.a + robot.bias(q[k], v[k]) - held.jacobian.T @ held.reactions
        yield _row(
            "block system, first row", "robot.constrained_dynamics", "M a + H - J^T R = tau", _worst(left, a[k])
        )
        yield _row("block system, second row", "robot.constrained_dynamics", "J a + P = 0",
                   _worst(held.jacobian @ held.a, -held.gamma), 1e-8)  # fmt: skip


def _alyushin() -> Iterator[CheckedFormula]:
    robot = _example("screw-arm")
    q, v, a = _states(robot, 3)
    turns = robot.pose(q, robot.link_names[-1])[..., :3, :3]
    yield _row("(44), (46): det = 1", "robot.pose(q, link)", "det(dx/dX) = 1", _worst(np.linalg.det(turns), 1.0))
    want = 0.5 * np.einsum("...i,...ij,...j", v, robot.mass_matrix(q), v)
    yield _row("(40)", "robot.kinetic_energy(q, v)", "v M v / 2", _worst(robot.kinetic_energy(q, v), want))
    power = np.sum(robot.inverse_dynamics(q, v, a) * v, -1)
    rates = _energy_rate(robot, q, v, a)
    yield _row(
        "W_e = W_k + W_p",
        "robot.inverse_dynamics(q, v, a) v",
        "differences of the energy",
        _worst(power, rates),
        BY_DIFFERENCES,
    )
    box = np.diag([0.0417, 0.1417, 0.1667])
    turned = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
    energy = rigid_body_energy(10.0, np.zeros(3), box, turned, np.zeros(3), np.array([0.0, 0.0, 3.0]), mode="C")
    said = "constant polar moments, a box turned by 90 degrees"
    yield CheckedFormula(
        "(28), (37) as printed", "rigid_body_energy(..., mode='C')", said, energy.error / energy.exact, "misprint"
    )


def _energy_rate(robot: Robot, q: Array, v: Array, a: Array) -> Array:
    """Rate of kinetic and potential energy along a motion, by differences."""
    ends = []
    for h in (STEP, -STEP):
        q1 = robot.integrate(q, h * v + 0.5 * h * h * a)
        ends.append(robot.kinetic_energy(q1, v + h * a) + robot.potential_energy(q1))
    return np.asarray((ends[0] - ends[1]) / (2.0 * STEP))


def _zaremba() -> Iterator[CheckedFormula]:
    robot = _example("screw-arm")
    q, v = _states(robot, 2)
    slope = robot.derivative("mass_matrix", ("q",))(q)
    yield _row("theorems 1 and 3, (2.11)", "robot.derivative('mass_matrix', ('q',))", "differences of M",
               _worst(slope, _differences(robot.mass_matrix, q)), BY_DIFFERENCES)  # fmt: skip
    C = np.einsum("...ij,...j", robot.coriolis_matrix(q, v), v)
    yield _row(
        "(2.14), (2.15)", "robot.coriolis_matrix(q, v) v", "h - g", _worst(C, robot.bias(q, v) - robot.gravity(q))
    )
    last, first = robot.link_names[-1], robot.link_names[1]
    turn = robot.pose(q, first)[..., :3, :3]
    between = robot.velocity(q, v, last)[..., 3:] - robot.velocity(q, v, first)[..., 3:]
    relative = robot.velocity(q, v, last, relative_to=first)[..., 3:]
    yield _row("(1.4), (1.9)", "robot.velocity(q, v, link, relative_to=other)", "difference of angular velocities",
               _worst(relative, np.einsum("...ji,...j", turn, between)))  # fmt: skip


_CHECKS: dict[str, Callable[[], Iterator[CheckedFormula]]] = {
    "telegin": _telegin,
    "vereshchagin": _vereshchagin,
    "kovalchuk": _kovalchuk,
    "alyushin": _alyushin,
    "zaremba": _zaremba,
}
