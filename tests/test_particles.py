"""Alyushin's superposition of motions against robots, differences and the paper's own formulas."""

import numpy as np
import pytest

import drevo
from drevo.particles import ParticleMotion, link_particles, sliding, superposed, turning

RNG = np.random.default_rng(8)
H, L1, LEAD = 0.6, 0.5, 0.1


def angles(t):
    return 0.4 * t, drevo.sin(2.0 * t), 3.0 * t * t


def screw_arm(k):
    """(41), (44), (46): of links 1, 2, 3 of the paper's robot."""
    column = turning((0, 0, 1), lambda t: angles(t)[0])
    arm = turning((0, 1, 0), lambda t: angles(t)[1], through=(0, 0, H))
    screw = turning((1, 0, 0), lambda t: angles(t)[2], through=(L1, 0, H))
    shift = sliding((1, 0, 0), lambda t: angles(t)[2] * (LEAD / (2.0 * np.pi)))
    return superposed(*([column], [arm, column], [screw, shift, arm, column])[k - 1])


def test_superposed_motions_are_those_of_the_robot() -> None:
    robot = drevo.load("screw-arm")
    alpha, t = RNG.normal(size=(7, 3)), np.linspace(0.1, 1.0, 7)
    for k, link in enumerate(robot.moving_links, 1):
        by_hand, by_robot = screw_arm(k), link_particles(robot, link, lambda t: list(angles(t)))
        for ask in ("position", "velocity", "acceleration", "gradient"):
            got, want = getattr(by_hand, ask)(alpha, t), getattr(by_robot, ask)(alpha, t)
            assert np.abs(got - want).max() < 1e-12 * max(1.0, np.abs(want).max()), (link, ask)
        F = by_hand.gradient(alpha, t)
        assert np.abs(by_hand.determinant(alpha, t) - 1.0).max() < 1e-14
        assert np.abs(np.einsum("...ji,...jk", F, F) - np.eye(3)).max() < 1e-14
        assert np.abs(F - robot.pose(np.stack(angles_of(t), -1), link)[..., :3, :3]
                      @ robot.pose(robot.neutral(), link)[:3, :3].T).max() < 1e-13  # fmt: skip


def angles_of(t):
    return 0.4 * t, np.sin(2.0 * t), 3.0 * t * t


def test_the_papers_line_46_and_47() -> None:
    alpha, beta, gamma = a = RNG.normal(size=3)
    t = 0.7
    (z, y, x), (dz, dy, dx) = angles_of(t), (0.4, 2.0 * np.cos(2.0 * t), 6.0 * t)
    u, du = LEAD * x / (2.0 * np.pi), LEAD * dx / (2.0 * np.pi)
    (sz, sy, sx), (cz, cy, cx) = np.sin([z, y, x]), np.cos([z, y, x])
    p, r = beta * sx + (gamma - H) * cx, beta * cx - (gamma - H) * sx
    a3 = (alpha + u) * cy + p * sy
    motion = screw_arm(3)
    want = [a3 * cz - r * sz, a3 * sz + r * cz, H + p * cy - (alpha + u) * sy]
    assert np.abs(motion.position(a, t) - want).max() < 1e-14
    v = (du * cy * cz - dy * (alpha + u) * sy * cz + dx * r * sy * cz + dy * p * cy * cz - dz * a3 * sz
         + dx * p * sz - dz * r * cz)  # fmt: skip
    assert abs(motion.velocity(a, t)[0] - v) < 1e-13


def test_accelerations_add_with_that_of_coriolis() -> None:
    inner, outer = turning((0, 1, 0), lambda t: drevo.sin(t), (0, 0, H)), turning((0, 0, 1), lambda t: 0.9 * t * t)
    both, a, t = outer.after(inner), RNG.normal(size=3), 0.8
    x = inner.position(a, t)
    F, w = outer.gradient(x, t), np.array([0.0, 0.0, 1.8 * t])
    carried = F @ inner.velocity(a, t)
    assert np.allclose(both.velocity(a, t), outer.velocity(x, t) + carried, rtol=0, atol=1e-13)
    plain = outer.acceleration(x, t) + F @ inner.acceleration(a, t)
    assert np.allclose(both.acceleration(a, t), plain + 2.0 * np.cross(w, carried), rtol=0, atol=1e-12)
    assert np.abs(both.acceleration(a, t) - plain).max() > 0.1
    h = 1e-5
    slope = (both.position(a, t + h) - both.position(a, t - h)) / (2 * h)
    assert np.allclose(both.velocity(a, t), slope, atol=1e-8)
    assert not np.allclose(inner.after(outer).position(a, t), both.position(a, t))


def test_it_is_written_out() -> None:
    motion = screw_arm(3)
    space = {"sin": np.sin, "cos": np.cos, "alpha": 0.3, "beta": -0.2, "gamma": 0.9, "t": 0.6}
    for line in motion.text():
        exec(line, space)
    assert np.abs(motion.position((0.3, -0.2, 0.9), 0.6) - [space[x] for x in "xyz"]).max() < 1e-14


def test_what_deforms_has_another_volume() -> None:
    stretched = ParticleMotion(lambda a, t: [(1.0 + t) * a[0], a[1] + 0.5 * a[0], a[2]])
    assert np.allclose(stretched.determinant(np.zeros((2, 3)), [0.0, 0.5]), [1.0, 1.5])
    assert stretched.position(np.zeros(3), 0.1).shape == (3,)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: turning((0, 0, 0), lambda t: t), "direction"),
        (lambda: turning((0, 0, 1), 3.0), "angle"),
        (lambda: superposed(), "innermost"),
        (lambda: superposed(lambda a, t: a), "innermost"),
        (lambda: ParticleMotion(lambda a, t: a[:2]).position(np.zeros(3), 0.0), "gives"),
        (lambda: sliding((1, 0, 0), lambda t: 1.0 / t).position(np.zeros(3), 0.0), "finite"),
        (lambda: sliding((1, 0, 0), lambda t: t).position(np.zeros(2), 0.0), "alpha"),
    ],
)
def test_what_cannot_be_is_said(call, sentence) -> None:
    with pytest.raises(drevo.DrevoError, match=sentence), np.errstate(all="ignore"):
        call()
