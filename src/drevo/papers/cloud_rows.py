"""Alyushin's numbered formulas for a body of particles: sums over them against the paper's moments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ..io.given import Array
from ..mechanics.formalisms.alyushin import rigid_body_energy
from ..mechanics.scalar import sin
from ..particles import ParticleMotion, link_particles, sliding, superposed, turning
from .rows import CheckedFormula, agreeing, example, misprint, relative_error

PARTICLES = 40
OBSERVER_AXES = np.eye(3)


class Cloud(NamedTuple):
    """Particles at one time: masses (n,), places from the pole and velocities (n, 3), rates of turns."""

    m: Array
    r: Array
    v: Array
    w: Array
    v_pole: Array

    @property
    def energy(self) -> float:
        """(10), J."""
        return float(0.5 * self.m @ np.sum(self.v**2, -1))

    @property
    def S(self) -> Array:
        """(22), (27): axial moments on the diagonal, centrifugal ones beside it."""
        return np.asarray(np.einsum("n,ni,nj", self.m, self.r, self.r))

    @property
    def J(self) -> Array:
        """(29): polar moments."""
        return np.asarray(np.trace(self.S) - np.diag(self.S))

    @property
    def by_moments(self) -> float:
        """(30), J."""
        (x, y, z), S = self.w, self.S
        polar = 0.5 * (z * z * self.J[2] + y * y * self.J[1] + x * x * self.J[0])
        return float(polar - y * z * S[1, 2] - x * z * S[0, 2] - y * x * S[0, 1])

    @property
    def centre(self) -> Array:
        """(12): the centre of mass, from the pole."""
        return np.asarray(self.m @ self.r / self.m.sum())

    def about_centre(self) -> Cloud:
        """The particles with their centre of mass as the pole."""
        return self._replace(r=self.r - self.centre, v_pole=self.m @ self.v / self.m.sum())


def cloud(w: Array, v_pole: Array, seed: int = 5) -> Cloud:
    """A body that turns with the rates w about a pole that moves."""
    rng = np.random.default_rng(seed)
    m, r = rng.uniform(0.1, 1.0, PARTICLES), rng.normal((0.2, -0.1, 0.3), size=(PARTICLES, 3))
    return Cloud(m, r, v_pole + np.cross(w, r), w, v_pole)


def energies_numbered() -> Iterator[CheckedFormula]:
    """(1)-(43), those that have no row of their own elsewhere."""
    yield from _in_the_plane()
    yield from _about_three_axes()
    yield from _few_axes()
    yield from _motions()


def _in_the_plane() -> Iterator[CheckedFormula]:
    """(1), (2), (11)-(17): one turn."""
    call = "rigid_body_energy(mass, com, inertia, R, v, omega, pole=)"
    b = cloud(2.0 * OBSERVER_AXES[2], np.array([0.3, -0.5, 0.0]))
    mass, (x, y, _), (vx, vy, _) = b.m.sum(), b.centre, b.v_pole
    tensor = np.trace(b.about_centre().S) * np.eye(3) - b.about_centre().S
    J_z = b.m @ (b.r[:, 0] ** 2 + b.r[:, 1] ** 2)
    by_15 = 0.5 * mass * (vx**2 + vy**2) + 0.5 * 4.0 * J_z - 2.0 * mass * (vx * y - vy * x)
    given = rigid_body_energy(mass, b.centre, tensor, np.eye(3), b.v_pole, b.w, pole=np.zeros(3))
    c = b.about_centre()
    by_16 = 0.5 * mass * c.v_pole @ c.v_pole + 0.5 * 4.0 * c.J[2]
    w = np.array([1.0, 2.0, -0.5])
    any_turn = cloud(w, np.array([0.3, -0.5, 0.7])).about_centre()
    about_axis = np.sum(any_turn.m * np.sum(np.cross(w / np.linalg.norm(w), any_turn.r) ** 2, -1))
    by_1 = 0.5 * mass * any_turn.v_pole @ any_turn.v_pole + 0.5 * about_axis * (w @ w)
    raised = cloud(2.0 * OBSERVER_AXES[2], np.array([0.3, -0.5, 0.7])).about_centre()
    by_17 = 0.5 * mass * raised.v_pole @ raised.v_pole + 0.5 * 4.0 * raised.J[2]
    for formula, says, got, want in (
        ("(1)", "Koenig's theorem, moment about the instantaneous axis", by_1, any_turn.energy),
        ("(11), (13)-(15)", "a turn about z and any pole", [by_15, given], [b.energy, b.energy]),
        ("(12)", "centre of mass: where the sum of m r about it is 0", b.m @ (b.r - b.centre) + 1.0, np.ones(3)),
        ("(16)", "a turn about z, pole at the centre of mass", by_16, b.energy),
        ("(17)", "a turn about an axis and any translation", by_17, raised.energy),
    ):
        yield agreeing(formula, call, "sum over particles", relative_error(got, want), says=says)
    place = 0.7 * np.array([np.cos(0.4), np.sin(0.4), 0.0])
    later = turning((0, 0, 1), lambda t: 3.0 * t).position(place, 0.2)
    want = 0.7 * np.array([np.cos(1.0), np.sin(1.0), 0.0])
    yield agreeing(
        "(2)",
        "particles.turning(axis, angle)",
        "L cos, L sin of the angle",
        relative_error(later, want),
        says="place of a particle on its line",
    )


def _about_three_axes() -> Iterator[CheckedFormula]:
    """(18)-(32), (36): a body that turns about a pole at rest."""
    call, against = "rigid_body_energy(mass, com, inertia, R, v, omega, pole=)", "sum over particles"
    b = cloud(np.array([1.0, 2.0, -0.5]), np.zeros(3))
    (x, y, z), S = b.w, b.S
    E = [0.5 * b.m @ b.v[:, k] ** 2 for k in range(3)]
    turns = [np.cross(b.w[k] * OBSERVER_AXES[k], b.r) for k in range(3)]
    parts = [0.5 * b.m @ sum(t[:, k] for t in turns) ** 2 for k in range(3)]
    two = [0.5 * b.m @ sum(t[:, k] for i, t in enumerate(turns) if i != k) ** 2 for k in range(3)]
    E_x = 0.5 * z * z * S[1, 1] + 0.5 * y * y * S[2, 2] - y * z * S[1, 2]
    E_y = 0.5 * z * z * S[0, 0] + 0.5 * x * x * S[2, 2] - x * z * S[0, 2]
    E_z = 0.5 * x * x * S[1, 1] + 0.5 * y * y * S[0, 0] - y * x * S[0, 1]
    tensor = np.trace(b.about_centre().S) * np.eye(3) - b.about_centre().S
    by_call = rigid_body_energy(b.m.sum(), b.centre, tensor, np.eye(3), b.v_pole, b.w, pole=np.zeros(3))
    c = b.about_centre()
    moving = 0.5 * b.m.sum() * c.v_pole @ c.v_pole
    polar = [b.m @ np.sum(np.delete(b.r, k, 1) ** 2, -1) for k in range(3)]
    axial = [[b.m @ b.r[:, i] ** 2 for i in range(3)], [b.m @ (b.r[:, i] * b.r[:, i - 1]) for i in range(3)]]
    for formula, says, got, want in (
        ("(18)", "components of three turns, theta_i,t those of omega", parts, E),
        ("(19)", "a turn about an axis moves nothing along it", two, E),
        ("(20), (21), (23)", "components along x, by moments", E_x, E[0]),
        ("(24)", "components along y, by moments", E_y, E[1]),
        ("(25)", "components along z, by moments", E_z, E[2]),
        ("(26)", "their sum, by axial moments", E_x + E_y + E_z, b.energy),
        ("(22), (27)", "axial and centrifugal moments", axial, [np.diag(S), [S[i, i - 1] for i in range(3)]]),
        ("(29)", "polar moments, sums of two axial ones", b.J, polar),
        ("(30)", "energy about a pole at rest, current moments", [b.by_moments, by_call], [b.energy, b.energy]),
        ("(36)", "energy about the centre of mass, current moments", c.by_moments, b.energy - moving),
        ("(40)", "translation and turns", moving + c.by_moments, b.energy),
    ):  # fmt: skip
        yield agreeing(formula, call, against, relative_error(got, want), says=says)


def _few_axes() -> Iterator[CheckedFormula]:
    """(31)-(35), (38): turns about one axis and two, from the moments at the start."""
    call = "write_out(robot, 'kinetic_energy', formalism='alyushin', mode='A', sequence='paper')"
    b = cloud(np.zeros(3), np.zeros(3))
    S0 = b.S
    for name, k in (("xy", 2), ("yz", 0), ("zx", 1)):
        i, j = (k + 1) % 3, (k + 2) % 3
        turn = turning(OBSERVER_AXES[k], lambda t: 0.6)
        r = turn.position(b.r, 0.0)
        by_33 = 0.5 * np.sin(1.2) * (S0[i, i] - S0[j, j]) + np.cos(1.2) * S0[i, j]
        error = relative_error(by_33, b.m @ (r[:, i] * r[:, j]))
        yield agreeing(
            "(31)-(33), (38)", call, "sum over particles", error, says=f"I_{name} after a turn about one axis"
        )
    turned = b._replace(r=turning(OBSERVER_AXES[2], lambda t: 0.6).position(b.r, 0.0))
    error = relative_error(turned.J[2], b.J[2])
    yield agreeing("(28)", call, "sum over particles", error, says="J^z is constant, of a turn about z alone")
    one = b._replace(w=2.0 * OBSERVER_AXES[2], v=np.cross(2.0 * OBSERVER_AXES[2], b.r))
    error = relative_error(0.5 * 4.0 * one.J[2], one.energy)
    yield agreeing("(35)", call, "sum over particles", error, says="energy of a turn about one axis")
    yield from _two_axes(b, call)


def _two_axes(b: Cloud, call: str) -> Iterator[CheckedFormula]:
    """(34): a turn about y, carried by one about z."""
    y, z, t, S0 = 2.0, 3.0, 0.5, b.S
    place = superposed(turning((0, 1, 0), lambda t: y * t), turning((0, 0, 1), lambda t: z * t))
    w = z * OBSERVER_AXES[2] + y * np.array([-np.sin(z * t), np.cos(z * t), 0.0])
    now = b._replace(r=place.position(b.r, t), v=place.velocity(b.r, t), w=w)
    against, error = "sum over particles", relative_error(now.by_moments, now.energy)
    yield agreeing("(34)", call, against, error, says="two axes, with current moments and omega")
    printed = 0.5 * z * z * b.J[2] + 0.5 * y * y * b.J[1] - y * z * S0[1, 2]
    error, said = abs(printed / now.energy - 1.0), "I_yz and polar moments of two axes said to be constant"
    yield misprint("(34)", call, against, error, says=said)
    alone = 0.5 * np.sin(2 * y * t) * (S0[2, 2] - S0[0, 0]) + np.cos(2 * y * t) * S0[0, 2]
    error = abs(alone - now.S[0, 2]) / np.abs(now.S).max()
    yield misprint("(33), (38)", call, against, error, says="I_zx by its own angle alone after two turns")


def _motions() -> Iterator[CheckedFormula]:
    """(41)-(43): the motions that the screw arm superposes, and links 1 and 2 of it."""
    robot, t = example("screw-arm"), 0.4
    path: list[Callable[[Any], Any]] = [lambda t: 0.4 * t, lambda t: sin(2.0 * t), lambda t: 3.0 * t * t]
    lead, H, L1 = 0.1, 0.6, 0.5
    alpha = np.random.default_rng(6).normal(size=(PARTICLES, 3))
    column, arm = turning((0, 0, 1), path[0]), turning((0, 1, 0), path[1], (0, 0, H))
    screw = superposed(
        turning((1, 0, 0), path[2], (L1, 0, H)), sliding((1, 0, 0), lambda t: path[2](t) * (lead / (2.0 * np.pi)))
    )
    (a, b, g), (x, y, z) = alpha.T, (path[0](t), float(path[1](t)), path[2](t))
    first = [a * np.cos(x) - b * np.sin(x), a * np.sin(x) + b * np.cos(x), g]
    second = [a * np.cos(y) + (g - H) * np.sin(y), b, H + (g - H) * np.cos(y) - a * np.sin(y)]
    third = [
        a + lead * z / (2 * np.pi),
        b * np.cos(z) - (g - H) * np.sin(z),
        H + b * np.sin(z) + (g - H) * np.cos(z),
    ]
    moves: tuple[tuple[str, ParticleMotion, Any, str], ...] = (
        ("(41)", column, first, "link 1"),
        ("(42)", arm, second, "link 2 against link 1"),
        ("(43)", screw, third, "link 3 against link 2"),
    )
    for formula, motion, want, says in moves:
        error = relative_error(motion.position(alpha, t), np.stack(want, -1))
        yield agreeing(
            formula,
            "particles.turning, particles.sliding",
            "the formula in print",
            error,
            says=f"motion of {says}",
        )
    for link, motion in (("link1", column), ("link2", superposed(arm, column))):
        of_robot: Array = link_particles(robot, link, lambda t: [f(t) for f in path]).position(alpha, t)
        error = relative_error(motion.position(alpha, t), of_robot)
        yield agreeing(
            "(41), (44)",
            "particles.superposed(...).position(alpha, t)",
            "the robot's link",
            error,
            says=f"particles of {link}",
        )
