"""Steps under the exact law with more places of contact than are coupled in straight lines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from contact_cases import as_ours

import drevo
from drevo.contact.laws.exact import many

SCENE = """<mujoco><option timestep="0.005"/><worldbody><geom type="plane" size="9 9 1"/>{}</worldbody></mujoco>"""
BOX = '<body pos="{} 0 {}"><freejoint/><geom type="box" size=".1 .08 .05" mass="2"/></body>'
RESIDUAL = 1e-9  # m/s, up to which a step has converged


def kinetic(r: drevo.Robot, q: Any, v: Any) -> Any:
    return np.array([r.kinetic_energy(a, b) for a, b in zip(q, v)])


def energy(r: drevo.Robot, q: Any, v: Any) -> Any:
    return kinetic(r, q, v) + [r.potential_energy(a) for a in q]


def test_ten_boxes_stand_on_each_other() -> None:
    r = drevo.load(SCENE.format("".join(BOX.format(0.01 * (k % 2), 0.05 + 0.1 * k) for k in range(10))))
    step = drevo.compile(r, "step", dt=0.005, ground=None, law="coulomb", repeat=100)
    start, rest = np.array(r.model.initial), np.zeros(r.nv)
    found = step(start, rest, rest)
    assert found.residual <= RESIDUAL
    assert np.abs(found.q1 - start).max() < 20 * RESIDUAL * 0.5  # a box moves by what all below it may, and turns
    assert abs(found.forces[:, 2].sum() - 2.0 * 9.81 * sum(range(11))) < 1e-5  # what is above each


@pytest.mark.parametrize("restitution", [0.0, 0.5])
def test_velocities_are_those_of_few_places(monkeypatch: pytest.MonkeyPatch, restitution: float) -> None:
    """A box that falls, tips and slides, or bounces; both forms end at residuals up to 1e-9."""
    import mujoco

    text = SCENE.format(BOX.format(0, 0.3))
    m, r = mujoco.MjModel.from_xml_string(text), drevo.load(text)
    how: dict[str, Any] = {"dt": 0.005, "ground": None, "law": "coulomb", "restitution": restitution}
    few = drevo.compile(r, "step", touching=["body"], **how)
    monkeypatch.setattr(many, "MOST_PLACES", 0)
    loops = drevo.compile(r, "step", **how)
    rng, d, states = np.random.default_rng(3), mujoco.MjData(m), []
    for _ in range(4):
        mujoco.mj_resetData(m, d)
        d.qvel[:] = rng.normal(size=6) * [1, 1, 0.5, 4, 4, 4]
        for k in range(160):
            mujoco.mj_step(m, d)
            if k % 8 == 0:
                states.append(as_ours(m, d.qpos.copy(), d.qvel.copy(), np.zeros(6)))
    given = [np.array(x) for x in zip(*states)]
    ours, theirs = loops(*given), few(*given)
    both = (ours.residual <= RESIDUAL) & (theirs.residual <= RESIDUAL)
    assert not np.array_equal(ours.v1, theirs.v1)
    assert both.mean() > 0.9 and (np.abs(theirs.forces).max(axis=(1, 2)) > 1.0).mean() > 0.3
    apart = np.abs(ours.v1 - theirs.v1)[both].max(axis=1)
    assert np.median(apart) < 1e-9 and np.mean(apart > 1e-6) < 0.08  # there may be several solutions


def test_a_pile_bounces_and_comes_to_rest() -> None:
    """Four boxes on each other are dropped 0.2 m: by Newton's law of impact all rise half as fast as they came."""
    h, g = 1e-3, 9.81
    r = drevo.load(SCENE.format("".join(BOX.format(0, 0.25 + 0.1 * k) for k in range(4))))
    table = r.simulate(r.model.initial, duration=2.0, ground=None, law="coulomb", dt=h, restitution=0.5)
    assert table.residual.max() <= RESIDUAL
    rises, down = table.v[:, 2::6].max(axis=0), -table.v[:, 2].min()
    assert np.abs(rises - 0.5 * down).max() < 1e-6 and abs(down - np.sqrt(2 * g * 0.2)) < 2 * g * h
    assert (
        np.diff(energy(r, table.q, table.v)).max() < 8.0 * (g * h) ** 2
    )  # of a free step, which falls by g h^2 / 2
    heights = table.q[-1, 2::7]
    assert (
        table.q[:, 2].min() > 0.05 - 1e-7
        and np.abs(table.v[-1]).max() < 1e-6
        and np.abs(heights - 0.1 * np.arange(4) - 0.05).max() < 1e-7
    )


def test_piles_take_masses_and_sizes_by_sample() -> None:
    """Steps are those of a robot that has them."""

    def pile(mass: float, wide: float) -> drevo.Robot:
        return drevo.load(SCENE.format("".join(
            f'<body name="b{k}" pos="0 0 {0.05 + 0.1 * k}"><freejoint/>'
            f'<inertial pos="0 0 0" mass="{mass if k == 1 else 2}" diaginertia=".02 .02 .02"/>'
            f'<geom name="g{k}" type="box" size="{wide if k == 1 else 0.1} .08 .05"/></body>'
            for k in range(3))))  # fmt: skip

    how: dict[str, Any] = {"dt": 0.005, "ground": None, "law": "coulomb"}
    r, rng = pile(2.0, 0.1), np.random.default_rng(0)
    step = drevo.compile(r, "step", parameters=["b1.mass", "size.g1"], **how)
    q = r.integrate(np.tile(np.array(r.model.initial), (16, 1)), rng.normal(size=(16, r.nv)) * 1e-3)
    given = q, rng.normal(size=(16, r.nv)) * 0.2, np.zeros((16, r.nv))
    found = step(*given, parameters=np.tile([3.0, 0.13, 0.08, 0.05], (16, 1)))
    there = drevo.compile(pile(3.0, 0.13), "step", **how)(*given)
    assert found.residual.max() <= RESIDUAL and np.abs(found.forces).max() > 1.0
    assert np.abs(found.v1 - there.v1).max() < 1e-12 and np.abs(found.q1 - there.q1).max() < 1e-12


def test_a_pile_loses_energy() -> None:
    geoms = ('type="box" size=".1 .08 .05"', 'type="capsule" size=".06 .08"', 'type="sphere" size=".08"')
    bodies = "".join(
        f'<body pos="{0.03 * k} 0 {0.2 + 0.3 * k}"><freejoint/><geom {geoms[k % 3]} friction="0.5"/></body>'
        for k in range(5)
    )
    r = drevo.load(SCENE.format(bodies))
    untouched = drevo.load(SCENE.format(bodies.replace("<geom", '<geom contype="0" conaffinity="0"')))
    step, free = (drevo.compile(x, "step", dt=0.002, ground=None, law="coulomb") for x in (r, untouched))
    rng = np.random.default_rng(0)
    q, v, tau = np.tile(np.array(r.model.initial), (8, 1)), rng.normal(size=(8, r.nv)) * 0.5, np.zeros((8, r.nv))
    start = energy(r, q, v)
    left = []
    for k in range(500):
        found = step(q, v, tau)
        if k == 150:
            alone = step(q[5], v[5], tau[5])
            assert all(np.array_equal(x, y[5]) for x, y in zip(alone, found))
        if k % 10 == 0:  # impulses take kinetic energy, (v1 - v0) M (v1 + v0) / 2 <= 0 at the q of the step
            assert (kinetic(r, q, found.v1) <= kinetic(r, q, free(q, v, tau).v1) * (1.0 + 1e-9)).all()
        q, v = found.q1, found.v1
        left.append(found.residual)
    assert (energy(r, q, v) < 0.7 * start).all()
    assert (np.array(left) <= RESIDUAL).mean() > 0.98 and np.max(left) < 1e-4


LEG = """<mujoco><default><geom friction="{mu}" conaffinity="0"/></default>
  <worldbody><geom type="plane" size="9 9 1" conaffinity="1"/><body pos="0 0 .65">
  <joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/><joint axis="0 1 0"/>
  <geom type="sphere" size=".06" mass="3"/>
  <body><joint name="hip" axis="0 1 0" range="-40 40" frictionloss=".5"/>
  <geom type="capsule" fromto="0 0 -.06 .1 0 -.3" size=".03"/>
  <body pos=".1 0 -.3"><joint name="knee" axis="0 1 0" range="-60 5" damping=".1"/>
  <geom type="capsule" fromto="0 0 0 -.1 0 -.25" size=".03"/>
  <body pos="-.1 0 -.25"><joint name="ankle" axis="0 1 0" range="-30 30" frictionloss=".1"/>
  <geom type="capsule" fromto="-.05 0 0 .1 0 0" size=".04"/></body></body></body></body></worldbody></mujoco>"""


@pytest.mark.parametrize("mu", [0.0, 0.5])
def test_limits_and_dry_friction_of_joints_are_those_of_few_places(
    mu: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without friction velocities are unique, to the root of a residual of 1e-9 times impulses that are not, where
    nothing comes from beyond what loops see. With friction each form may take another solution."""
    r = drevo.load(LEG.format(mu=mu))
    everything = [geom.link for geom in r.model.geoms if geom.link != r.model.root]
    few = drevo.compile(r, "step", dt=0.004, ground=None, law="coulomb", touching=everything)
    monkeypatch.setattr(many, "MOST_LIMITED_ROWS", 0)
    loops = drevo.compile(r, "step", dt=0.004, ground=None, law="coulomb")
    rng, count = np.random.default_rng(5), 16
    q, v = np.zeros((count, r.nq)), rng.normal(size=(count, r.nv))
    held, apart, differ = np.zeros(4), list[float](), False
    for _ in range(150):
        tau = rng.normal(size=v.shape) * [0, 0, 0, 6, 6, 2]
        ours, theirs = loops(q, v, tau), few(q, v, tau)
        both = (ours.residual <= RESIDUAL) & (theirs.residual <= RESIDUAL)
        apart += np.abs(ours.v1 - theirs.v1)[both].max(axis=1).tolist()
        differ |= not np.array_equal(ours.v1, theirs.v1)
        q, v = theirs.q1, theirs.v1
        at = np.degrees(q[:, 3:])
        held[:3] += [
            (np.abs(at[:, 0]) > 39.99).mean(),
            (at[:, 1] > 4.99).mean(),
            (np.abs(at[:, 2]) > 29.99).mean(),
        ]
        held[3] += (np.abs(v[:, 3]) < 1e-9).mean()
    assert differ and len(apart) > 0.95 * 150 * count
    far = np.array(apart)
    assert np.median(far) < 1e-9 and np.mean(far > 1e-5) < (0.04 if mu else 1e-3)
    assert (held > 1.0).all()  # every limit holds something, and dry friction the hip


BALL = """<mujoco><default><geom friction="{mu}" conaffinity="0"/></default>
  <worldbody><geom type="plane" size="9 9 1" conaffinity="1"/><body pos="0 0 .4">
  <joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/><geom type="sphere" size=".05" mass="1"/>
  <body><joint type="ball" range="0 40" limited="true" frictionloss=".1"/>
  <geom type="capsule" fromto=".05 0 -.1 .2 0 -.3" size=".03"/></body></body></worldbody></mujoco>"""


@pytest.mark.parametrize("mu", [0.0, 0.5])
def test_limits_of_balls_are_those_of_few_places(mu: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """No two places are at one point: how they would share a force is any, and with it the friction."""
    r = drevo.load(BALL.format(mu=mu))
    everything = [geom.link for geom in r.model.geoms if geom.link != r.model.root]
    few = drevo.compile(r, "step", dt=0.004, ground=None, law="coulomb", touching=everything)
    monkeypatch.setattr(many, "MOST_LIMITED_ROWS", 0)
    loops = drevo.compile(r, "step", dt=0.004, ground=None, law="coulomb")
    rng, count, held = np.random.default_rng(5), 16, 0
    q, v = np.tile(r.neutral(), (count, 1)), rng.normal(size=(count, r.nv))
    for _ in range(150):
        tau = rng.normal(size=v.shape) * [0, 0, 2, 2, 0.3]
        ours, theirs = loops(q, v, tau), few(q, v, tau)
        assert max(ours.residual.max(), theirs.residual.max()) <= RESIDUAL
        assert np.abs(ours.v1 - theirs.v1).max() < 1e-5 and not np.array_equal(ours.v1, theirs.v1)
        q, v = theirs.q1, theirs.v1
        angle = 2.0 * np.degrees(np.arctan2(np.linalg.norm(q[:, 2:5], axis=1), np.abs(q[:, 5])))
        held += ((angle > 39.9) & (np.abs(theirs.forces).max(axis=(1, 2)) > 0.0)).sum()
    assert held > 500  # states at the limit, and on the ground


def test_feet_whose_points_cannot_all_stick_settle(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plate on four points, deep by chance: the laws of Signorini and Coulomb hold, by Newton and Euler.

    Velocities of the four have three freedoms too few; multipliers alone leave one of 200 of such states above.
    """
    corners = np.array([(x, y, 0.0) for x in (-0.2, 0.2) for y in (-0.1, 0.1)])
    balls = "".join(f'<geom type="sphere" size=".02" pos="{x} {y} 0"/>' for x, y, _ in corners)
    r = drevo.load(SCENE.format(f'<body pos="0 0 .02"><freejoint/>{balls}</body>'))
    monkeypatch.setattr(many, "MOST_PLACES", 0)
    h, n, rng = 0.002, 400, np.random.default_rng(1)
    step = drevo.compile(r, "step", dt=h, ground=None, law="coulomb")
    turned = 0.5 * rng.normal(size=(n, 3)) * [1e-3, 1e-3, 1]
    q = np.hstack([np.zeros((n, 2)), 0.02 - rng.uniform(0, 1e-3, (n, 1)), turned, np.ones((n, 1))])
    q[:, 3:] /= np.linalg.norm(q[:, 3:], axis=1, keepdims=True)
    v = rng.normal(size=(n, 6)) * rng.choice([1e-3, 1e-2, 0.3], size=(n, 1))
    found = step(q, v, np.zeros((n, 6)))
    assert found.residual.max() <= RESIDUAL
    for k in range(0, n, 4):  # a state's step is the same alone, and beside states that take longer
        alone = step(q[k], v[k], np.zeros(6))
        assert all(np.array_equal(x, y[k]) for x, y in zip(alone, found))
    mu, kinds = 1.0, np.zeros(2)
    for q0, q1, v0, v1, forces in zip(q, found.q1, v, found.v1, found.forces):
        R, R1 = (r.poses(x)[0, :3, :3] for x in (q0, q1))
        w = np.concatenate([R1 @ v1[:3], R @ v1[3:]])  # along the world's axes
        arms = corners @ R.T - [0.0, 0.0, 0.02]
        gaps = q0[2] + arms[:, 2]
        arms[:, 2] -= 0.5 * gaps  # halfway between the ball and the plane
        u = w[:3] + np.cross(w[3:], arms)
        left = u[:, 2] + np.maximum(gaps, 0.0) / h  # a gap may close in a step
        touching = np.linalg.norm(forces, axis=1) > 0.0
        assert (left > -1e-8).all() and (forces[:, 2] >= 0.0).all()
        slip, tangent = np.linalg.norm(u[:, :2], axis=1), np.linalg.norm(forces[:, :2], axis=1)
        assert (tangent <= mu * forces[:, 2] * (1.0 + 1e-9) + 1e-9).all()
        assert (np.minimum(forces[:, 2], left) < 1e-6).all()
        loss = (forces[:, :2] * u[:, :2]).sum(1) + mu * forces[:, 2] * slip  # 0: friction opposes all of a slip
        assert (np.abs(loss) < 1e-6 * (1.0 + forces[:, 2])).all()
        pushed = np.concatenate([forces.sum(0), np.cross(arms, forces).sum(0)])
        M0 = np.asarray(r.mass_matrix(q0))
        was = np.concatenate([R @ v0[:3], R @ v0[3:]])
        turn = np.kron(np.eye(2), R)
        change = turn @ M0 @ turn.T @ (w - was) / h + [0, 0, 9.81 * M0[0, 0], 0, 0, 0] - pushed
        spin = np.cross(was[3:], (turn @ M0 @ turn.T)[3:, 3:] @ was[3:])
        change[3:] += spin
        assert np.abs(change).max() < 1e-6 * (1.0 + np.abs(forces).max())
        kinds += [(slip[touching] > 1e-3).any(), (slip[touching] < 1e-7).any()]
    assert (kinds > n / 8).all()  # states with what slips, and with what sticks


VEE = """<mujoco><worldbody><geom type="plane" size="9 9 1" zaxis=".94 0 .342" friction="1"/>
  <geom type="plane" size="9 9 1" zaxis="-.94 0 .342" friction="1"/>
  <body>{}<geom type="sphere" size=".1" mass="1"/></body></worldbody></mujoco>"""
SLIDES = """<joint type="slide" axis="1 0 0" frictionloss="2"/><joint type="slide" axis="0 1 0"/>
  <joint type="slide" axis="0 0 1" frictionloss="30" range="-1 .3" limited="true"/>"""


@pytest.mark.parametrize("joints", ["<freejoint/>", SLIDES])
def test_what_friction_jams_parts_without_it(joints: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ball deep in a groove: with friction 1 > tan 20 no forces of Coulomb's law part it from both sides.

    Velocities that are kept part nothing; beside them impulses along normals alone do, against no dry friction.
    """
    r = drevo.load(VEE.format(joints))
    monkeypatch.setattr(many, "MOST_PLACES", 0)
    monkeypatch.setattr(many, "MOST_LIMITED_ROWS", 0)
    h, n, rng = 0.002, 64, np.random.default_rng(0)
    step = drevo.compile(r, "step", dt=h, ground=None, law="coulomb")
    normals = np.array([(x, 0.0, 0.342) for x in (0.94, -0.94)])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    q, v = np.tile(np.array(r.neutral()), (n, 1)), 0.1 * rng.normal(size=(n, r.nv))
    q[:, 0], q[:, 2] = rng.uniform(-4e-4, 4e-4, n), (0.1 - rng.uniform(5e-4, 3e-3, n)) / normals[0, 2]
    found = step(q, v, np.zeros(v.shape))
    assert found.residual.max() <= RESIDUAL
    moved = (found.q1 - q)[:, :3] / h
    kept = np.array([r.poses(a)[0, :3, :3] @ b[:3] if r.nq > 3 else b for a, b in zip(found.q1, found.v1)])
    wanted = np.clip(0.2 / h * (0.1 - 1e-4 - q[:, :3] @ normals.T), 0.0, 1.0)
    left = moved @ normals.T - wanted
    pushed = (moved - kept) @ np.linalg.pinv(normals)
    near = 1e-8  # m/s: residuals, twice over the sine of the groove
    assert (left > -near).all() and (kept @ normals.T > -near).all()
    assert (pushed > -near).all() and (pushed * left < near).all()
    assert np.abs(moved - kept - pushed @ normals).max() < near  # along normals alone
    assert (pushed.min(axis=1) > 1e-2).mean() > 0.5
    for k in range(0, n, 8):
        assert all(np.array_equal(x, y[k]) for x, y in zip(step(q[k], v[k], np.zeros(r.nv)), found))


@pytest.mark.parametrize("most", [0, 1000])
def test_dry_friction_of_free_joints_is_along_axes_of_the_world(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In loops and in straight lines: of a ball far from all, each velocity falls by h b / m, or to none."""
    ball = '<joint type="free" frictionloss="1"/><geom type="sphere" size=".1" mass="2"/>'
    r = drevo.load(SCENE.format(f'<body pos="0 0 9">{ball}</body>').replace("<option", '<option gravity="0 0 0"'))
    monkeypatch.setattr(many, "MOST_LIMITED_ROWS", most)
    h, n, rng = 0.005, 64, np.random.default_rng(0)
    q, v = np.zeros((n, 7)), rng.normal(size=(n, 6)) * rng.choice([1e-3, 1.0], size=(n, 1))
    q[:, 3:] = rng.normal(size=(n, 4))
    q[:, 3:] /= np.linalg.norm(q[:, 3:], axis=1, keepdims=True)
    q[:, 2] = 9.0
    found = drevo.compile(r, "step", dt=h, ground=None, law="coulomb")(q, v, np.zeros((n, 6)))
    assert found.residual.max() <= RESIDUAL
    for a, b, c, d in zip(q, v, found.q1, found.v1):
        R, R1 = (r.poses(x)[0, :3, :3] for x in (a, c))
        was = R @ b[:3]
        assert np.abs(R1 @ d[:3] - np.sign(was) * np.maximum(np.abs(was) - h / 2.0, 0.0)).max() < 2 * RESIDUAL
        turn = h / np.diag(r.mass_matrix(a))[3:]
        assert np.abs(d[3:] - np.sign(b[3:]) * np.maximum(np.abs(b[3:]) - turn, 0.0)).max() < 2 * RESIDUAL


def test_a_box_with_dry_friction_falls_as_with_few_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a slippery floor, where velocities are unique, to the root of residuals times impulses."""
    free = BOX.format(0, 0.06).replace("<freejoint/>", '<joint type="free" frictionloss="1.5"/>')
    r = drevo.load(SCENE.format(free.replace("<geom", '<geom friction="0" priority="1"')))
    few = drevo.compile(r, "step", dt=0.005, ground=None, law="coulomb", touching=["body"])
    monkeypatch.setattr(many, "MOST_LIMITED_ROWS", 0)
    loops = drevo.compile(r, "step", dt=0.005, ground=None, law="coulomb")
    rng, count, apart = np.random.default_rng(0), 16, list[float]()
    q, v = np.tile(np.array(r.model.initial), (count, 1)), rng.normal(size=(count, 6)) * [1, 1, 0.3, 1, 1, 3]
    for _ in range(60):
        ours, theirs = loops(q, v, 0.0 * v), few(q, v, 0.0 * v)
        both = (ours.residual <= RESIDUAL) & (theirs.residual <= RESIDUAL)
        apart += np.abs(ours.v1 - theirs.v1)[both].max(axis=1).tolist()
        q, v = theirs.q1, theirs.v1
    assert len(apart) > 0.95 * 60 * count and np.max(apart) < 1e-5


ARM = """<body pos="{0}"><joint axis="1 0 0" range="-60 60"/><joint axis="0 1 0" range="-90 90"/>
  <geom type="capsule" fromto="0 0 0 {0}" size=".05"/><body pos="{0}"><joint axis="0 0 1" range="-120 120"/>
  <geom type="capsule" fromto="0 0 0 {1}" size=".05"/></body></body>"""


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_a_soft_step_is_the_same_alone_and_beside_others(monkeypatch: pytest.MonkeyPatch, cone: str) -> None:
    """Limbs that touch one another join rates that the mass matrix does not, in some of the states."""
    from drevo.contact.laws.soft import program

    monkeypatch.setattr(program, "MAX_STRAIGHT_PAIRS", 0)
    ways = (".2 .1 0", "0 -.2 0"), (".2 -.1 0", "0 .2 0"), ("-.2 0 0", ".2 .1 0")
    body = f'<body><freejoint/><geom type="sphere" size=".1"/>{"".join(ARM.format(*x) for x in ways)}</body>'
    r = drevo.load(SCENE.format(body).replace("/>", f' cone="{cone}"/>', 1))
    step, rng, n = drevo.compile(r, "step", dt=0.005, ground=None), np.random.default_rng(0), 64
    q, v, tau = r.random(rng, n), rng.normal(size=(n, r.nv)), np.zeros((n, r.nv))
    q[:, :3] *= 0.1
    q[:, 2] += 0.25
    found = step(q, v, tau)
    for k in range(n):
        assert all(np.array_equal(x, y[k]) for x, y in zip(step(q[k], v[k], tau[k]), found))
