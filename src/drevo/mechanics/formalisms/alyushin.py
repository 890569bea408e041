"""Alyushin 2022: kinetic energy of a rigid body, superposition of motions, power balance; corrected.

With S = R S0 R^T the second moments in observer axes and J = tr(S) 1 - S (both current):

    E = m v_C^2 / 2 + w.J_C w / 2                                                        (T2)
    E = m v_P^2 / 2 + m v_P.(w x r_PC) + w.J_P w / 2       any pole P                    (T4)

The paper's own forms keep the polar moments at their initial values; they are offered as modes A, B, C and
are not exact (spec 7.3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from ...errors import InputError, NumericsError, TraceError, one_of
from ...io.given import Array, asked, finite, number
from ..algorithms.kinematics import body_poses, step_velocity
from ..joints import Motion
from ..scalar import Scalar, Vector, cos, is_zero, sin
from ..spatial import UNIT_VECS, ZERO, Mat, Sym, Vec, congruence
from ..tree import Tree, TreeBody

Numbers = Any  # anything that holds numbers
MODES = {
    "A": "rates of the superposed rotations, constant polar moments",
    "B": "true angular velocity, constant polar moments",
    "C": "true angular velocity, constant polar moments, current products",
}
ROTATION_SLACK = 1e-6  # of R^T R and det R from those of a rotation


class Energy(float):
    """Kinetic energy, J, with what it is made of; `error` is what an inexact mode is off by.

    translation + cross + rotation = the value; exact: by the corrected theorem; mode: None or A, B, C.
    """

    translation: float
    cross: float
    rotation: float
    exact: float
    mode: str | None

    @property
    def error(self) -> float:
        return float(self) - self.exact

    def __repr__(self) -> str:
        if self.mode is None:
            return f"{float(self)!r} J"
        part = f"{self.error:+.3g} J" + (f", {100 * self.error / self.exact:+.1f} %" if self.exact else "")
        return f"{float(self)!r} J (mode {self.mode} of the paper, not exact: {part} from {self.exact!r} J)"


@asked
def rigid_body_energy(
    mass: float,
    com: Numbers,
    inertia: Numbers,
    R: Numbers,
    v: Numbers,
    omega: Numbers,
    pole: Numbers = None,
    mode: str | None = None,
    angles: Numbers = None,
    rates: Numbers = None,
) -> Energy:
    """Kinetic energy of a rigid body, J: a float with .translation, .cross, .rotation, .exact, .error.

    com: centre of mass, inertia: 3x3 tensor about it, both in body axes. R: observer from body axes.
    v: velocity of the pole, omega: angular velocity, observer axes. pole: in body axes like com; None is the
    centre of mass, where the cross term m v_P.(omega x r_PC) vanishes.
    mode: None is exact; "A", "B", "C" are the paper's forms with constant polar moments, (39) and (40), with
    no cross term; `angles` (x, y, z) are those of R = Rz Ry Rx, and A takes their `rates` for omega.
    """
    known_mode(mode)
    body = _body(mass, com, inertia, R, v, omega)
    with np.errstate(over="ignore", invalid="ignore"):
        found = _energy_of(*body, pole, mode, angles, rates)
    if not (math.isfinite(found) and math.isfinite(found.exact)):
        raise NumericsError("the energy is beyond all numbers; give what is lighter, or moves less fast")
    return found


def _energy_of(
    m: float, c: Array, J0: Array, turn: Array, velocity: Array, w: Array,
    pole: Numbers, mode: str | None, angles: Numbers, rates: Numbers,
) -> Energy:  # fmt: skip
    """The energy of checked numbers: J0 about the centre, body axes; velocity of the pole and w, observer axes.

    Modes leave the cross term out.
    """
    arm = np.zeros(3) if pole is None else c - _vector("pole", pole)  # from the pole to the centre, body axes
    second = 0.5 * np.trace(J0) * np.eye(3) - J0 + m * np.outer(arm, arm)
    S0, S = (Sym.of(Mat.of(x.tolist())) for x in (second, turn @ second @ turn.T))
    spin = Vec(*w.tolist())
    translation = 0.5 * m * float(velocity @ velocity)
    cross = m * float(velocity @ np.cross(w, turn @ arm))
    rotation = quadratic_form(polar_moments(S), S, spin)
    exact = translation + cross + rotation
    if mode is None:
        return _energy(translation, cross, rotation, exact, None)
    rate = Vec(*_vector("rates", rates).tolist()) if mode == "A" else spin
    products = S if mode == "C" else own_angle_products(S0, Vec(*_vector("angles", angles).tolist()))
    return _energy(translation, 0.0, quadratic_form(polar_moments(S0), products, rate), exact, mode)


def known_mode(mode: str | None) -> None:
    """Raises InputError unless the mode is None or one of MODES."""
    if mode is not None:
        one_of("mode", mode, MODES, InputError, " (None is exact)")


def _energy(translation: float, cross: float, rotation: float, exact: float, mode: str | None) -> Energy:
    out = Energy(translation + cross + rotation)
    out.translation, out.cross, out.rotation, out.exact, out.mode = translation, cross, rotation, exact, mode
    return out


def polar_moments(S: Sym) -> Vec:
    """J^x, J^y, J^z of second moments, (29)."""
    return Vec(S.yy + S.zz, S.xx + S.zz, S.xx + S.yy)


def quadratic_form(J: Vec, S: Sym, w: Vec) -> Scalar:
    """(30): sum of J^i w_i^2 / 2 less the products I_yz w_y w_z + I_xz w_x w_z + I_xy w_x w_y."""
    x, y, z = w
    twice = J.x * (x * x) + J.y * (y * y) + J.z * (z * z)
    return 0.5 * twice - (S.yz * (y * z) + S.xz * (x * z) + S.xy * (x * y))


def own_angle_products(S: Sym, angles: Vec) -> Sym:
    """(33), (38): each product turned by its own angle only; exact for one rotation about that axis."""

    def turned(difference: Scalar, product: Scalar, angle: Scalar) -> Scalar:
        return 0.5 * sin(2.0 * angle) * difference + cos(2.0 * angle) * product

    xy = turned(S.xx - S.yy, S.xy, angles.z)
    yz = turned(S.yy - S.zz, S.yz, angles.x)
    return Sym(0.0, xy, turned(S.zz - S.xx, S.xz, angles.y), 0.0, yz, 0.0)


def _body(
    mass: float, com: Numbers, inertia: Numbers, R: Numbers, v: Numbers, omega: Numbers
) -> tuple[float, Array, Array, Array, Array, Array]:
    """The numbers of a rigid body, checked: mass, centre, inertia, rotation and velocities."""
    m = number("the mass", mass, "finite and not negative", lambda x: 0.0 <= x < math.inf)
    turn = finite("R", R, (3, 3))
    wild = np.max(np.abs(turn)) > 2.0  # 1e200 has no square
    if wild or np.max(np.abs(turn.T @ turn - np.eye(3))) > ROTATION_SLACK or np.linalg.det(turn) < 0:
        raise InputError("R is no rotation: R^T R = 1 and det R = 1 are needed")
    J = finite("inertia", inertia, (3, 3))
    if np.max(np.abs(J - J.T)) > ROTATION_SLACK * np.max(np.abs(J)):
        raise InputError("inertia is not symmetric")
    return m, _vector("com", com), J, turn, _vector("v", v), _vector("omega", omega)


def _vector(name: str, x: Numbers) -> Array:
    if x is None:
        raise InputError(f"{name} is needed here: give three numbers")
    return finite(name, x, (3,))


# -- kinetic energy of a robot -----------------------------------------------------------------------------


def kinetic_energy(tree: Tree, q: Vector, v: Vector, mode: str | None = None) -> Scalar:
    """(40) summed over the bodies: m v_C^2 / 2 and (30) with moments about observer axes through C, J.

    mode: None takes current moments S = R S0 R^T and the true angular velocity (T3): exact. A, B, C are the
    paper's constant polar moments (MODES), not exact; A and B add up the angles about each observer axis, so
    every joint must turn about one at q = 0, or TraceError names it.
    """
    known_mode(mode)
    poses, X, rates = body_poses(tree, q), tree.placements(q), tree.rates(v)
    start = initial_turns(tree)
    turned = _turned(tree, start, q, v) if mode in ("A", "B") else []
    moving: list[Motion] = []
    total: Scalar = 0.0
    for i, b in enumerate(tree.bodies):
        tree.section(i)
        m = step_velocity(X[i], moving[b.parent], rates[i]) if b.parent >= 0 else rates[i]
        moving.append(m)
        c = ZERO if is_zero(b.inertia.m) else b.inertia.h * (1.0 / b.inertia.m)
        central, v_C = b.inertia.shifted(-c).S, m.v + m.w.cross(c)
        S0, S = congruence(start[i], central), congruence(poses[i].R, central)
        for x, letter in ((c, "r^c"), (m.w, "omega"), (v_C, "v^c")):
            tree.named_vec(x, letter, i)
        tree.named_mat(poses[i].R, "R", i)
        tree.named_sym(central, "S^c", i)
        J, products, w = polar_moments(S0 if mode else S), S, poses[i].R @ m.w
        if mode in ("A", "B"):
            angles, spins = turned[i]
            products, w = own_angle_products(S0, angles), spins if mode == "A" else w
        own = 0.5 * (b.inertia.m * v_C.dot(v_C)) + quadratic_form(J, products, w)
        total = total + tree.named(own, f"E_{b.number}")
    return total + tree.rotor_energy(v)


def initial_turns(tree: Tree) -> list[Mat]:
    """World from body at q = 0."""
    out: list[Mat] = []
    for b in tree.bodies:
        out.append(out[b.parent].mul(b.R) if b.parent >= 0 else b.R)
    return out


def _turned(tree: Tree, start: Sequence[Mat], q: Vector, v: Vector) -> list[tuple[Vec, Vec]]:
    """theta_i and their rates of every body: sums along its path over the joints about each observer axis."""
    out: list[tuple[Vec, Vec]] = []
    for b, R in zip(tree.bodies, start):
        angles, rates = out[b.parent] if b.parent >= 0 else (ZERO, ZERO)
        if (u := observer_axis(b, R)) is not None:
            angles, rates = angles + u * (b.factor * q[b.q]), rates + u * (b.factor * v[b.v])
        out.append((angles, rates))
    return out


def observer_axis(b: TreeBody, R: Mat) -> Vec | None:
    """The observer's axis that a joint turns about at q = 0, R: turn of its body there; None of a slide.

    Raises TraceError where it turns about none of them.
    """
    if b.kind == "prismatic":
        return None
    if b.kind not in ("revolute", "helical"):
        _refuse(b)
    axis = R @ UNIT_VECS[b.axis]
    k = max(range(3), key=lambda i: abs(axis[i]))
    if max(abs(abs(axis[k]) - 1.0), *(abs(x) for i, x in enumerate(axis) if i != k)) > ROTATION_SLACK:
        _refuse(b)
    return UNIT_VECS[k] * math.copysign(1.0, axis[k])


def _refuse(b: TreeBody) -> NoReturn:
    raise TraceError(
        f"modes A and B add up angles about the observer's axes; joint {b.joint!r} ({b.kind}) does not turn about "
        "one of them at q = 0: mode C and the exact form (no mode) take every joint"
    )
