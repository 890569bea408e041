"""A step on a ground as a Function, motions made of it, and what is refused: one sentence each."""

from __future__ import annotations

import copy
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contact_cases import CRAWLER, HOPPER, case

import drevo

BALL = """<mujoco><option timestep="0.002"/><worldbody>
 <body name="ball" pos="0 0 1"><freejoint/><geom type="sphere" size=".1" mass="2"/></body></worldbody></mujoco>"""
CONTACTLESS = drevo.load("three-link")
ARM = """<mujoco><option timestep="0.002" {option}/><worldbody><body name="arm">
  <joint axis="0 1 0" stiffness="20" damping="3" limited="true" range="-60 60"/>
  <geom type="box" size=".2 .05 .05" pos=".2 0 0"/>
  <body name="hand" pos=".4 0 0"><joint axis="0 0 1" springref="20" stiffness="5" frictionloss=".4"/>
   <geom type="box" size=".1 .03 .03" pos=".1 0 0"/></body></body></worldbody></mujoco>"""


def robot(text: str = HOPPER) -> drevo.Robot:
    return drevo.load(text.format(option="", condim=3, floor=""))


@pytest.fixture(scope="module")
def crawler() -> Any:
    """A robot, its step, and states of it."""
    r, rng = robot(CRAWLER), np.random.default_rng(5)
    q = np.tile(r.neutral(), (40, 1))
    q[:, 2], q[:, 16] = rng.uniform(0.15, 0.3, 40), 0.9
    return r, drevo.compile(r, "step", dt=0.005), q, rng.normal(0.0, 0.5, (40, r.nv))


@pytest.fixture(scope="module")
def hopper() -> Any:
    """The same of a robot with half the freedoms."""
    r, rng = robot(), np.random.default_rng(5)
    q = np.tile(r.neutral(), (40, 1))
    q[:, 1] = rng.uniform(-0.1, 0.0, 40)
    return r, drevo.compile(r, "step", dt=0.002), q, rng.normal(0.0, 0.5, (40, r.nv))


def test_a_call_repeats_steps(hopper: Any) -> None:
    """Five steps of one call are five calls, and the residual is the worst of them."""
    r, step, q, v = hopper
    tau = np.full(r.nv, 0.1)
    at_once = drevo.compile(r, "step", dt=0.002, repeat=5)(q, v, tau)
    worst = 0.0
    for _ in range(5):
        q, v, forces, residual = step(q, v, tau)
        worst = np.maximum(worst, residual)
    for x, y in zip(at_once, (q, v, forces)):
        assert np.allclose(x, y, rtol=1e-9, atol=1e-9)
    assert (at_once.residual <= 10.0 * worst + 1e-12).all()
    assert np.abs(forces).max() > 1.0


def test_repeated_steps_of_flight_are_those_of_gravity() -> None:
    """Nothing holds, so nothing changes its mind: each step is solved all the same."""
    r, n = drevo.load(BALL), 20
    _, v, forces, residual = drevo.compile(r, "step", dt=0.01, repeat=n)(
        [0, 0, 9, 0, 0, 0, 1], [0, 0, 1.0, 0, 0, 3.0], [0, 0, 1.0, 0, 0, 0]
    )
    assert v == pytest.approx([0, 0, 1.0 + (0.5 - 9.81) * 0.01 * n, 0, 0, 3.0])
    assert not forces.any() and residual < 1e-12


def test_parameters_are_by_sample(hopper: Any) -> None:
    """Masses, damping and friction as an argument: with the model's own the same step, else another robot's."""
    r, step, q, v = hopper
    f = drevo.compile(r, "step", dt=0.002, parameters=("thigh.mass", "foot.inertia", "*.damping", "friction"))
    own = np.array([x for _, x in f.parameters])
    tau = np.zeros(r.nv)
    for x, y in zip(f(q, v, tau, own), step(q, v, tau)):
        assert np.allclose(x, y, rtol=1e-9, atol=1e-9)
    several = own * np.linspace(0.5, 2.0, 40)[:, None]
    batch = f(q, v, tau, several)
    heavy = robot(HOPPER.replace('damping="1"', 'damping="2"'))
    assert len(own) > 5 and heavy.nv == r.nv
    for k in (0, 39):
        for x, y in zip(batch, f(q[k], v[k], tau, several[k])):
            assert np.allclose(x[k], y, rtol=1e-9, atol=1e-9)
    other = {"damping": 2.0, "friction": 0.5}
    twice = np.array([other.get(name.split(".")[-1], 1.0) for name, _ in f.parameters])
    double = f(q, v, tau, twice * own)
    for x, y in zip(double, drevo.compile(heavy, "step", dt=0.002, friction=1.0)(q, v, tau)):
        assert np.allclose(x, y, rtol=1e-9, atol=1e-9)
    assert np.abs(double.forces).max() > 1.0


def test_threads_share_a_batch(crawler: Any) -> None:
    r, step, q, v = crawler
    many = np.tile(q, (100, 1)), np.tile(v, (100, 1)), np.zeros((4000, r.nv))
    for x, y in zip(step(*many), step(*many, threads=2)):
        assert np.array_equal(x, y)


def test_a_motion_is_made_of_steps(crawler: Any) -> None:
    """Records of simulate, of a batch, with forces and residuals."""
    r, step, q, v = crawler
    told = r.simulate(q, v, duration=0.1, dt=0.005, ground="plane", law="soft", every=4)
    assert told.q.shape == (6, 40, r.nq) and told.t[-1] == pytest.approx(0.1)
    assert told.contact_forces.shape[:2] == (6, 40) and told.residual.shape == (6, 40)
    for _ in range(20):
        q, v, forces, _ = step(q, v, np.zeros(r.nv))
    assert np.allclose(told.q[-1], q, atol=1e-9) and np.allclose(told.contact_forces[-1], forces, atol=1e-6)


def test_efforts_by_step() -> None:
    """Held over each step, and as many as there are steps."""
    r = robot()
    efforts = np.random.default_rng(0).normal(0.0, 3.0, (30, r.nv))
    q, v = r.neutral(), np.zeros(r.nv)
    told = r.simulate(q, v, efforts, duration=0.06, dt=0.002, ground=None, every=3)
    step = drevo.compile(r, "step", dt=0.002, ground=None)
    for x in efforts:
        q, v, *_ = step(q, v, x)
    assert np.allclose(told.q[-1], q, atol=1e-10)
    with pytest.raises(drevo.InputError, match="tau has 30 steps; the motion takes 60"):
        r.simulate(r.neutral(), None, efforts, duration=0.12, dt=0.002, ground=None)


def test_a_ball_comes_to_rest_on_its_weight() -> None:
    """It falls, and then the ground carries it."""
    r = drevo.load(BALL)
    told = r.simulate([0, 0, 0.3, 0, 0, 0, 1], duration=2.0, dt=0.002, ground="plane", law="soft", every=50)
    force = told.contact_forces[-1].sum(axis=0)
    assert np.allclose(force, [0.0, 0.0, 2.0 * 9.81], atol=1e-6)
    assert np.abs(told.v[-1]).max() < 1e-6 and 0.09 < told.q[-1, 2] < 0.1


def test_friction_decides_whether_a_ball_rolls() -> None:
    """By the option, in place of the model's: without friction it only slides."""
    r = drevo.load(BALL)
    start = ([0, 0, 0.0999, 0, 0, 0, 1], [1.0, 0, 0, 0, 0, 0])
    slides, rolls = (
        r.simulate(*start, duration=1.0, dt=0.002, ground="plane", friction=mu, every=500) for mu in (0.0, 0.8)
    )
    assert np.abs(slides.v[-1, 3:]).max() < 1e-9 and slides.v[-1, 0] == pytest.approx(1.0)
    speed = np.linalg.norm(rolls.v[-1, :3])
    assert speed == pytest.approx(5.0 / 7.0, abs=5e-3)
    assert np.linalg.norm(rolls.v[-1, 3:]) * 0.1 == pytest.approx(speed, abs=1e-2)


def test_uneven_ground_carries_too() -> None:
    """A slope as a function: without friction the ball gathers speed along it."""
    r = drevo.load(BALL)
    from drevo.ground import function

    told = r.simulate([0, 0, 0.0999, 0, 0, 0, 1], duration=0.4, dt=0.002, ground=function(lambda x, y: 0.2 * x),
                      law="soft", friction=0.0, every=200)  # fmt: skip
    along = np.array([1.0, 0.0, 0.2]) / np.hypot(1.0, 0.2)
    assert told.v[-1, :3] @ along == pytest.approx(-9.81 * along[2] * 0.4, rel=0.05)


@pytest.mark.parametrize(("given", "told"), [
    ({"dt": -0.1}, "dt is -0.1; it must be a positive number of seconds"),
    ({"law": "hard"}, "law 'hard' is not known; there are"),
    ({"method": "leapfrog"}, "method 'leapfrog' is not known"),
    ({"law": np.zeros((3, 0))}, "law .* is not known"),
    ({"method": np.ones(3)}, "method .* is not known"),
    ({"law": "coulomb", "method": "euler"}, "method 'euler' is not known"),
    ({"law": "coulomb", "touching": np.array(None)}, "touching must be a name or a list of names"),
    ({"ground": 3}, "the ground is 'plane'"),
    ({"friction": -1.0}, "friction is -1.0; it must be a coefficient, 0 or more"),
    ({"friction": np.nan}, "friction is nan"),
    ({"restitution": 0.5}, "the soft law has no restitution"),
    ({"repeat": 0}, "repeat is 0; it must be a whole number from 1"),
    ({"layout": "batch_last"}, "a step takes no option 'layout'; it takes dt, ground, law"),
    ({"parameters": "*.mass", "method": "implicitfast"}, "implicitfast takes no parameters"),
    ({"parameters": "*.mass", "law": "coulomb", "product": "vjp"}, "by parameters are for law='soft'"),
    ({"parameters": "nobody.mass"}, "names nothing"),
    ({"parameters": "friction", "friction": 0.0}, "names no friction that could be a parameter"),
])  # fmt: skip
def test_refusals_of_a_step(given: dict[str, Any], told: str) -> None:
    with pytest.raises(drevo.DrevoError, match=told):
        drevo.compile(robot(), "step", **({"dt": 0.002} | given))


MESH = '<asset><mesh name="m" vertex="0 0 0 .1 0 0 0 .1 0 0 0 .1"/></asset>'


@pytest.mark.parametrize("other", ["<body><freejoint/>{}</body>", '<geom type="plane" size="1 1 1"/>'])
def test_what_has_no_rule_is_warned_about_without_a_ground(other: str) -> None:
    """Of two meshes, or of one over a plane of the file, nothing is left that touches."""
    solid = '<geom type="mesh" mesh="m" mass="1"/>'
    text = f"<mujoco>{MESH}<worldbody><body><freejoint/>{solid}</body>{other.format(solid)}</worldbody></mujoco>"
    with pytest.warns(drevo.DrevoWarning, match="pass through what they meet.*: mesh geoms"):
        drevo.compile(drevo.load(text), "step", dt=0.002, ground=None)


@pytest.mark.parametrize("law", ["soft", "coulomb"])
def test_a_robot_that_touches_nothing_is_stepped(law: str) -> None:
    """With a warning where ground was meant: a step is v + h a."""
    q, v, tau = np.array([0.1, 0.2, 0.3]), np.array([0.3, 0.1, -0.2]), np.zeros(3)
    with pytest.warns(drevo.DrevoWarning, match="has no contact geometry, so that nothing of it touches"):
        step = drevo.compile(CONTACTLESS, "step", dt=1e-3, law=law)
    free = v + 1e-3 * CONTACTLESS.forward_dynamics(q, v, tau)
    found = step(q, v, tau)
    assert np.abs(found[1] - free).max() < 1e-14 and found[2].shape == (0, 3) and found[3] < 1e-12
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drevo.compile(CONTACTLESS, "step", dt=1e-3, law=law, ground=None, product="jacobian")


def test_limits_springs_and_dampers_of_what_touches_nothing_are_those_of_mujoco() -> None:
    mujoco = pytest.importorskip("mujoco")
    m, arm, how = case(ARM)
    d = mujoco.MjData(m)
    d.qpos[:], d.qvel[:] = (1.1, -0.3), (2.0, -1.0)
    found = drevo.compile(arm, "step", ground=None, **how)(d.qpos.copy(), d.qvel.copy(), np.zeros(2))
    mujoco.mj_step(m, d)
    assert np.abs(found.v1 - d.qvel).max() < 1e-12


def test_what_passes_through_others_is_warned_of_where_it_is_stepped() -> None:
    """Kinds and names; not at loading, and not for pairs that a file excludes."""
    stack = """<mujoco><asset><mesh name="m" vertex="0 0 0 .1 0 0 0 .1 0 0 0 .1"/></asset>
     <worldbody><geom type="plane" size="1 1 1"/>
      <body name="low" pos="0 0 .1"><freejoint/><geom name="low" type="box" size=".1 .1 .1"/></body>
      <body name="high" pos="0 0 .3"><freejoint/><geom name="high" type="box" size=".1 .1 .1"/></body>
      <body pos="0 0 1"><freejoint/><geom name="egg" type="mesh" mesh="m"/></body>
     </worldbody>{}</mujoco>"""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        r = drevo.load(stack.format(""))
    q, through = r.model.initial, r"mesh geoms 'egg';"
    for law in ("soft", "coulomb"):
        with pytest.warns(drevo.DrevoWarning, match=through) as seen:
            r.simulate(q, duration=0.002, ground="plane", law=law, dt=0.002)
        told = [x for x in seen if "of compiling" not in str(x.message)]
        assert len(told) == 1 and told[0].filename == __file__
    apart = drevo.load(
        stack.format('<contact><exclude body1="low" body2="high"/></contact>').replace(
            '"mesh" mesh="m"', '"sphere" size=".1"'
        )
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drevo.compile(apart, "step", dt=0.002)


def test_refusals_of_robots_and_motions() -> None:
    r = robot()
    for given in ({"law": np.zeros((3, 0))}, {"law": "coulomb", "method": np.ones(3)}):
        with pytest.raises(drevo.InputError, match=r"(law|method) .* is not known"):
            r.simulate(r.neutral(), duration=0.01, **given)
    with pytest.raises(drevo.DrevoError, match="a step is one of a Robot"):
        drevo.compile(r.model, "step", dt=0.01)
    with pytest.raises(drevo.DrevoError, match=r"tau\(t, q, v\) has shape"):
        r.simulate(r.neutral(), None, lambda t, q, v: v[:2], duration=0.1, ground="plane")
    with pytest.raises(drevo.DrevoError, match="tau is not finite"):
        r.simulate(r.neutral(), None, np.full(r.nv, np.nan), duration=0.1, ground="plane")
    b = drevo.Builder("held")
    b.body("leg", "world", "free", mass=1.0, inertia=np.eye(3))
    b.loop("weld", "leg", (0.0, 0.0, 0.0), "world", (0.0, 0.0, 0.0))
    with pytest.raises(drevo.DrevoError, match="has loops of the kinds weld, which law='soft' does not know"):
        drevo.compile(b.robot(), "step", dt=0.01)


def test_sweeps_without_slip_have_no_derivatives() -> None:
    r = robot(HOPPER.replace("<option ", '<option noslip_iterations="3" '))
    assert r.model.stepping.noslip == 3
    with pytest.raises(drevo.InputError, match="with noslip_iterations of its file has no derivatives"):
        drevo.compile(r, "step", dt=0.002, product="vjp")


def test_a_linkage_holds_itself() -> None:
    """Softly, without geoms: it swings for half a second, and its loop stays closed within a millimetre."""
    r = drevo.load("four-bar")
    told = r.simulate(r.neutral(), duration=0.5, ground=None, law="soft")
    assert told.residual.max() < 1e-9 and np.abs(told.q[-1] - told.q[0]).max() > 0.3
    assert np.abs(r.constrained_dynamics(told.q, told.v, np.zeros(r.nv)).value).max() < 1e-3


def test_steps_that_are_too_long_end_in_a_sentence_or_a_number() -> None:
    """Never in what is not finite."""
    r = robot()
    step = drevo.compile(r, "step", dt=50.0)
    q, v = r.neutral(), np.full(r.nv, 1e5)
    try:
        for _ in range(20):
            q, v, _, residual = step(q, v, np.zeros(r.nv))
            assert np.isfinite(q).all() and np.isfinite(v).all() and np.isfinite(residual).all()
    except drevo.NumericsError:
        pass


@pytest.mark.parametrize("law", ["soft", "coulomb"])
def test_terrain_by_sample(law: str) -> None:
    """A slope and a height of each sample are those of the ground that has them for good."""
    r, n = drevo.load(BALL), 3
    made = drevo.ground.function(
        lambda x, y, slope, height: slope * x + height, parameters={"slope": 0.1, "height": 0}
    )
    step = drevo.compile(r, "step", dt=1e-3, ground=made, law=law, parameters="ground")
    assert [name for name, _ in step.parameters] == ["ground.slope", "ground.height"]
    q, v = np.tile([0.3, 0, 0.12, 0, 0, 0, 1.0], (n, 1)), np.tile([0.3, 0, -0.1, 0, 0, 0], (n, 1))
    own = np.array([[-0.2, 0.01], [0.1, 0.0], [0.2, 0.01]])
    found = step(q, v, np.zeros((n, 6)), own)
    fixed = drevo.ground.function(lambda x, y: 0.2 * x + 0.01)
    alone = drevo.compile(r, "step", dt=1e-3, ground=fixed, law=law)(q[2], v[2], np.zeros(6))
    assert np.abs(found.forces[2]).max() > 1.0 and not found.forces[0].any()
    for x, y in zip(found[:3], alone):
        assert x[2] == pytest.approx(y, rel=1e-12, abs=1e-12)
    with pytest.raises(drevo.InputError, match="the ground has no parameters"):
        drevo.compile(r, "step", dt=1e-3, ground=fixed, law=law, parameters="ground")


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda f: pickle.loads(pickle.dumps(f))])  # noqa: S301
@pytest.mark.parametrize("option", [{}, {"law": "coulomb"}, {"product": "vjp", "tangents": "numbers"}])
def test_a_copy_of_a_step_is_that_step(copied: Any, option: dict[str, Any]) -> None:
    """On ground whose functions pickle cannot take: what they were when the step was compiled."""
    mu = (lambda x, y: 0.5 + 0.1 * x) if option.get("law") else None
    floor = drevo.ground.function(lambda x, y: 0.1 * x, friction=mu)
    step = drevo.compile(drevo.load(BALL), "step", dt=1e-3, ground=floor, **option)
    q = np.array([0.3, 0, 0.12, 0, 0, 0, 1.0])
    given = [q, *(np.full(shape, 0.1) for _, shape in step.inputs[1:])]
    assert all(np.array_equal(x, y) for x, y in zip(step(*given), copied(step)(*given)))


def test_ellipsoids_are_dragged_as_mujocos(tmp_path: Path) -> None:
    """About geoms of each kind, which touch nothing, at all speeds; read out of files and models, and kept."""
    mujoco = pytest.importorskip("mujoco")
    kinds = {"ellipsoid": ".1 .2 .05", "capsule": ".05 .2", "box": ".05 .2 .001", "sphere": ".05"} | {
        "cylinder": ".05 .2"
    }
    geom = '<geom type="{}" size="{}" fluidshape="ellipsoid" {} pos=".1 0 0" euler="20 30 40"/>'
    text = """<mujoco><option density="60" viscosity=".3" wind="1 2 3"/><default>
      <geom contype="0" conaffinity="0"/></default><worldbody><body><freejoint/><geom size=".1"/>"""
    for k, (kind, size) in enumerate(kinds.items()):
        shape = geom.format(kind, size, 'fluidcoef=".4 .3 1.2 .8 .7"' if k else "")
        text += f'<body name="{kind}" pos="0 {k} 0"><joint axis="1 1 0"/>{shape}</body>'
    text += "</body></worldbody></mujoco>"
    m: Any = mujoco.MjModel.from_xml_string(text)
    with pytest.warns(drevo.DrevoWarning, match="density, viscosity, wind"):
        robots = [drevo.load(text), drevo.load(m)]
    robots[0].save(tmp_path / "dragged.xml")
    with pytest.warns(drevo.DrevoWarning, match="density, viscosity, wind"):
        robots.append(drevo.load(tmp_path / "dragged.xml"))
    first, *others = ([(x.kind, x.size, x.fluid) for x in r.model.geoms] for r in robots)
    assert len(first) == 5 and others == [first, first]
    step, rng = drevo.compile(robots[0], "step", dt=m.opt.timestep, ground=None), np.random.default_rng(0)
    for speed in (0.0, 1e-3, 0.1, 1.0, 10.0):
        d, at = mujoco.MjData(m), rng.normal(0.0, speed, m.nv)
        d.qvel[:] = at
        mujoco.mj_step(m, d)
        found = step(robots[0].neutral(), at, np.zeros(m.nv))
        assert found.v1[3:] == pytest.approx(d.qvel[3:], rel=1e-12, abs=1e-14)
    jacobian = drevo.compile(robots[0], "step", dt=0.002, ground=None, product="jacobian")
    assert all(np.isfinite(x).all() for x in jacobian(robots[0].neutral(), *np.zeros((2, m.nv))))


def test_a_medium_drags_as_mujocos_does() -> None:
    """In a wind, on a box whose rotors coast, a body of skew inertia, a rod and a ball; the warning says what
    leaves it out."""
    mujoco = pytest.importorskip("mujoco")
    text = """<mujoco><option density="30" viscosity=".4" wind="3 -1 2" timestep=".005"/><worldbody><body>
      <joint type="free" armature=".3"/><geom type="box" size=".2 .1 .05" euler="10 20 30"/>
      <body pos=".2 0 0"><joint axis="0 1 1"/>
       <inertial pos=".1 .02 0" mass="2" fullinertia=".05 .07 .09 .01 .005 -.008"/>
        <body pos=".2 0 0"><joint/><geom type="capsule" size=".03 .1" pos=".1 0 0" euler="30 40 50"/>
         <body pos=".2 0 0"><joint axis="1 0 0"/><geom size=".05" pos="0 .1 0" euler="30 40 50"/></body></body>
      </body></body></worldbody></mujoco>"""
    with pytest.warns(drevo.DrevoWarning, match="density, viscosity, wind"):
        r = drevo.load(text)
    m: Any = mujoco.MjModel.from_xml_string(text)
    d, rng = mujoco.MjData(m), np.random.default_rng(0)
    q, v = r.random(rng), rng.normal(0.0, 2.0, r.nv)
    turn = r.pose(q, r.model.links[1].name)[:3, :3]
    d.qpos[:], d.qvel[:] = [*q[:3], q[6], *q[3:6], *q[7:]], [*turn @ v[:3], *v[3:]]
    mujoco.mj_step(m, d)
    found = drevo.compile(r, "step", dt=0.005, ground=None)(q, v, np.zeros(r.nv))
    assert found.q1[[0, 1, 2, 6, 3, 4, 5, 7, 8, 9]] == pytest.approx(d.qpos, abs=1e-14)
    assert found.v1[3:] == pytest.approx(d.qvel[3:], rel=1e-12)
    with pytest.raises(drevo.InputError, match="which implicitfast does not know"):
        drevo.compile(r, "step", dt=0.005, ground=None, method="implicitfast")
