"""Loops of MJCF files: connect, weld and joint equalities hold here exactly what MuJoCo holds by stiff springs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

import drevo
from drevo import ModelError, Robot
from drevo.constraint import values as constraint

STIFF = 'solref="0.0005 1" solimp="0.999999 0.999999 0.001"'
HEAD = '<mujoco><option timestep="1e-4" integrator="RK4"><flag contact="disable"/></option><worldbody>'
BODIES = """
<body name="a" pos="0 0 1"><joint name="j" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/>
<body name="b" pos=".3 0 0" euler="0 30 0"><joint name="k" axis="0 1 0" ref="10"/>
<geom type="capsule" fromto="0 0 0 .3 0 .1" size=".02"/>
<frame pos=".2 0 0"><site name="sb" pos=".05 0 .05"/></frame>
</body></body><body name="c" pos=".6 0 1" euler="0 20 0">
<joint name="l" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 0 0 .3" size=".02"/><site name="sc" pos="-.02 0 -.09"/></body>
<body name="d" pos="1 0 1">
<joint name="m" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 .3" size=".02"/></body>
<body name="f" pos="1 1 1" euler="10 20 30"><freejoint/><geom type="box" size=".1 .2 .3"/></body></worldbody>
<equality>"""
TAIL = "</equality></mujoco>"
CONNECT = '<connect body1="b" body2="c" anchor=".25 0 .05" {s}/>'
WELD = '<weld body1="d" body2="f" anchor="0.1 0 0" {s}/>'
POSED = '<weld body1="d" body2="f" anchor="0.1 0.2 0" relpose="0.1 0.9 0 0.9 0.1 0.2 0.1" {s}/>'
SITES = '<connect site1="sb" site2="sc" {s}/>'
JOINT = '<joint joint1="m" joint2="k" polycoef="0.1 0.5 0.2 0 0.1" {s}/>'
LOCK = '<joint joint1="k" polycoef="0.1 0 0 0 0" {s}/>'


def both(path: Path, *held: str) -> tuple[Robot, Any, Any]:
    text = HEAD + BODIES + "".join(x.format(s=STIFF) for x in held) + TAIL
    path.write_text(text)
    model = mujoco.MjModel.from_xml_string(text)
    return drevo.load(str(path), strict=True), model, mujoco.MjData(model)


def ours(qpos: Any) -> Any:
    """wxyz to xyzw."""
    q = np.array(qpos)
    q[7:11] = np.roll(q[7:11], -1)
    return q


@pytest.mark.parametrize("held", [CONNECT, WELD, POSED, SITES, JOINT, LOCK])
def test_the_gap_is_that_of_mujoco(tmp_path: Path, held: str) -> None:
    robot, model, data = both(tmp_path / "r.xml", held)
    data.qpos[:] += 0.05 * np.sin(np.arange(11.0))
    mujoco.mj_normalizeQuat(model, data.qpos)
    mujoco.mj_forward(model, data)
    gap = robot.constrained_dynamics(ours(data.qpos), np.zeros(10), np.zeros(10)).value
    places = slice(0, 3) if gap.size > 1 else slice(None)  # rotations are measured in other units
    np.testing.assert_allclose(np.abs(gap[places]), np.abs(data.efc_pos[places]), atol=1e-14)
    closed = robot.assemble(ours(data.qpos))
    data.qpos[:] = [*closed[:7], closed[10], *closed[7:10]]
    mujoco.mj_forward(model, data)
    assert np.abs(data.efc_pos).max() < 1e-12


def test_motions_are_those_of_stiff_springs(tmp_path: Path) -> None:
    robot, model, data = both(tmp_path / "r.xml", CONNECT, WELD, JOINT.replace('"k"', '"l"'))
    q = robot.assemble(ours(data.qpos))
    data.qpos[:] = [*q[:7], q[10], *q[7:10]]
    for _ in range(500):
        mujoco.mj_step(model, data)
    found = robot.simulate(q, duration=0.05, dt=1e-3)
    np.testing.assert_allclose(found.q[-1], ours(data.qpos), atol=1e-6)  # springs give by some 1e-7
    assert found.constraint_drift < 1e-12


@pytest.mark.parametrize("suffix", ["json", "toml"])
def test_saved_and_read_again(tmp_path: Path, suffix: str) -> None:
    robot, _, _ = both(tmp_path / "r.xml", CONNECT, WELD, JOINT)
    robot.save(tmp_path / f"r.{suffix}")
    again = drevo.load(str(tmp_path / f"r.{suffix}")).model
    assert (again.loops, again.couplings) == (robot.model.loops, robot.model.couplings)
    with pytest.raises(ModelError, match="its 3 closed loops"):
        robot.save(tmp_path / "r.urdf")


def test_a_polynomial_couples_joints() -> None:
    b = drevo.Builder("cam")
    for name in "ab":
        b.body(name, axis=(0, 1, 0), mass=1.0, com=(0.1, 0, 0.2), inertia=0.1 * np.eye(3))
    free = b.robot()
    held = [constraint.gear("b_joint", "a_joint", 0.5, 0.1, higher=(0.3, -0.2))]
    x, v = 0.7, 1.3
    y, slope, curvature = 0.1 + 0.5 * x + 0.3 * x**2 - 0.2 * x**3, 0.5 + 0.6 * x - 0.6 * x**2, 0.6 - 1.2 * x
    found = free.constrained_dynamics([x, y], [v, slope * v], [1.0, 0.0], constraints=held)
    assert abs(found.value[0]) < 1e-15 and abs(found.rate[0]) < 1e-15
    np.testing.assert_allclose(found.a[1], slope * found.a[0] + curvature * v * v, rtol=1e-13)
    coupled = b.couple("b_joint", "a_joint", (0.1, 0.5, 0.3, -0.2)).robot()
    again = coupled.constrained_dynamics([x, y], [v, slope * v], [1.0, 0.0])
    np.testing.assert_array_equal(again.a, found.a)


@pytest.mark.parametrize(
    "held, sentence",
    [
        ('<connect body1="z" anchor="0 0 0"/>', "connect on line 1: the body 'z' does not exist"),
        ('<weld site1="sb" site2="z"/>', "weld on line 1: the site 'z' does not exist"),
        ('<joint name="e" joint1="z"/>', "joint 'e': 'z' is no hinge or slide of the file"),
        ('<joint joint1="f_joint"/>', "is no hinge or slide"),
    ],
)
def test_names_that_are_not_there(tmp_path: Path, held: str, sentence: str) -> None:
    (tmp_path / "r.xml").write_text((HEAD + BODIES + held + TAIL).replace("\n", " "))
    with pytest.raises(ModelError, match=sentence):
        drevo.load(str(tmp_path / "r.xml"))


def test_a_coupling_of_joints_that_are_not_there() -> None:
    b = drevo.Builder("r").body("a", mass=1.0, com=(0.1, 0, 0)).couple("a_joint", "q", (0.0, 1.0))
    with pytest.raises(ModelError, match="a coupling names the joint 'q', which does not exist"):
        b.robot()
