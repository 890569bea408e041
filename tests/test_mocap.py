"""Bodies of motion capture: where they stand is an argument of a compiled step."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest

import drevo
from drevo.envs.simulation import drevo_state, mujoco_state

STEP = 0.002
SCENE = """<mujoco><option timestep="0.002" cone="{cone}"/><worldbody>
<geom type="plane" size="2 2 .1"/>
<body name="hand" mocap="true" pos="0.3 0.1 0.6" quat="0.9 0.1 0.2 -0.1"/>
<body name="paddle" mocap="true" pos="{pos}" quat="{quat}">
 <geom type="{paddle}" size=".06 .05 .05"/><geom type="sphere" size=".05" pos="0 0.1 0.02"/>
 <body name="finger" pos="0 -.1 0" euler="0 10 0"><geom type="capsule" size=".03 .05"/></body>
</body>
<body name="arm" pos="0 0 0.5"><joint name="a" axis="0 0 1"/>
 <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
 <body name="fore" pos=".3 0 0"><joint name="b" axis="0 1 0"/>
  <geom type="capsule" fromto="0 0 0 .25 0 0" size=".025"/>
  <body name="tip" pos=".25 0 0"><joint name="c" axis="1 0 0" damping=".1"/>
   <geom type="capsule" fromto="0 0 0 .08 0.03 0" size=".02"/>
  </body>
 </body>
</body>
<body name="ball" pos="0.7 0.02 0.1"><freejoint/><geom type="{ball}" size=".05 .04 .03"/></body>
{more}</worldbody>{held}</mujoco>"""
HELD = """<equality><weld body1="hand" body2="tip" solref="0.02 1" torquescale="0.5"/>
<connect body1="tip" body2="hand" anchor="0.02 0 0"/></equality>"""
POSES = ["hand.pose", "paddle.pose"]


def scene(cone: str = "pyramidal", paddle: str = "box", ball: str = "sphere", **more: str) -> str:
    usual = {"pos": "0.8 0 0.06", "quat": "1 0 0 0", "more": "", "held": ""}
    return SCENE.format(**(usual | {"cone": cone, "paddle": paddle, "ball": ball} | more))


@pytest.mark.parametrize(
    ("cone", "paddle", "ball"),
    [("pyramidal", "sphere", "sphere"), ("elliptic", "box", "sphere"), ("pyramidal", "box", "box")],
)
def test_steps_along_a_path_are_mujocos(cone: str, paddle: str, ball: str) -> None:
    text = scene(cone, paddle, ball, held=HELD)
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.tolerance, model.opt.iterations = 0.0, 200
    data, robot = mujoco.MjData(model), drevo.load(text)
    step = drevo.compile(robot, "step", dt=STEP, ground=None, parameters=POSES)
    touched = 0
    for k in range(200):
        t = k * STEP
        data.mocap_pos[:] = (
            [0.3 + 0.05 * np.sin(3.0 * t), 0.1 + 0.1 * t, 0.6 - 0.1 * t],
            [0.8 - 0.4 * t, 0.0, 0.06],
        )
        data.mocap_quat[:] = [0.9, 0.1 + np.sin(t), 0.2, -0.1], [1.0, 0.0, 0.0, 0.5 * t]
        poses = np.concatenate([data.mocap_pos, data.mocap_quat], 1).ravel()
        q, v = (np.array(x, float) for x in drevo_state(robot.model, data.qpos.tolist(), data.qvel.tolist()))
        after = step(q, v, np.zeros(robot.nv), poses)
        mujoco.mj_step(model, data)
        touched += data.ncon
        q, v = mujoco_state(robot.model, after[0].tolist(), after[1].tolist())
        assert np.abs(np.array(q) - data.qpos).max() < 1e-11
        assert np.abs(np.array(v) - data.qvel).max() < 1e-9
    assert touched > 100


PLACES = "".join(
    f'<body pos="{0.15 * k} 0.6 0.05"><freejoint/><geom type="box" size=".05 .05 .05"/></body>' for k in range(2)
)


@pytest.mark.parametrize(
    ("paddle", "more", "options"),
    [("box", "", {}), ("box", PLACES, {}), ("ellipsoid", "", {"law": "coulomb", "touching": ["ball"]})],
    ids=["soft", "looped", "coulomb"],
)
def test_a_pose_given_is_the_pose_in_a_file(paddle: str, more: str, options: dict[str, Any]) -> None:
    pose = np.array([0.62, 0.03, 0.11, 0.9, 0.2, -0.1, 0.3])
    other = scene(paddle=paddle, pos="0.62 0.03 0.11", quat="0.9 0.2 -0.1 0.3", more=more)
    robot, placed = drevo.load(scene(paddle=paddle, more=more)), drevo.load(other)
    step = drevo.compile(robot, "step", dt=STEP, ground=None, parameters=["paddle.pose"], **options)
    plain = drevo.compile(placed, "step", dt=STEP, ground=None, **options)
    q = np.array(placed.initial)
    v = 0.3 * np.random.default_rng(0).standard_normal(robot.nv)
    tau = np.zeros(robot.nv)
    got, expected = step(q, v, tau, pose), plain(q, v, tau)
    assert np.abs(expected[2]).max() > 0.01  # something touches
    for x, y in zip(got, expected):
        np.testing.assert_allclose(x, y, atol=1e-10)
    away = step(np.stack([q, q]), np.stack([v, v]), np.zeros((2, robot.nv)), np.stack([pose, 2.0 * pose]))
    np.testing.assert_allclose(away[1][0], got[1], atol=1e-10)
    assert np.abs(away[1][1] - got[1]).max() > 1e-6


def test_the_pose_of_the_file_is_the_usual_one() -> None:
    robot = drevo.load(scene(quat="0.6 0.0 0.8 0"))
    step = drevo.compile(robot, "step", dt=STEP, ground=None, parameters="*.pose.*")
    values = dict(step.parameters)
    assert list(values) == [
        f"{link}.pose.{x}" for link in ("hand", "paddle") for x in ("x", "y", "z", "qw", "qx", "qy", "qz")
    ]
    np.testing.assert_allclose([*values.values()][7:], [0.8, 0.0, 0.06, 0.6, 0.0, 0.8, 0.0], atol=1e-15)


def test_mocap_is_kept_by_files_that_have_it(tmp_path) -> None:  # type: ignore[no-untyped-def]
    robot = drevo.load(scene())
    for name in ("x.xml", "x.json", "x.toml"):
        robot.save(str(tmp_path / name))
        again = drevo.load(str(tmp_path / name))
        assert [link.name for link in again.model.links if link.mocap] == ["hand", "paddle"]
    with pytest.raises(drevo.DrevoError, match="motion capture"):
        robot.save(str(tmp_path / "x.urdf"))


def test_a_link_of_motion_capture_is_welded_to_the_base(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "x.xml"
    path.write_text(scene().replace('<body name="tip"', '<body name="tip" mocap="true"'))
    with pytest.raises(drevo.DrevoError, match="'tip' is of motion capture and not welded"):
        drevo.load(str(path))


def test_motions_follow_poses() -> None:
    """A motion is the steps one after another, of each sample its own."""
    robot = drevo.load(scene(held=HELD))
    step = drevo.compile(robot, "step", dt=STEP, ground=None, parameters=POSES)
    q0 = np.array(robot.initial)

    def hand(t: float) -> np.ndarray:
        return np.array([[0.3 + t, 0.1, 0.6, 1.0, 0.0, 0.0, 0.0], [0.3, 0.1 - t, 0.6, 1.0, 0.0, t, 0.0]])

    still = [0.8, 0.0, 0.2, 1.0, 0.0, 0.0, 0.0]
    given = {"duration": 20 * STEP, "dt": STEP, "ground": None, "every": 4}
    made = robot.simulate(np.stack([q0, q0]), parameters={"hand.pose": hand, "paddle.pose": still}, **given)
    q, v = np.stack([q0, q0]), np.zeros((2, robot.nv))
    for k in range(20):
        pose = np.concatenate([hand(k * STEP), np.tile(still, (2, 1))], 1)
        q, v, _, _ = step(q, v, np.zeros((2, robot.nv)), pose)
    assert np.array_equal(made.q[-1], q) and np.array_equal(made.v[-1], v)
    one = robot.simulate(q0, parameters={"paddle.pose": still}, **given)  # held over the steps of a call
    assert np.isfinite(one.q).all()
    for wrong, told in {
        "maps names to values": ["hand.pose"],
        r"\(3, 7\)": {"hand.pose": np.zeros((3, 7))},
        "palm": {"palm.pose": still},
    }.items():
        with pytest.raises(drevo.DrevoError, match=wrong):
            robot.simulate(q0, parameters=told, **given)
    with pytest.raises(drevo.InputError, match="parameters is of a motion on a ground"):
        robot.simulate(q0, duration=0.1, parameters={"hand.pose": still})
