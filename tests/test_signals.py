"""Controls, activations and sensors of steps beside MuJoCo's mj_step, and by laws where it has none."""

from __future__ import annotations

import pickle
import random
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import drevo
from drevo.envs.simulation import mujoco_state
from drevo.model.contact import ACTUATOR_DYNAMICS, LINK_SENSORS
from drevo.model.loaders.writers import text_of, write_model

mujoco = pytest.importorskip("mujoco")

STATES = 60
NU, NA = 9, 5
TOLERANCE = 1e-9
SITES = ("box", "ball", "rod", "drum")
WORLD = """<worldbody><geom type="plane" size="50 50 1"/><geom type="box" size=".3 .3 .1" pos=".5 0 .1"/>
<site name="sky" pos="0 0 2" euler="180 0 0"/>
<body name="trunk" pos="0 0 .25"><freejoint/><geom type="box" size=".2 .1 .05"/>
 <site name="box" type="box" size=".21 .11 .06" pos=".01 0 0" euler="10 20 30"/>
 <body name="a" pos=".3 0 0"><joint name="a" axis="0 1 0" damping=".1" range="-90 90"/>
  <geom type="capsule" fromto="0 0 0 .4 0 0" size=".05"/>
  <site name="ball" size=".1 .05 .2" type="ellipsoid" pos=".3 0 0"/>
  <body name="b" pos=".4 0 0"><joint name="b" axis="0 1 .2" range="-2 2" actuatorfrcrange="-4 4"/>
   <geom type="capsule" fromto="0 0 0 .4 0 .1" size=".05" contype="0"/>
   <site name="rod" type="capsule" size=".06 .3" pos=".2 0 .1" euler="0 90 0"/>
   <body name="fixed" pos=".4 0 .1"><geom size=".1" mass="2"/><geom type="box" size=".05 .1 .1" pos="0 .1 0"/>
    <site name="drum" type="cylinder" size=".2 .3" euler="30 0 0"/>
    <body name="c"><joint name="c" type="slide" axis="1 0 0"/><geom size=".07" pos=".2 0 0" contype="0"/></body>
   </body></body></body></body></worldbody>
<tendon><fixed name="t"><joint joint="a" coef=".5"/><joint joint="b" coef="-1.2"/></fixed>
 <spatial name="s"><site site="sky"/><site site="rod"/></spatial></tendon>"""
ACTUATORS = """<motor joint="a" gear="3" ctrlrange="-1 1"/><position joint="b" kp="20" kv="2" timeconst=".1"/>
<general joint="c" dyntype="filter" dynprm=".05" gainprm="10" biastype="affine" biasprm="1 -2 -.5"
 actrange="0 .5"/>
<intvelocity joint="a" kp="5" kv="1" actrange="-1 1"/><motor tendon="t" gear="2" forcerange="-1 1"/>
<general tendon="s" dyntype="filterexact" dynprm=".2" gaintype="affine" gainprm="3 1 .5" actearly="true"/>
<muscle joint="b" lengthrange="-1 1" gear="-1"/><damper joint="a" kv="2" ctrlrange="0 1"/>
<muscle tendon="s" lengthrange=".2 3" tausmooth=".3" force="50" timeconst=".02 .05"/>
<cylinder joint="c" diameter="1.5" timeconst=".3" bias="1 -1 -.2"/><velocity joint="c" kv="3"/>"""
PLACED = tuple(kind for kind in LINK_SENSORS if not kind.startswith("frame"))
SENSORS = "".join(f'<{kind} name="{kind} {site}" site="{site}"/>' for kind in PLACED for site in (*SITES, "sky"))
SENSORS += "".join(
    f'<{kind} name="{kind} {site}" objtype="site" objname="{site}"/>'
    for kind in LINK_SENSORS
    if kind not in PLACED
    for site in SITES
)
READ = '<jointpos joint="a"/><jointvel joint="b"/><jointactuatorfrc joint="b"/><gyro site="rod" cutoff=".3"/>'


SENSORS += READ
# what holds links is not known where tendons along paths pull at them
PULLED = re.sub(r"<(force|torque) .*?/>", "", SENSORS)
PLAIN = re.sub(r'<\w+ tendon="s".*?/>', "", ACTUATORS)


def whole(options: str, world: str = WORLD, actuators: str = PLAIN, sensors: str = SENSORS) -> str:
    return f"<mujoco>{options}{world}<actuator>{actuators}</actuator><sensor>{sensors}</sensor></mujoco>"


def states(robot: Any, seed: int, count: int = STATES) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    start = np.array(robot.model.initial or robot.neutral())
    q = np.array([robot.integrate(start, 0.3 * rng.normal(size=robot.nv)) for _ in range(count)])
    return q, rng.normal(size=(count, robot.nv))


def theirs(robot: Any, q: Any, v: Any) -> tuple[Any, Any]:
    """In MuJoCo's order."""
    return tuple(np.array(x, float).T for x in mujoco_state(robot.model, list(q.T), list(v.T)))  # type: ignore[return-value]


def beside(text: str, seed: int, method: str, compiled: bool = False) -> None:
    """Steps from random states under random controls: velocities, activations, readings."""
    model = mujoco.MjModel.from_xml_string(text)
    robot = drevo.load(model if compiled else text)
    model.opt.tolerance, model.opt.iterations, model.opt.ls_iterations = 0.0, 200, 100
    model.opt.ls_tolerance, model.opt.ccd_tolerance = 1e-12, 1e-14
    assert len(robot.model.actuators) == model.nactuator and len(robot.model.sensors) == model.nsensor
    f = drevo.compile(
        robot, "step", dt=model.opt.timestep, ground=None, method=method, controls=True, sensors=True
    )
    (q, v), rng, data = states(robot, seed), np.random.default_rng(seed), mujoco.MjData(model)
    u, act = rng.uniform(-1.5, 1.5, (STATES, model.nu)), rng.uniform(0.0, 1.0, (STATES, model.na))
    found = f(q, v, u, *([act] if model.na else []))
    (Q, V), (Q1, V1) = theirs(robot, q, v), theirs(robot, found.q1, found.v1)
    for i in range(STATES):
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:], data.ctrl[:], data.act[:] = Q[i], V[i], u[i], act[i]
        mujoco.mj_step(model, data)
        assert abs(Q1[i] - data.qpos).max() < TOLERANCE
        assert abs(V1[i] - data.qvel).max() < TOLERANCE * max(1.0, abs(data.qvel).max())
        if model.na:
            assert abs(found.act1[i] - data.act).max() < TOLERANCE
        forces = abs(data.efc_force).max(initial=1.0)
        for k, x in enumerate(robot.model.sensors):
            at, n = model.sensor_adr[k], model.sensor_dim[k]
            here, there = found.sensordata[i, f.sensors[x.name]], data.sensordata[at : at + n]
            there = -there if x.kind == "framequat" and here @ there < 0.0 else there
            size = forces if x.kind in ("touch", "force", "torque") else max(1.0, abs(there).max())
            assert abs(here - there).max() < TOLERANCE * size, x.name


@pytest.mark.parametrize("integrator, method", [("Euler", "euler"), ("implicitfast",) * 2, ("RK4", "rk4")])
def test_steps_and_readings_are_those_of_mujoco(integrator: str, method: str) -> None:
    option = f'<option integrator="{integrator}" timestep=".004"/>'
    beside(whole(option), 0, method)
    beside(whole(option, actuators=ACTUATORS, sensors=PULLED), 1, method)


@pytest.mark.parametrize("seed", range(6))
def test_random_drives_are_those_of_mujoco(seed: int) -> None:
    """Random general actuators at joints and tendons, with flags of the file."""
    rng, made = random.Random(seed), []
    for _ in range(6):
        on = rng.choice(['joint="a"', 'joint="b"', 'joint="c"', 'tendon="t"', 'tendon="s"'])
        gain, bias = (" ".join(f"{rng.uniform(-4, 4):.3g}" for _ in range(3)) for _ in "gb")
        kinds = rng.choice(ACTUATOR_DYNAMICS), rng.choice(("fixed", "affine")), rng.choice(("none", "affine"))
        given = dict(zip(("dyntype", "gaintype", "biastype"), kinds)) | {"gainprm": gain, "biasprm": bias}
        given |= {"dynprm": f"{rng.uniform(0.01, 0.3):.3g} {rng.uniform(0.01, 0.3):.3g} {rng.choice((0, 0.4))}"}
        given |= {"gear": f"{rng.uniform(-3, 3):.3g}", "actearly": rng.choice(("true", "false"))}
        given |= {"forcerange": "-5 4"} if rng.random() < 0.5 else {}
        given |= {"actrange": "-0.2 0.6"} if rng.random() < 0.5 and kinds[0] != "none" else {}
        given |= {"ctrlrange": "-1 0.5"} if rng.random() < 0.5 else {}
        made.append(f"<general {on} {' '.join(f'{k}={x!r}' for k, x in given.items())}/>")
    integrator, method = rng.choice([("Euler", "euler"), ("implicitfast",) * 2, ("RK4", "rk4")])
    flags = '<flag clampctrl="disable"/>' if seed % 2 else '<flag contact="disable"/>'
    option = f'<option integrator="{integrator}" timestep=".003">{flags}</option>'
    beside(whole(option, actuators="".join(made), sensors='<jointactuatorfrc joint="b"/>'), seed, method)


def test_places_in_loops_are_felt() -> None:
    """So many pairs that steps loop over them; boxes and cylinders too, whose places are searched for."""
    parts = []
    for k in range(8):
        kind = ('type="box" size=".1 .1 .1"', 'type="cylinder" size=".1 .1"', 'size=".1"')[k % 3]
        parts.append(f'<body pos="{0.22 * k} 0 {0.1 - 0.004 * (k % 2)}"><freejoint/><geom {kind}/>')
        parts.append(f'<site name="s{k}" type="box" size=".2 .2 .2"/></body>')
    world = f'<worldbody><geom type="plane" size="5 5 1"/>{"".join(parts)}</worldbody>'
    sensors = "".join(f'<touch name="t{k}" site="s{k}"/>' for k in range(8))
    robot = drevo.load(whole("", world, "", sensors))
    f = drevo.compile(robot, "step", dt=0.002, ground=None, sensors=True)
    assert robot.model.actuators == () and f.outputs[2][1][0] > 48
    q, v = np.array(robot.model.initial), np.zeros(robot.nv)
    found = f(q, v, np.zeros(robot.nv))
    model = mujoco.MjModel.from_xml_string(whole("", world, "", sensors))
    model.opt.tolerance, model.opt.iterations, data = 0.0, 200, mujoco.MjData(model)
    mujoco.mj_step(model, data)
    assert abs(found.sensordata - data.sensordata).max() < 1e-6 and (found.sensordata[1::2] > 1.0).all()


@pytest.mark.parametrize("law", ["soft", "coulomb"])
def test_what_stands_is_felt_by_its_weight(law: str) -> None:
    """A sensor of touch reads the weight of what stands on it, one of force what hangs on its link, and an
    accelerometer gravity; momentum is gained by the forces that are read."""
    text = """<mujoco><worldbody><geom type="plane" size="5 5 1"/><body pos="0 0 .1"><freejoint/>
     <geom type="box" size=".1 .1 .1" mass="3"/><site name="zone" type="box" size=".2 .2 .2"/>
     <body pos="0 0 .1"><geom type="sphere" size=".05" mass="2" contype="0"/><site name="top"/></body></body>
     </worldbody><sensor><touch name="weight" site="zone"/><force name="held" site="top"/>
     <accelerometer name="up" site="top"/></sensor></mujoco>"""
    robot = drevo.load(text)
    q, v = np.array(robot.model.initial), np.zeros(6)
    f = drevo.compile(robot, "step", dt=0.001, law=law, sensors=True)
    for _ in range(300 if law == "soft" else 3):
        found = f(q, v, np.zeros(6))
        q, v = found.q1, found.v1
    weight, held, up = (found.sensordata[at] for at in f.sensors.values())
    assert abs(weight[0] - 5.0 * 9.81) < 1e-4 and abs(held - [0, 0, 2.0 * 9.81]).max() < 1e-4
    assert abs(up - [0, 0, 9.81]).max() < 1e-4 and abs(found.forces[:, 2].sum() - weight[0]) < 1e-9
    falling = f(q + 0.5 * np.eye(7)[2], v, np.zeros(6))
    assert abs(falling.sensordata).max() < 1e-4


@pytest.mark.parametrize("law", ["soft", "coulomb"])
def test_a_batch_is_its_rows_and_repeats_are_steps(law: str) -> None:
    robot = drevo.load(whole("", sensors=SENSORS))
    options: dict[str, Any] = {"dt": 0.002, "ground": None, "law": law, "controls": True, "sensors": True}
    f = drevo.compile(robot, "step", **options)
    (q, v), rng = states(robot, 3, 11), np.random.default_rng(3)
    u, act = rng.uniform(-1, 1, (11, NU)), rng.uniform(0, 1, (11, NA))
    found = f(q, v, u, act)
    for k in range(11):
        alone = f(q[k], v[k], u[k], act[k])
        for x, y in zip(found, alone):
            assert abs(x[k] - y).max(initial=0.0) <= 1e-11 * max(1.0, abs(x[k]).max(initial=0.0))
    again = f(found.q1, found.v1, u, found.act1)
    twice = drevo.compile(robot, "step", repeat=2, **options)(q, v, u, act)
    apart = abs(twice.sensordata - again.sensordata) / np.maximum(1.0, abs(again.sensordata))
    assert abs(twice.act1 - again.act1).max() < 1e-12 and apart.max() < 1e-7


PIDS = """<pid joint="a" kp="20" kv="2" ki="30" imax=".02" slewmax="20" input="pos vel ff" posrange="-1 1"
 velrange="-1 .5" ffrange="-.7 .7"/><pid joint="b" gear="-1.5" kp="9" kv="1" slewmax="3" forcerange="-3 3"/>
<motor joint="a"/><pid tendon="t" kp="7" kv=".5" ki="4" input="pos ff"/><pid joint="c" kp="3" kv="5" input="vel"/>
<pid joint="b" kp="6" kv="2" ki="50" imax=".4" inheritrange=".4"/>
<pid tendon="s" kp="6" input="ff" ctrlrange="-1 1"/>"""


@pytest.mark.parametrize("integrator, method", [("Euler", "euler"), ("implicitfast",) * 2, ("RK4", "rk4")])
def test_pid_controllers_are_those_of_mujoco(integrator: str, method: str, tmp_path: Path) -> None:
    """From random states, with parameters of defaults, along a motion, and written and read again."""
    text = whole(f'<option integrator="{integrator}" timestep=".004"/>', actuators=PIDS, sensors=READ)
    beside(text, 3, method)
    usual = '<default><pid kp="5" ki="3" input="pos ff" imax=".3" posrange="-1 1"/></default>'
    bare = '<pid joint="a" ki="2"/><position joint="b"/>'
    beside(whole(usual, actuators=bare, sensors=""), 4, "euler")
    robot, model = drevo.load(text), mujoco.MjModel.from_xml_string(text)
    assert [len(x.ranges) for x in robot.model.actuators] == list(model.actuator_ctrlnum)
    path = tmp_path / "robot.xml"
    path.write_text(text_of(write_model(robot.model, ".xml"), ".xml"))
    assert drevo.load(path).model.actuators == robot.model.actuators


MOTORS = """<dcmotor joint="a" motorconst=".5 .3" resistance="2" inductance=".1" saturation="0 3 40" gear="2"/>
<dcmotor joint="b" nominal="12 3 20" input="pos vel ff voltage" controller="5 3 .4 3 .2 9" cogging=".3 4 .5"
 thermal="10 0 40 .004 25 20" ctrlrange="-1 1"/>
<dcmotor tendon="t" motorconst="0 .4" resistance="3" input="" saturation=".05" cogging=".1 3"/><motor joint="a"/>
<dcmotor joint="c" motorconst="2" resistance="3" input="ff" inductance="0 .03" thermal="2 3 0 .01 1 2"/>
<dcmotor joint="a" motorconst=".2" resistance="3" input="none"/><dcmotor joint="b" gear="-2" motorconst=".3"
 resistance="2" lugre="90 .5 .3 .4 .7" inductance="0 .03" thermal="2 3 0 .01 1 2" saturation=".2 0 9"/>
<dcmotor joint="c" motorconst="2" resistance="3" input="pos" controller="3 1 1 0 .4"/>"""


@pytest.mark.parametrize("integrator, method", [("Euler", "euler"), ("implicitfast",) * 2, ("RK4", "rk4")])
def test_motors_are_those_of_mujoco(integrator: str, method: str, tmp_path: Path) -> None:
    """From random states, along a motion, and written and read again."""
    option = f'<option integrator="{integrator}" timestep=".004"/>'
    text = whole(option, actuators=MOTORS, sensors=READ)
    beside(text, 5, method)
    along(whole(option, ARM, re.sub(r'<dcmotor joint="c".*?/>', "", MOTORS), ""), method, 100, 1e-10)
    model, path = drevo.load(text).model, tmp_path / "robot.xml"
    path.write_text(text_of(write_model(model, ".xml"), ".xml"))
    assert drevo.load(path).model.actuators == model.actuators


def along(text: str, method: str, steps: int, tolerance: float) -> None:
    """A motion from the initial state under random controls, each for 10 steps."""
    robot, model = drevo.load(text), mujoco.MjModel.from_xml_string(text)
    model.opt.tolerance, model.opt.iterations = 0.0, 100
    f = drevo.compile(robot, "step", dt=model.opt.timestep, ground=None, method=method, controls=True)
    data, rng = mujoco.MjData(model), np.random.default_rng(0)
    q, v, act = np.array(robot.model.initial or robot.neutral()), np.zeros(robot.nv), np.zeros(model.na)
    for k in range(steps):
        if k % 10 == 0:
            data.ctrl[:] = rng.uniform(-1.5, 1.5, model.nu)
        found = f(q, v, data.ctrl, *([act] if model.na else []))
        q, v, act = found.q1, found.v1, getattr(found, "act1", act)
        mujoco.mj_step(model, data)
    for here, there in ((q, data.qpos), (v, data.qvel), (act, data.act)):
        assert abs(here - there).max(initial=0.0) < tolerance * max(1.0, abs(there).max(initial=0.0))


ARM = """<worldbody><body><joint name="a" axis="0 1 0" damping=".1" range="-90 90"/>
<geom type="capsule" fromto="0 0 0 .4 0 0" size=".05" contype="0"/>
<body pos=".4 0 0"><joint name="b" axis="0 1 .2"/>
<geom type="capsule" fromto="0 0 0 .4 0 .1" size=".05" contype="0"/></body></body></worldbody>
<tendon><fixed name="t"><joint joint="a" coef=".5"/><joint joint="b" coef="-1.2"/></fixed></tendon>"""


def random_pid(rng: random.Random) -> str:
    given = {x: f"{rng.uniform(0.1, 9):.3g}" for x in ("kp", "kv", "ki", "slewmax") if rng.random() < 0.8}
    given |= {"imax": f"{rng.uniform(0.01, 0.2):.3g}"} if "ki" in given and rng.random() < 0.7 else {}
    given |= {"velrange": "-1 .5"} if rng.random() < 0.5 else {}
    given |= {"input": " ".join(["pos", *(x for x in ("vel", "ff") if rng.random() < 0.5)])}
    return " ".join(f"{k}={x!r}" for k, x in given.items())


def random_motor(rng: random.Random) -> str:
    def numbers(*most: float) -> str:
        return " ".join(f"{rng.uniform(0.1, 1) * x:.3g}" for x in most)

    usual = {
        "inductance": numbers(0, 0.1), "saturation": numbers(2, 0, 90), "cogging": numbers(0.3, 9, 3),
        "thermal": numbers(9, 9, 0, 0.01, 30, 30), "lugre": numbers(90, 1, 0.5, 0.8, 1),
    }  # fmt: skip
    given = {k: x for k, x in usual.items() if rng.random() < 0.6}
    given |= {"motorconst": numbers(1, 1), "resistance": numbers(4)}
    inputs = [x for x in ("pos", "vel", "ff", "voltage") if rng.random() < 0.6] or ["none"]
    given |= {"controller": numbers(9, 9, 1, 4, 0.2, 20)} if "pos" in inputs else {}
    return " ".join(f"{k}={x!r}" for k, x in {**given, "input": " ".join(inputs)}.items())


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("tag", ["pid", "dcmotor"])
def test_motions_under_controllers_are_those_of_mujoco(seed: int, tag: str) -> None:
    rng = random.Random(seed)
    drive, gears = {"pid": random_pid, "dcmotor": random_motor}[tag], (rng.uniform(-2, 2) for _ in range(3))
    rows = zip(('joint="a"', 'joint="b"', 'tendon="t"'), gears)
    drives = "".join(f'<{tag} {on} gear="{gear:.3g}" {drive(rng)}/>' for on, gear in rows) + '<motor joint="a"/>'
    integrator, method = rng.choice([("Euler", "euler"), ("implicitfast",) * 2, ("RK4", "rk4")])
    option = f'<option integrator="{integrator}" timestep=".004"/>'
    along(whole(option, ARM, drives, ""), method, 100, 1e-10)


def test_a_motion_tells_of_actuators_that_are_given_nothing() -> None:
    """Servos would hold the robot at control 0; motors alone would not."""
    for actuators, told in ((PLAIN, 1), ('<motor joint="a"/>', 0)):
        robot = drevo.load(whole("", actuators=actuators, sensors=""), strict=True)
        for given in ({}, {"tau": np.zeros(robot.nv)}):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                robot.simulate(robot.model.initial, law="soft", ground=None, duration=0.002, **given)
            assert len([x for x in caught if "exert nothing" in str(x.message)]) == (told and not given)


def test_motions_hold_controls_and_tell_readings() -> None:
    """simulate is its steps: activations and readings at the records, in batches, by functions of time."""
    robot = drevo.load(whole('<option timestep=".002"/>'))
    start, rng = np.array(robot.model.initial), np.random.default_rng(1)
    u, first = rng.uniform(-1, 1, NU), rng.uniform(0, 1, NA)
    given: dict[str, Any] = {"law": "soft", "ground": None, "method": "euler", "act": first, "sensors": True}
    motion = robot.simulate(start, controls=u, duration=0.04, dt=0.002, every=5, **given)
    f = drevo.compile(robot, "step", dt=0.002, ground=None, controls=True, sensors=True, method="euler")
    q, v, act = start, np.zeros(robot.nv), first
    assert motion.act is not None
    for k in range(20):
        found = f(q, v, u, act)
        if k % 5 == 0:
            assert abs(motion.act[k // 5] - act).max() < 1e-12
            for name, at in f.sensors.items():
                assert abs(motion.sensors[name][k // 5] - found.sensordata[at]).max() < 1e-9, name
            assert abs(motion.efforts[k // 5][6:8] - robot.v_of()[6:8]).max() > 0.0
        q, v, act = found.q1, found.v1, found.act1
    assert abs(motion.q[-1] - q).max() < 1e-12 and abs(motion.act[-1] - act).max() < 1e-12
    moving = robot.simulate(start, controls=lambda t, q, v: u, duration=0.04, dt=0.002, **given)
    assert abs(moving.q[-1] - q).max() < 1e-12
    given |= {"sensors": ["touch box"], "act": None}
    starts, shares = np.tile(start, (3, 1)), np.outer([1, 2, 3], u)
    many = robot.simulate(starts, controls=shares, duration=0.01, dt=0.002, **given)
    assert many.sensors["touch box"].shape == (6, 3, 1) and np.array(many.act).shape == (6, 3, NA)
    assert many.efforts.shape == (6, 3, robot.nv)


def test_models_are_written_and_read_again(tmp_path: Path) -> None:
    model = drevo.load(whole("")).model
    for suffix in (".xml", ".json", ".toml"):
        path = tmp_path / f"robot{suffix}"
        path.write_text(text_of(write_model(model, suffix), suffix))
        again = drevo.load(path).model
        assert again.actuators == model.actuators, suffix
        kinds = [(x.name, x.kind, x.shape, x.cutoff) for x in again.sensors]
        assert kinds == [(x.name, x.kind, x.shape, x.cutoff) for x in model.sensors], suffix


def test_functions_are_pickled_with_their_sensors() -> None:
    names = ["touch box", "gyro rod"]
    f = drevo.compile(drevo.load(whole("")), "step", dt=0.002, controls=True, sensors=names)
    again = pickle.loads(pickle.dumps(f))  # noqa: S301
    assert again.sensors == f.sensors == {"touch box": slice(0, 1), "gyro rod": slice(1, 4)}


def test_faults_are_one_sentence() -> None:
    robot = drevo.load(whole(""))
    q, v, u, act = np.array(robot.model.initial), np.zeros(robot.nv), np.zeros(NU), np.zeros(NA)
    f = drevo.compile(robot, "step", dt=0.002, controls=True)
    for given, error, words in (
        ((q, v, u[:3], act), drevo.InputError, r"ctrl has shape \(3,\)"),
        ((q, v, u), drevo.InputError, "missing 'act'"),
        ((q, v, u * np.nan, act), drevo.NumericsError, r"ctrl\[0\] is nan"),
        ((q, v, u, act + np.inf), drevo.NumericsError, r"act\[0\] is inf"),
    ):
        with pytest.raises(error, match=words):
            f(*given)
    closed = WORLD + '<equality><connect body1="fixed" body2="trunk" anchor="0 0 0"/></equality>'
    field = '<asset><hfield name="h" nrow="2" ncol="2" size="1 1 1 1"/></asset>'
    odd = WORLD.replace("</worldbody>", f'<geom type="hfield" hfield="h"/></worldbody>{field}')
    strung = drevo.load(whole("", actuators=ACTUATORS))
    bare = drevo.load(whole("", actuators="", sensors=""))
    asked: tuple[tuple[Any, dict[str, Any], str], ...] = (
        (robot, {"sensors": "touch bx"}, "did you mean 'touch box'"),
        (robot, {"sensors": 3}, "a name or a list of names"),
        (robot, {"controls": 1}, "must be True or False"),
        (robot, {"sensors": True, "product": "vjp"}, "products are of states"),
        (robot, {"sensors": ["force box"], "parameters": "*.mass"}, "'force box' read what holds links"),
        (robot, {"sensors": True}, "read forces of actuators; give controls=True"),
        (bare, {"controls": True}, "has no actuators that are read"),
        (bare, {"sensors": ["imu"]}, "nothing that measures"),
        (drevo.load(whole("", closed)), {"sensors": ["torque rod"]}, "whose loops are closed"),
        (drevo.load(whole("", odd)), {"sensors": ["rangefinder rod"]}, "among things of the kinds hfield"),
        (strung, {"sensors": ["torque rod"], "controls": True}, "tendon 's' pulls at links"),
    )
    for which, options, words in asked:
        with pytest.raises(drevo.InputError, match=words):
            drevo.compile(which, "step", dt=0.002, **options)
    driven: tuple[tuple[dict[str, Any], str], ...] = (
        ({"controls": u, "tau": v}, "tau and controls both"),
        ({"controls": u[:2], "act": act}, r"controls has shape \(2,\)"),
        ({"act": act}, "act is of actuators with dynamics"),
        ({"controls": u, "act": act[:1]}, r"act has shape \(1,\)"),
    )
    for given_too, words in driven:
        with pytest.raises(drevo.InputError, match=words):
            robot.simulate(q, law="soft", duration=0.01, **given_too)
    with pytest.raises(drevo.InputError, match="controls is of a motion on a ground"):
        robot.simulate(q, controls=u, duration=0.01)
    with pytest.raises(drevo.InputError, match="5 activations, of actuators"):
        drevo.envs.Env(robot, reward=lambda s: 0.0).reset()


@pytest.mark.parametrize(
    "actuator",
    ['<muscle joint="a"/>', '<dcmotor joint="a" motorconst=".05" resistance="1" lugre="1000 1 .3"/>',
     '<general joint="a" dyntype="user"/>', '<general site="rod"/>',
     '<general joint="a" gaintype="pid" biastype="affine" gainprm="0" biasprm="1 -3 -2"/>'],
)  # fmt: skip
def test_what_is_not_read_is_noted(actuator: str) -> None:
    robot = drevo.load(whole("", actuators=actuator, sensors=""))
    assert robot.model.actuators == () and any("actuator not read" in x for x in robot.notes)


SIZED = """<mujoco><worldbody><geom type="plane" size="5 5 1"/>
<body name="arm" pos="0 0 1"><joint axis="0 1 0"/><geom size=".05" contype="0" conaffinity="0"/>
 <site name="eye" pos=".3 0 0" euler="180 0 0"/></body>
<body name="cube" pos=".3 0 .09"><freejoint/><geom name="cube" type="box" size="{}" mass="1"/>
 <site name="all" size=".3"/><inertial pos="0 0 0" mass="1" diaginertia=".01 .01 .01"/></body></worldbody>
<sensor><rangefinder name="ray" site="eye"/><touch name="felt" site="all"/><force name="held" site="all"/></sensor>
</mujoco>"""


@pytest.mark.parametrize("law", ["soft", "coulomb"])
def test_sensors_know_sizes_by_sample(law: str) -> None:
    """Readings of a step with sizes as parameters are those of one compiled with these sizes."""
    usual, other = (drevo.load(SIZED.format(size)) for size in (".1 .1 .1", ".12 .11 .095"))
    options: Any = {"dt": 0.002, "ground": None, "law": law, "sensors": True}
    q, v, tau = usual.initial, np.linspace(-0.1, 0.1, usual.nv), np.zeros(usual.nv)
    sized = drevo.compile(usual, "step", parameters=["size.cube"], **options)
    read = sized(q, v, tau, [0.12, 0.11, 0.095])
    plain = drevo.compile(other, "step", **options)(q, v, tau)
    assert np.abs(read.sensordata - plain.sensordata).max() < TOLERANCE
    assert np.abs(read.v1 - plain.v1).max() < TOLERANCE and plain.sensordata[0] == pytest.approx(0.815)
