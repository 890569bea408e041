"""Tendons and springs tuned by time constants, as MuJoCo means them; lengths that couple; in every format."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import mujoco
import numpy as np
import pytest
from contact_cases import as_ours

import drevo
from drevo.mechanics.algorithms.constraints import Kinematics
from drevo.mechanics.algorithms.passive import tendon_length
from drevo.mechanics.tree import build_tree
from drevo.model.description import Shape, TendonWrap
from drevo.robot.saving import forces_at_states

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from agreement import compared, states

Array = np.ndarray
BODIES = """<worldbody><site name="w" pos=".3 0 .1"/><site name="x" pos="-.3 .1 .4"/>
<body name="a" euler="10 20 30"><joint name="j" axis="1 2 3" ref="20" springdamper=".05 .7"/>
 <geom size=".1" pos=".1 .2 0"/><site name="sa" pos="0 .1 .2" euler="1 2 3"/>
 <body name="b" pos="0 0 .5"><joint name="k" axis="0 1 0" pos=".1 0 0" stiffness="2" damping=".3 .2" ref="-10"
   springref="5"/><joint name="l" type="slide" axis="1 0 1" ref=".1"/><geom size=".1" pos="0 .1 0"/>
  <site name="sb" pos="0 0 .3"/>
  <body name="c" pos=".2 .1 .3"><joint name="m" type="ball" damping=".2"/>
   <geom type="box" size=".1 .2 .05" pos=".1 0 .1"/><site name="sc" pos=".1 0 .2"/></body></body></body>
<body name="f" pos="1 1 1"><freejoint name="n"/><geom type="box" size=".1 .2 .3" pos=".1 0 0"/>
 <site name="sf" pos="0 .1 .1"/></body></worldbody>"""
TENDONS = """<spatial name="t1" stiffness="50" damping="3 .4" springlength=".1 .3"><site site="w"/>
 <site site="sa"/><site site="sb"/><site site="sc"/></spatial>
<spatial name="t2" stiffness="20"><site site="x"/><site site="sc"/><pulley divisor="2"/><site site="sb"/>
 <site site="sf"/><site site="w"/></spatial>
<fixed name="t3" stiffness="5" springlength=".2" damping=".1"><joint joint="j" coef="2"/>
 <joint joint="l" coef="-.7"/></fixed>
<fixed name="t4" stiffness="5" damping=".1"><joint joint="k" coef="2"/><joint joint="l" coef="-.7"/></fixed>"""


def scene(tendons: str = TENDONS, more: str = "", head: str = "") -> str:
    return f"<mujoco>{head}{BODIES}<tendon>{tendons}</tendon>{more}</mujoco>"


def quiet(source: object) -> drevo.Robot:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return drevo.load(source)


def length(robot: drevo.Robot, k: int, q: Array, v: Array) -> tuple[float, float, Array]:
    """L, L' and J of a tendon."""
    found = Kinematics(build_tree(robot.model), q.tolist(), v.tolist())
    (x,), (dx,), (J,), _ = tendon_length(found, robot.model.tendons[k])
    return x, dx, np.array(J)


def test_lengths_and_forces_are_mujocos() -> None:
    """Straight segments, pulleys, rests with slack or left open, ref and springref, springdamper, powers of v."""
    theirs = mujoco.MjModel.from_xml_string(scene())
    for robot in (quiet(scene()), quiet(theirs)):
        assert compared(robot.model, theirs) < 1e-13
    data, rng, robot = mujoco.MjData(theirs), np.random.default_rng(1), quiet(scene())
    data.qpos, data.qvel = rng.normal(size=theirs.nq), rng.normal(size=theirs.nv)
    mujoco.mj_normalizeQuat(theirs, data.qpos)
    mujoco.mj_forward(theirs, data)
    q, turns, _ = states(theirs, data)
    for k in range(4):
        found = length(robot, k, q, turns.T @ data.qvel)[:2]
        assert np.allclose(found, (data.ten_length[k], data.ten_velocity[k]), atol=1e-14)
    slack = '<option><flag spring="disable" damper="disable"/></option>'
    assert not quiet(scene(head=slack)).model.tendons[0].pulls


def test_derivatives_are_those_of_differences() -> None:
    robot, rng, h = quiet(scene()), np.random.default_rng(2), 1e-6
    q, v, a = robot.random(rng), rng.normal(size=robot.nv), rng.normal(size=robot.nv)
    steps = h * np.eye(robot.nv)

    def slope(f: object, axis: str) -> Array:
        moved = [(robot.integrate(q, s), v) if axis == "q" else (q, v + s) for s in (*steps, *-steps)]
        rows = np.array([f(*state) for state in moved])  # type: ignore[operator]
        return (rows[: robot.nv] - rows[robot.nv :]).T / (2 * h)

    by_q, by_v = (slope(robot.passive, axis) for axis in "qv")
    size = np.abs(by_q).max()
    given = {with_them: drevo.compile(robot, "inverse_dynamics_derivatives", passive=with_them)(q, v, a)
             for with_them in (False, True)}  # fmt: skip
    for k, wanted in enumerate((by_q, by_v)):
        assert np.abs(given[False][k] - given[True][k] - wanted).max() < 1e-8 * size
    forward = drevo.compile(robot, "forward_dynamics", passive=True)
    wanted = slope(lambda x, u: forward(x, u, a), "q")
    found = drevo.compile(robot, "forward_dynamics_derivatives", passive=True)(q, v, a)[0]
    assert np.abs(found - wanted).max() < 1e-8 * np.abs(wanted).max()
    n = robot.nv
    assert np.allclose(robot.linearise(q, v, a).A[n:, :n], found, rtol=0, atol=1e-9 * np.abs(found).max())


LIMITED = """<spatial name="t" range=".2 .6"><site site="w"/><site site="sb"/></spatial>
<fixed name="u" limited="true" range="-.1 .2" solreflimit=".05 .5"><joint joint="l" coef="3"/></fixed>"""


def test_limits_pull_inward_only() -> None:
    """A spring and a damper with the time constant of the file on the tendon's own mass, where it is too long."""
    with pytest.warns(drevo.DrevoWarning, match="spatial 't' .* its range is held by a spring and a damper"):
        robot = drevo.load(scene(LIMITED))
    theirs = mujoco.MjModel.from_xml_string(scene(LIMITED))
    for tendon, weight, (time, ratio) in zip(
        robot.model.tendons, theirs.tendon_invweight0, ((0.02, 1.0), (0.05, 0.5))
    ):
        assert tendon.limit_stiffness * weight == pytest.approx((0.95 * time * ratio) ** -2, rel=1e-12)
        assert tendon.limit_damping * weight == pytest.approx(2 / (0.95 * time), rel=1e-12)
    q, v = robot.neutral(), np.zeros(robot.nv)
    slide = [j.name for j in robot.model.moving_joints].index("l")
    u = robot.model.tendons[1]
    for x, wanted in ((0.05, 0.0), (0.1, -(0.3 - 0.2)), (-0.1, 0.3 - 0.1)):
        q[slide] = x
        with_u = robot.passive(q, v)[slide]
        robot_without = drevo.Robot(robot.model).passive(q, v)[slide]
        assert with_u == robot_without
        pulls = [length(robot, k, q, v) for k in range(2)]
        t = robot.model.tendons[0]
        over = max(pulls[0][0] - 0.6, 0.0) + min(pulls[0][0] - 0.2, 0.0)
        expected = 3 * u.limit_stiffness * wanted - t.limit_stiffness * over * pulls[0][2][slide]
        assert with_u == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_lengths_that_couple_hold() -> None:
    """<equality><tendon>: a cable that does not stretch, and one whose length follows a polynomial of another."""
    more = '<equality><tendon tendon1="t1"/><tendon tendon1="t3" tendon2="t2" polycoef="0.1 0.5 -0.3"/></equality>'
    robot = quiet(scene(more=more))
    theirs = mujoco.MjModel.from_xml_string(scene(more=more))
    data, rng = mujoco.MjData(theirs), np.random.default_rng(3)
    data.qpos, data.qvel = rng.normal(size=theirs.nq), rng.normal(size=theirs.nv)
    mujoco.mj_normalizeQuat(theirs, data.qpos)
    mujoco.mj_forward(theirs, data)
    q, turns, _ = states(theirs, data)
    v = turns.T @ data.qvel
    found = robot.constrained_dynamics(q, v, np.zeros(robot.nv), stabilise=(1.0, 1.0))
    J = data.efc_J.reshape(data.nefc, theirs.nv)
    rows = [i for i in range(data.nefc) if data.efc_type[i] == mujoco.mjtConstraint.mjCNSTR_EQUALITY]
    assert np.allclose(found.value, data.efc_pos[rows], atol=1e-13)
    assert np.allclose(found.jacobian, J[rows] @ turns, atol=1e-13)
    assert np.allclose(found.rate, data.efc_vel[rows], atol=1e-12)
    h = 1e-6
    rates = [
        robot.constrained_dynamics(robot.integrate(q, s * v), v, 0 * v, stabilise=(1, 1)).rate for s in (h, -h)
    ]
    assert np.allclose(found.gamma, (rates[0] - rates[1]) / (2 * h), atol=1e-7)


def with_builder() -> drevo.Robot:
    b = drevo.Builder("pulled")
    for name, parent, z in (("a", "world", 0.0), ("c", "a", -0.6)):
        b.body(name, parent, axis=(0, 1, 0), origin=(0, 0, z), mass=1, com=(0, 0, -0.3), inertia=np.eye(3) * 0.02)
    path = [("world", (0.5, 0, 0)), ("a", (0, 0, -0.3)), ("c", (0, 0, -0.5)), 2.0]
    b.tendon("t", [*path, ("world", (-0.4, 0, 0)), ("c", (0, 0, -0.2))], stiffness=80.0, rest=0.9)
    b.tendon("u", joints={"a_joint": 0.3, "c_joint": -0.2}, stiffness=20, rest=(-0.1, 0.1))
    return b.robot()


def test_a_pulled_pendulum_keeps_its_energy() -> None:
    robot = with_builder()
    table = robot.simulate([0.3, -0.2], [1.0, 0.0], duration=10.0, dt=1e-3, every=500, method="gauss4")

    def energy(q: Array, v: Array) -> float:
        L = [length(robot, k, q, v)[0] for k in range(2)]
        springs = 40 * (L[0] - 0.9) ** 2 + 10 * (max(L[1] - 0.1, 0) ** 2 + min(L[1] + 0.1, 0) ** 2)
        return float(robot.kinetic_energy(q, v) + robot.potential_energy(q) + springs)

    found = [energy(q, v) for q, v in zip(table.q, table.v)]
    assert np.ptp(found) < 1e-5 * np.max(
        robot.kinetic_energy(table.q, table.v)
    )  # springs that go slack are not smooth


def test_a_cable_over_a_pulley() -> None:
    """Two weights on a cable that does not stretch, one of them on a loose pulley: Atwood's machine."""
    b = drevo.Builder("atwood")
    for name, x, mass in (("left", -0.2, 3.0), ("right", 0.2, 2.0)):
        b.body(name, joint="prismatic", axis=(0, 0, 1), origin=(x, 0, 0), mass=mass)
    sides = [[("world", (x, 0, 1)), (name, (0, 0, 0))] for name, x in (("left", -0.2), ("right", 0.2))]
    b.tendon("cable", [*sides[0], 0.5, *sides[1]]).couple("cable", "", [3.0])
    a = b.robot().constrained_dynamics([0.0, 0.0], [0.0, 0.0], [0.0, 0.0]).a
    # -dz_left - 2 dz_right = 0 along the cable; M a = -m g + (1, 2) T
    assert np.allclose(a, np.linalg.solve([[1.0, 2.0], [3.0 * 2.0, -2.0]], [0.0, -9.81 * (3.0 * 2.0 - 2.0)]))


@pytest.mark.parametrize("suffix", ["xml", "toml", "json", "urdf", "sdf"])
def test_tendons_come_back(tmp_path: Path, suffix: str) -> None:
    """In every format; URDF and SDF have no words for them."""
    more = '<equality><tendon tendon1="t3" tendon2="t2" polycoef="0.1 0.5 -0.3"/></equality><contact>'
    tendons = TENDONS + LIMITED.replace('"t"', '"t5"').replace('"u"', '"t6"')
    text = scene(tendons, f'{more}<exclude body1="a" body2="c"/></contact>')
    text = text.replace('type="ball" damping=".2"', 'damping=".2"').replace('damping=".3 .2"', 'damping=".3"')
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", drevo.DrevoWarning)
        robot = drevo.load(text)
        if suffix in ("urdf", "sdf"):
            with pytest.raises(drevo.ModelError, match="its 1 closed loop; its 6 tendons"):
                robot.save(tmp_path / f"r.{suffix}")
        robot.save(tmp_path / f"r.{suffix}", lossy=suffix in ("urdf", "sdf"))
        again = drevo.load(tmp_path / f"r.{suffix}")
    if suffix in ("toml", "json"):
        assert again.model.tendons == robot.model.tendons
    for x, y in zip(forces_at_states(robot.model), forces_at_states(again.model), strict=True):
        assert np.abs(x - y).max() <= 1e-12 * np.abs(x).max()
    assert again.model.exclusions == robot.model.exclusions
    found = [c.coefficients for c in again.model.tendon_couplings]
    assert np.allclose(found[0][:3], robot.model.tendon_couplings[0].coefficients[:3], rtol=1e-12)


def test_pinocchio_has_none() -> None:
    with pytest.raises(drevo.ModelError, match="its 2 tendons"):
        with_builder().to_pinocchio()


BAD = [
    (
        '<spatial name="t"><site site="w"/><site site="q"/></spatial>',
        r"spatial 't' \(line 10\): the site 'q' on line 10",
    ),
    (
        '<fixed name="t"><joint joint="n" coef="1"/></fixed>',
        r"fixed 't' \(line 10\): 'n' on line 10 is no hinge or",
    ),
    ('<fixed name="t"/>', "joins nothing"),
    ('<spatial name="t"><site site="w"/></spatial>', "joins nothing"),
    (
        '<spatial name="t"><site site="w"/><pulley divisor="0"/><site site="sa"/></spatial>',
        "divisor on line 10 is 0",
    ),
    (
        '<fixed name="t" stiffness="x"><joint joint="j"/></fixed>',
        "stiffness of <fixed> on line 10: 'x' is not a number",
    ),
    (
        '<fixed name="t" springlength="2 1"><joint joint="j"/></fixed>',
        "the tendon 't' has bounds that are crossed",
    ),
    ('<fixed name="t"><joint joint="j"/></fixed>' * 2, "the tendon 't' is defined 2 times"),
]


@pytest.mark.parametrize("text, says", BAD)
def test_tendons_that_are_refused(text: str, says: str) -> None:
    with pytest.raises(drevo.ModelError, match=says):
        drevo.load(scene(text))


WRAPPED = """<spatial name="w1" stiffness="50" damping="3"><site site="x"/><geom geom="ball"/><site site="sf"/>
 </spatial>
<spatial name="w2" stiffness="20" springlength=".2"><site site="w"/><geom geom="rod" sidesite="aside"/>
 <site site="sc"/><pulley divisor="2"/><site site="sf"/><geom geom="ball" sidesite="above"/>
 <site site="sc"/></spatial>
<spatial name="w3" damping="2" stiffness="3"><site site="w"/><geom geom="rod"/>
 <site site="x"/><geom geom="post"/><site site="sf"/></spatial>"""


WITHIN = """<spatial name="i1" stiffness="5" damping="3"><site site="w"/><geom geom="ball" sidesite="inner"/>
 <site site="sf"/></spatial>
<spatial name="i2" stiffness="2" springlength=".2"><site site="x"/><geom geom="rod" sidesite="core"/>
 <site site="sf"/><pulley divisor="2"/><site site="sc"/><geom geom="ball" sidesite="inner"/>
 <site site="x"/></spatial>"""


def wrapped_scene(tendons: str = WRAPPED, more: str = "") -> str:
    """A ball on one body, a rod on another, a post of the world, and side sites out of them and in them."""
    inserted = {
        '<site name="sa"': '<geom name="ball" size=".3" pos="0 .1 .1"/><site name="above" pos=".05 .1 .6"/>'
        '<site name="inner" pos=".1 .1 .2"/>',
        '<site name="sb"': '<geom name="rod" type="cylinder" size=".1 .3" euler="20 40 0"/>'
        '<site name="aside" pos=".2 .1 0"/><site name="core" pos="0 .02 .01"/>',
        '<site name="w"': '<geom name="post" type="cylinder" size=".2 1" pos=".5 .5 0"/>',
    }
    text = scene(tendons, more)
    for at, more in inserted.items():
        text = text.replace(at, more + at)
    return text


def test_tendons_lie_around_spheres_and_cylinders_as_mujocos(tmp_path: Path) -> None:
    """Lengths, rates and forces, of files, compiled models and what was saved; slopes are those of differences."""
    theirs = mujoco.MjModel.from_xml_string(wrapped_scene())
    robot, data, rng = quiet(wrapped_scene()), mujoco.MjData(theirs), np.random.default_rng(5)
    again = [robot, quiet(theirs)]
    for suffix in ("xml", "toml", "json"):
        robot.save(tmp_path / f"r.{suffix}")
        again.append(quiet(tmp_path / f"r.{suffix}"))
    assert all(x.model.tendons == robot.model.tendons for x in again[3:])
    wraps = np.zeros(3)
    for _ in range(60):
        data.qpos, data.qvel = 0.6 * rng.normal(size=theirs.nq), rng.normal(size=theirs.nv)
        mujoco.mj_normalizeQuat(theirs, data.qpos)
        mujoco.mj_forward(theirs, data)
        q, turns, _ = states(theirs, data)
        wraps += data.ten_wrapnum > [2, 5, 3]
        for x in again:
            found = np.array([length(x, k, q, turns.T @ data.qvel)[:2] for k in range(3)]).T
            assert np.allclose(found, (data.ten_length, data.ten_velocity), rtol=0, atol=1e-12)
    assert (wraps > 5).all()
    assert all(compared(x.model, theirs) < 1e-12 for x in again)
    q, v = robot.random(rng), rng.normal(size=robot.nv)
    slopes = drevo.compile(robot, "inverse_dynamics_derivatives", passive=True)(q, v, 0.0 * v)[0]
    plain = drevo.compile(robot, "inverse_dynamics_derivatives", passive=False)(q, v, 0.0 * v)[0]
    h = 1e-6 * np.eye(robot.nv)
    differences = [(robot.passive(robot.integrate(q, x), v) - robot.passive(robot.integrate(q, -x), v)) for x in h]
    assert np.abs(plain - slopes - np.array(differences).T / 2e-6).max() < 1e-7 * np.abs(differences).max() / 2e-6


def test_tendons_pass_through_spheres_and_cylinders_as_mujocos(tmp_path: Path) -> None:
    """MuJoCo ends its search for where they touch at 1e-6 rad: lengths, which are the least, feel the square."""
    text = wrapped_scene(WITHIN)
    robot, theirs, rng, h = quiet(text), mujoco.MjModel.from_xml_string(text), np.random.default_rng(5), 1e-5
    again, data, touches = [robot, quiet(theirs)], mujoco.MjData(theirs), np.zeros(2)
    for suffix in ("xml", "toml", "json"):
        robot.save(tmp_path / f"r.{suffix}")
        again.append(quiet(tmp_path / f"r.{suffix}"))
    assert all(x.model.tendons == robot.model.tendons for x in again[3:])
    for _ in range(60):
        data.qpos, data.qvel = rng.normal(size=theirs.nq), rng.normal(size=theirs.nv)
        mujoco.mj_normalizeQuat(theirs, data.qpos)
        mujoco.mj_forward(theirs, data)
        q, turns, _ = states(theirs, data)
        touches += data.ten_wrapnum > [2, 5]
        v = turns.T @ data.qvel
        for x in again:
            found = np.array([length(x, k, q, v)[:2] for k in range(2)]).T
            assert np.allclose(found[0], data.ten_length, rtol=0, atol=1e-11)
            assert np.allclose(found[1], data.ten_velocity, rtol=0, atol=1e-5)
        ends = [[length(robot, k, robot.integrate(q, s * v), v)[0] for k in range(2)] for s in (h, -h)]
        assert np.allclose(found[1], np.subtract(*ends) / (2 * h), rtol=0, atol=1e-6)
    assert (touches > 20).all()


def test_tendons_around_and_through_geoms_couple() -> None:
    """Rows are MuJoCo's, which leaves out J' v: that is by differences of rates."""
    more = '<equality><tendon tendon1="w1" tendon2="w2" polycoef="0.1 0.5 -0.3"/><tendon tendon1="w3"/></equality>'
    text = wrapped_scene(WRAPPED + WITHIN, more.replace("</eq", '<tendon tendon1="i1" tendon2="i2"/></eq'))
    robot, theirs = quiet(text), mujoco.MjModel.from_xml_string(text)
    data, rng, wraps, h = mujoco.MjData(theirs), np.random.default_rng(3), np.zeros(5), 1e-6
    for _ in range(40):
        data.qpos, data.qvel = 0.6 * rng.normal(size=theirs.nq), rng.normal(size=theirs.nv)
        mujoco.mj_normalizeQuat(theirs, data.qpos)
        mujoco.mj_forward(theirs, data)
        q, turns, _ = states(theirs, data)
        v = turns.T @ data.qvel
        wraps += data.ten_wrapnum > [2, 5, 3, 2, 5]
        found = robot.constrained_dynamics(q, v, 0 * v, stabilise=(1.0, 1.0))
        J = data.efc_J.reshape(data.nefc, theirs.nv) @ turns
        rows = np.flatnonzero(data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY)
        for k, off in enumerate((1e-12, 1e-12, 1e-5)):
            assert abs(found.value[k] - data.efc_pos[rows[k]]) < min(off, 1e-11)
            assert np.abs(found.jacobian[k] - J[rows[k]]).max() < off
        ends = [robot.constrained_dynamics(robot.integrate(q, s * v), v, 0 * v, stabilise=(1, 1)) for s in (h, -h)]
        slopes = (ends[0].rate - ends[1].rate) / (2 * h)
        assert np.allclose(found.gamma, slopes, rtol=1e-5, atol=1e-6)
    assert (wraps > 5).all()


def test_steps_of_tendons_that_couple_around_geoms_are_mujocos() -> None:
    more = """<option solver="Newton" tolerance="0" iterations="100"/><equality><tendon tendon1="w3"/>
      <tendon tendon1="w1" tendon2="w2" polycoef="0.1 0.5 -0.3"/></equality>"""
    apart = '<default><geom contype="0" conaffinity="0"/></default><worldbody>'
    text = wrapped_scene(WRAPPED, more).replace("<worldbody>", apart).replace('damping=".3 .2"', 'damping=".3"')
    theirs = mujoco.MjModel.from_xml_string(text)
    step, data, rng = drevo.compile(quiet(text), "step", dt=0.002, ground=None), mujoco.MjData(theirs), np.random
    for seed in range(40):
        mujoco.mj_resetData(theirs, data)
        noise = rng.default_rng(seed)
        data.qpos, data.qvel = 0.6 * noise.normal(size=theirs.nq), noise.normal(size=theirs.nv)
        mujoco.mj_normalizeQuat(theirs, data.qpos)
        found = step(*as_ours(theirs, data.qpos.copy(), data.qvel.copy(), np.zeros(theirs.nv)))
        mujoco.mj_step(theirs, data)
        q1, v1 = as_ours(theirs, data.qpos.copy(), data.qvel.copy())
        assert np.abs(found.v1 - v1).max() < 1e-11 and np.abs(found.q1 - q1).max() < 1e-12


def test_a_bob_on_a_rope_winds_around_a_post() -> None:
    """Straight by s and firm, it turns about where it leaves the post: n . a = -|v|^2 / s."""
    b = drevo.Builder("bob")
    b.body("x", joint="prismatic", axis=(1, 0, 0), mass=0.0).body(
        "bob", "x", joint="prismatic", axis=(0, 0, 1), mass=1.0
    )
    post = TendonWrap("world", (0, 0, 0), 0.2, axis=(0, 1, 0))
    s, angle, speed = 0.7, 0.4, 1.5
    out, n = np.array([np.sin(angle), np.cos(angle)]), np.array([np.cos(angle), -np.sin(angle)])
    q = 0.2 * out + s * n
    robot = (
        b.tendon("rope", [("world", (-1, 0, 0.2)), post, ("bob", (0, 0, 0))])
        .couple("rope", "", [1.0 + 0.2 * angle + s])
        .robot()
    )
    found = robot.constrained_dynamics(q, speed * out, [0.0, 0.0])
    assert np.allclose(found.value, 0.0, atol=1e-14) and np.allclose(found.gamma, speed**2 / s, rtol=1e-12)
    pull = n @ [0.0, 9.81] - speed**2 / s
    assert np.allclose(found.a, [0.0, -9.81] + pull * n, rtol=1e-12)


def test_a_rope_slides_over_a_drum() -> None:
    """A quarter of a turn and two straight parts; the drum turns beneath."""
    b = drevo.Builder("winch")
    b.body("drum", axis=(0, 1, 0), mass=1.0, inertia=np.eye(3))
    around = TendonWrap("drum", (0, 0, 0), 0.5, axis=(0, 2, 0), side=(1, 0, 1))
    path = [("world", (-1, 0, 0.5)), around, ("world", (0.5, 0, -0.5))]
    robot = b.tendon("rope", path, stiffness=1.0).robot()  # type: ignore[arg-type]
    for q in (0.0, 0.7):
        x, dx, J = length(robot, 0, np.array([q]), np.array([2.0]))
        assert x == pytest.approx(1.0 + 0.5 * np.pi / 2 + 0.5, abs=1e-14)
        assert abs(J).max() < 1e-14 and abs(dx) < 1e-14


def test_wrapping_is_told_where_it_acts() -> None:
    text = '<spatial name="t" %s><site site="w"/><geom geom="g"/><site site="sa"/></spatial>'
    robot = quiet(scene(text % ""))
    assert "spatial 't' (line 10) runs around geoms, which is not read" in " ".join(robot.notes)
    with pytest.warns(drevo.DrevoWarning, match="the tendon around geoms of spatial 't'"):
        drevo.load(scene(text % 'stiffness="1"'))


@pytest.mark.parametrize(
    "given, says",
    [
        ({"path": [("ghost", (0, 0, 0))]}, "body 'ghost' does not exist"),
        ({"path": [("a", (0, 0))]}, "tendon 't': point"),
        (
            {"path": [("a", (0, 0, 0)), TendonWrap("a", (0, 0, 0), 0.0), ("world", (0, 0, 1))]},
            "a radius of 0; give",
        ),
        (
            {"path": [("a", (0, 0, 0)), TendonWrap("a", (0, 0, 0), 1.0, (0, 0, 0)), ("world", (0, 0, 1))]},
            "axis is 0",
        ),
        ({"path": [TendonWrap("ghost", (0, 0, 0), 1.0)]}, "body 'ghost' does not exist"),
        ({"path": [-1.0]}, "tendon 't': a pulley divides the length by -1"),
        ({"springiness": 1.0}, "tendon 't' 'springiness' is not known"),
        ({"joints": {"x": 1.0}}, "the tendon 't' names the joint 'x', which does not exist"),
        ({"rest": (1, 2, 3)}, "3 numbers, 2 needed"),
        ({"stiffness": float("nan")}, "nan is not finite"),
        ({"path": 3}, r"path is a list of \(body, point\) and numbers, not 3"),
        ({"joints": ["a_joint"]}, "joints is a mapping of names"),
        ({"joints": {3: 1.0}}, "joint 3 is not a name"),
        ({"rest": None}, "None is not a number"),
    ],
)
def test_builders_tendons_that_are_refused(given: dict[str, object], says: str) -> None:
    b = drevo.Builder("r").body("a", mass=1, com=(1, 0, 0))
    with pytest.raises(drevo.ModelError, match=says):
        b.tendon("t", **given).robot()  # type: ignore[arg-type]


def test_a_coupling_of_tendons_that_do_not_exist() -> None:
    b = drevo.Builder("r").body("a", mass=1, com=(1, 0, 0)).tendon("t", joints={"a_joint": 1.0})
    with pytest.raises(drevo.ModelError, match="names the tendon 'x', which does not exist"):
        b.couple("t", "x", [0, 1]).robot()
    with pytest.raises(drevo.ModelError, match="tendon 't' already exists"):
        b.tendon("t")


@pytest.mark.parametrize(
    ("method", "given", "says"),
    [
        ("couple", ({"a": 1}, "a_joint", [0, 1]), "name {'a': 1} is not a name"),
        ("couple", ("a_joint", np.eye(2), [0, 1]), "driver array.* is not a name"),
        ("couple", ("a_joint", None, [0, 1]), "driver None is not a name"),
        ("shaped", (True, []), "body True does not exist"),
        ("shaped", ("a", print), "shapes is a list of Shape"),
        ("shaped", ("a", [1.0]), "a shape is a drevo.model.description.Shape, not 1.0"),
        ("shaped", ("a", [Shape("box", (float("nan"), 1.0, 1.0))]), "size of a shape nan is not finite"),
        ("tendon", (None,), "tendon None: name None is not a name"),
        ("tendon", ("t", [], {"a_joint": 1.0}, {"damping": None}), "damping None is not a number"),
        ("body", ("c", {"armature": float("inf")}), "armature inf is not finite"),
        ("body", ("c", {"dynamics": [0.1]}), r"dynamics is a drevo.model.description.JointDynamics, not \[0.1\]"),
    ],
)
def test_what_builders_cannot_take(method: str, given: tuple[object, ...], says: str) -> None:
    b = drevo.Builder("r").body("a", mass=1, com=(1, 0, 0))
    *given, options = given if isinstance(given[-1], dict) and len(given) > 1 else (*given, {})
    with pytest.raises(drevo.ModelError, match=says):
        getattr(b, method)(*given, **options)
