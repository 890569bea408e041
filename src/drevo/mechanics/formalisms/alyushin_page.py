"""Alyushin's energy and powers by the paper's lines: motions superposed and (40), errata applied.

The outer motion carries the inner one; moments are current ones about the observer's axes through the centre, in
modes A, B and C polar ones are constant, as the paper has them (see `alyushin.MODES`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ..algorithms.kinematics import moving_links
from ..scalar import Scalar, Vector, cos, is_zero, sin
from ..tree import Tree
from .alyushin import initial_turns, known_mode, observer_axis
from .written import (
    AXES,
    EYE3,
    HALF,
    JointLines,
    Page,
    Worded,
    by_blocks,
    component,
    of_all,
    unit_column,
    written_scalar,
    written_sum,
    zeros_of,
)

SPUN = "rates of turns of (30) about the observer's axes: the angular velocity of a body, rad/s"
ENTRIES = "about the observer's axes through the centre: J^i on the diagonal, -I_ij beside it, kg m²"
CURRENT = f"current moments {ENTRIES}"
DOUBLED = Worded([[2.0]], ("2",))


@dataclass
class BodyMotion:
    """The lines of one body, in the observer's axes."""

    n: str
    lines: JointLines
    turn: Worded
    spin: Worded
    arm: Worded  # from the pole of its base
    pole: Worded
    away: Worded  # from its pole to its centre
    centre: Worded
    moments: Worded  # in the body's own axes
    rate: Worded
    columns: tuple[Worded, Worded]  # turns and shifts by a unit rate, observer's axes


class AddedTurns(NamedTuple):
    """Angles of turns that are added up about the observer's axes, and their rates."""

    angles: Worded
    rates: Worded


class BodyPowers(NamedTuple):
    """Rates of a body's energies, W, and what its motion asks for: force at its centre, and moment about it."""

    motion: BodyMotion
    kinetic: Worded
    potential: Worded
    force: Worded
    moment: Worded


def kinetic_energy(tree: Tree, q: Vector, v: Vector, mode: str | None = None) -> Scalar:
    """The energy of all bodies, J; mode: None is exact, A, B and C take constant polar moments."""
    known_mode(mode)
    page = Page(tree, "Alyushin")
    energies: list[Worded] = []
    added: list[AddedTurns] = []
    for x in _moving(page, q, v, "omega_{}" if mode == "A" else "theta_{}_t"):
        spin = x.spin
        if mode is None:
            J = _current(page, x, f"J_{x.n}")
        elif mode == "C":
            J = _constant_polar(page, x, _current(page, x, f"J_{x.n}^t"))
        else:
            added.append(_added(page, x, added, mode == "A"))
            J = _own_angle_moments(page, x, added[-1].angles)
            spin = added[-1].rates if mode == "A" else spin
        value = HALF @ x.lines.mass() @ x.centre.T @ x.centre + HALF @ spin.T @ J @ spin
        energies.append(page.define(f"E_{x.n}", value, "(40)", "kinetic energy of a body, J"))
    page.section("all bodies")
    whole = written_sum(energies, zeros_of(1))
    if tree.armature:
        rotors = tree.rotor_energy(v)
        whole = whole + written_scalar(rotors, "E^r")
        tree.named(rotors, "E^r")
    return page.define("T", whole, "", "kinetic energy, J").rows[0][0]


def joint_power_lines(tree: Tree, q: Vector, v: Vector, a: Vector) -> list[Scalar]:
    """(W_e) of the joint of every moving link, W."""
    page, bodies = _powered(tree, q, v, a)
    out: list[Scalar] = [0.0] * len(bodies)
    for x, force, moment in _through_joints(page, bodies):
        power = x.pole.T @ force + x.spin.T @ moment
        said = "power through a body's joint, of its force and moment on the body, W"
        out[x.lines.i] = page.define(f"We_{x.n}", power, "", said).rows[0][0]
    return [out[i] for i in _rows(tree)]


def power_balance_lines(tree: Tree, q: Vector, v: Vector, a: Vector) -> tuple[list[Scalar], ...]:
    """Powers of the drives, W_k and W_p of every moving link, W."""
    page, bodies = _powered(tree, q, v, a)
    drives: list[Scalar] = [0.0] * tree.nv
    for x, force, moment in _through_joints(page, bodies):
        turning, sliding = x.columns
        effort, b = turning.T @ moment + sliding.T @ force, x.lines.body
        if b.nv > 1:
            said = "efforts of a joint of several coordinates, those of the force and moment through it, N m and N"
            effort = page.define(f"tau_{x.n}^J", effort, "", said)
        for k in range(b.nv):
            rate = x.rate if b.nv == 1 else written_scalar(v[b.v + k], f"v_{b.v + k + 1}")
            power = rate @ (effort if b.nv == 1 else _entry(effort, k, 0))
            drives[b.v + k] = page.define(f"P_{b.v + k + 1}", power, "", "power of a drive, W").rows[0][0]
    rows = _rows(tree)
    return drives, [bodies[i].kinetic.rows[0][0] for i in rows], [bodies[i].potential.rows[0][0] for i in rows]


def _moving(page: Page, q: Vector, v: Vector, spin_name: str = "theta_{}_t") -> Iterator[BodyMotion]:
    """Superposed motions of all bodies and their velocities, (3)-(9), written body by body."""
    out: list[BodyMotion] = []
    for j in of_all(page, q):
        page.link(j.body, "body")
        n, base = j.n, out[j.up] if j.up >= 0 else None
        outer = base.turn if base else Worded(EYE3.rows, ("1",))
        said = "turn of the inner motion, of a body against its base, no unit"
        inner = page.define(f"F_{n}", j.turned() @ j.turn(), "(3)-(6)", said)
        said = (
            "turn of the superposed motion, the derivatives of x by the initial coordinates, with det = 1, no unit"
        )
        turn = page.define(f"R_{n}", outer @ inner, "(7)", said)
        turning, sliding = j.columns()
        rate = j.of("v", v)
        before = base.spin if base else zeros_of(3)
        said = SPUN if spin_name[0] == "t" else "angular velocity of a body, observer's axes, rad/s"
        spin = page.define(spin_name.format(n), before + turn @ turning @ rate, "", said)
        shifted = outer @ (j.offset() + j.turned() @ j.shift())
        arm = page.define(f"l_{n}", shifted, "", "from the pole of a body's base to its own, m")
        moved = (base.pole if base else zeros_of(3)) + before.cross(arm) + turn @ sliding @ rate
        pole = page.define(f"v_{n}^P", moved, "(8), (9)", "velocity of a body's pole, observer's axes, m/s")
        c, J = j.centre()
        away = page.define(f"r_{n}^PC", turn @ c, "", "from the pole to the centre of mass, observer's axes, m")
        centre = page.define(
            f"v_{n}^C", pole + spin.cross(away), "", "velocity of a centre of mass, observer's axes, m/s"
        )
        columns = (turn @ turning, turn @ sliding)
        out.append(BodyMotion(n, j, turn, spin, arm, pole, away, centre, J, rate, columns))
        yield out[-1]


def _current(page: Page, x: BodyMotion, name: str) -> Worded:
    """(29), (37) with moments as they are now."""
    return page.define(name, x.turn @ x.moments @ x.turn.T, "(29), (37)", CURRENT, True)


def _initial(page: Page, x: BodyMotion) -> Worded:
    """(31), (32): moments at q = 0."""
    start = page.given(f"R_{x.n}^o", initial_turns(page.tree)[x.lines.i], "turn of a body at q = 0")
    said = f"moments at q = 0 {ENTRIES}"
    return page.define(f"J_{x.n}^o", start @ x.moments @ start.T, "(31), (32)", said, True)


def _constant_polar(page: Page, x: BodyMotion, current: Worded) -> Worded:
    """Mode C: polar moments of q = 0, products of now."""
    return _with_polar(page, x.n, _initial(page, x), lambda i, k: _entry(current, i, k))


def _own_angle_moments(page: Page, x: BodyMotion, angles: Worded) -> Worded:
    """Modes A and B: polar moments of q = 0, (28), and every product turned by its own angle alone, (38)."""
    n, J0 = x.n, _initial(page, x)
    products: dict[tuple[int, int], Worded] = {}
    for i, k, axis in ((0, 1, 2), (1, 2, 0), (0, 2, 1)):
        first, second = (k, i) if axis == 1 else (i, k)  # of zx the first is z
        angle = _entry(angles, axis, 0)
        apart = _entry(J0, second, second) - _entry(J0, first, first)
        if is_zero(angle.rows[0][0]):
            value = -_entry(J0, i, k)
        else:
            value = HALF @ _of_twice("sin", angle) @ apart - _of_twice("cos", angle) @ _entry(J0, i, k)
        said = "product of inertia, turned by its own angle alone, kg m²"
        products[i, k] = -page.define(f"I_{n}{AXES[i]}{AXES[k]}", value, "(33), (38)", said)
    return _with_polar(page, n, J0, lambda i, k: products[i, k])


def _with_polar(page: Page, n: str, J0: Worded, product: Callable[[int, int], Worded]) -> Worded:
    """The matrix of moments with the polar ones of q = 0, which is not exact."""
    rows = [[_entry(J0, i, i) if i == k else product(min(i, k), max(i, k)) for k in range(3)] for i in range(3)]
    said = "moments with polar ones as at q = 0, not exact: J^i on the diagonal, -I_ij beside it, kg m²"
    return page.define(f"J_{n}", by_blocks(rows), "(28), (36)", said, True)


def _entry(x: Worded, i: int, k: int) -> Worded:
    """An entry by its own name."""
    value = x.rows[i][k]
    if is_zero(value) or x.words in (("0",), ("E",)):
        return Worded([[value]], ("0",) if is_zero(value) else ("1",))
    return written_scalar(
        value, component(x.words[0], len(x.rows), len(x.rows[0]), min(i, k) if k else i, max(i, k) if k else 0)
    )


def _of_twice(function: str, angle: Worded) -> Worded:
    """sin(2 x) or cos(2 x)."""
    value = {"sin": sin, "cos": cos}[function](2.0 * angle.rows[0][0])
    return Worded([[value]], (function, "(", "2", *angle.words, ")"))


def _added(page: Page, x: BodyMotion, added: list[AddedTurns], with_rates: bool) -> AddedTurns:
    """Angles of the joints that carry a body, in mode A their rates, as if all turned about standing axes."""
    j = x.lines
    before = added[j.up] if j.up >= 0 else AddedTurns(zeros_of(3), zeros_of(3))
    angles, rates = before
    if (axis := observer_axis(j.body, initial_turns(page.tree)[j.i])) is not None:
        place = max(range(3), key=lambda k: abs(axis[k]))
        along = unit_column(place) if axis[place] > 0 else -unit_column(place)
        assert j.q is not None
        angles, rates = angles + along @ j.q, rates + along @ x.rate
    said = "angles of the joints that carry a body, added up about the observer's axes, rad"
    angles = page.define(f"theta_{x.n}", angles, "", said)
    if with_rates:
        rates = page.define(
            f"theta_{x.n}_t", rates, "", "rates of these angles, taken for the angular velocity, rad/s"
        )
    return AddedTurns(angles, rates)


def _powered(tree: Tree, q: Vector, v: Vector, a: Vector) -> tuple[Page, list[BodyPowers]]:
    """Accelerations and rates of energies of all bodies."""
    page = Page(tree, "Alyushin")
    page.section("given")
    g = page.given("g", tree.gravity, "acceleration of gravity, observer's axes, m/s²")
    bodies = [*_moving(page, q, v)]
    out: list[BodyPowers] = []
    accelerated: list[tuple[Worded, Worded]] = []
    for x in bodies:
        page.link(x.lines.body, "accelerations of body")
        up = x.lines.up
        spin, (turned, moved) = (
            (bodies[up].spin, accelerated[up]) if up >= 0 else (zeros_of(3), (zeros_of(3),) * 2)
        )
        turning, sliding = x.columns
        gain = x.lines.of("a", a)
        said = "second derivatives of turns: the angular acceleration of a body, rad/s²"
        turned_now = turned + turning @ gain + spin.cross(turning @ x.rate)
        turned_now = page.define(f"theta_{x.n}_tt", turned_now, "", said)
        slides = sliding @ x.rate  # along axes that the base turns, those of a free joint that the body turns
        slip = sliding @ gain
        slip += DOUBLED @ spin.cross(slides) if x.lines.body.nv == 1 else (spin + x.spin).cross(slides)
        pole = moved + turned.cross(x.arm) + spin.cross(spin.cross(x.arm)) + slip
        pole = page.define(f"a_{x.n}^P", pole, "", "acceleration of a body's pole, observer's axes, m/s²")
        accelerated.append((turned_now, pole))
        centre = pole + turned_now.cross(x.away) + x.spin.cross(x.spin.cross(x.away))
        centre = page.define(f"a_{x.n}^C", centre, "", "acceleration of a centre of mass, observer's axes, m/s²")
        J, m = _current(page, x, f"J_{x.n}"), x.lines.mass()
        kinetic = m @ x.centre.T @ centre + x.spin.T @ J @ turned_now
        kinetic = page.define(f"Wk_{x.n}", kinetic, "", "rate of a body's kinetic energy, W")
        potential = -(m @ g.T @ x.centre)
        potential = page.define(f"Wp_{x.n}", potential, "", "rate of a body's potential energy, W")
        moment = J @ turned_now + x.spin.cross(J @ x.spin)
        out.append(BodyPowers(x, kinetic, potential, m @ (centre - g), moment))
    return page, out


def _through_joints(page: Page, bodies: list[BodyPowers]) -> Iterator[tuple[BodyMotion, Worded, Worded]]:
    """Bodies from tips to base, with the force through the joint of each, and the moment about its pole."""
    force, moment = [zeros_of(3)] * len(bodies), [zeros_of(3)] * len(bodies)
    for x in reversed(bodies):
        m, i = x.motion, x.motion.lines.i
        page.link(m.lines.body, "joint of body")
        kids = [y.motion for y in bodies if y.motion.lines.up == i]
        said = "force through the joint, that of inertia less gravity of a body and all that it carries, N"
        force[i] = page.define(f"f_{m.n}", written_sum((force[k.lines.i] for k in kids), x.force), "", said)
        total = x.moment + m.away.cross(x.force)
        for k in kids:
            total = total + moment[k.lines.i] + k.arm.cross(force[k.lines.i])
        moment[i] = page.define(f"M_{m.n}", total, "", "moment through the joint about a body's pole, N m")
        yield m, force[i], moment[i]


def _rows(tree: Tree) -> list[int]:
    """The bodies of the moving links."""
    return [tree.frames[link].body for link in moving_links(tree)]
