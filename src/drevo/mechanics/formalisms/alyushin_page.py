"""Alyushin's kinetic energy as the paper writes it, motions superposed and (40), line by line, errata applied.

The outer motion carries the inner one; moments are current ones about the observer's axes through the centre.
"""

from __future__ import annotations

from ..scalar import Scalar, Vector
from ..tree import Tree
from .written import EYE3, HALF, JointLines, Page, Worded, of_all, written_scalar, written_sum, zeros_of


def kinetic_energy(tree: Tree, q: Vector, v: Vector) -> Scalar:
    """The energy of all bodies, J."""
    page = Page(tree, "Alyushin")
    joints = of_all(page, q)
    turns: list[Worded] = []
    spins: list[Worded] = []
    poles: list[Worded] = []
    energies: list[Worded] = []
    for j in joints:
        page.link(j.body, "body")
        n, up = j.n, j.up
        outer = turns[up] if up >= 0 else Worded(EYE3.rows, ("1",))
        inner = page.define(
            f"F_{n}", j.turned() @ j.turn(), "(3)-(6)", "turn of the inner motion, of a body against its base"
        )
        said = "turn of the superposed motion, the derivatives of x by the initial coordinates, with det = 1"
        turn = page.define(f"R_{n}", outer @ inner, "(7)", said)
        turning, sliding = j.columns()
        rate = j.of("v", v)
        base = spins[up] if up >= 0 else zeros_of(3)
        said = "angular velocity of a body, the rates of turns of (30) about the observer's axes, rad/s"
        spin = page.define(f"omega_{n}", base + turn @ turning @ rate, "", said)
        arm = page.define(
            f"l_{n}",
            outer @ (j.offset() + j.turned() @ j.shift()),
            "",
            "from the pole of a body's base to its own, m",
        )
        before = poles[up] if up >= 0 else zeros_of(3)
        pole = page.define(
            f"v_{n}^P",
            before + base.cross(arm) + turn @ sliding @ rate,
            "(8), (9)",
            "velocity of a body's pole, observer's axes, m/s",
        )
        poles.append(pole)
        energies.append(_energy(page, j, turn, spin, pole))
        turns.append(turn)
        spins.append(spin)
    page.section("all bodies")
    rotors = tree.rotor_energy(v)
    whole = written_sum(energies, zeros_of(1))
    if tree.armature:
        whole = whole + written_scalar(rotors, "E^r")
        tree.named(rotors, "E^r")
    return page.define("T", whole, "", "kinetic energy, J").rows[0][0]


def _energy(page: Page, j: JointLines, turn: Worded, spin: Worded, pole: Worded) -> Worded:
    """(37)-(40) of one body."""
    n = j.n
    c, J0 = j.centre()
    away = page.define(f"r_{n}^PC", turn @ c, "", "from the pole to the centre of mass, observer's axes, m")
    centre = page.define(f"v_{n}^C", pole + spin.cross(away), "", "velocity of a centre of mass, m/s")
    J = page.define(
        f"J_{n}",
        turn @ J0 @ turn.T,
        "(37), (38)",
        "current moments about the observer's axes through the centre: J^i on the diagonal, -I_ij beside it",
        True,
    )
    m = j.mass()
    value = HALF @ m @ centre.T @ centre + HALF @ spin.T @ J @ spin
    return page.define(f"E_{n}", value, "(40)", "kinetic energy of a body, J")
