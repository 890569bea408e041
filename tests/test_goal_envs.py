"""Tasks of the hand: steps against MuJoCo on the same file, goals, beginnings, gymnasium's rules."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from goal_laws import state_comes_back_and_pickles

gymnasium = pytest.importorskip("gymnasium")
mujoco = pytest.importorskip("mujoco")

from drevo import InputError  # noqa: E402
from drevo.envs import GOALS, make, rotations  # noqa: E402

pytestmark = pytest.mark.needs("gymnasium_robotics")


@pytest.fixture(scope="module")
def block():
    return make("HandManipulateBlock-v1", num_envs=6)


def file_of(held: str) -> str:
    return str(Path(find_spec("gymnasium_robotics").origin).parent / "envs/assets/hand" / f"manipulate_{held}.xml")


@pytest.mark.parametrize("held", ["block", pytest.param("pen", marks=pytest.mark.slow)])
def test_a_step_is_mujocos(held: str, block) -> None:
    envs = block if held == "block" else make("HandManipulatePen-v1", num_envs=6)
    model = mujoco.MjModel.from_xml_path(file_of(held))
    data, rng = mujoco.MjData(model), np.random.default_rng(0)
    low, high = model.actuator_ctrlrange.T
    envs.reset(seed=1)
    off = []
    for _ in range(12):
        q, v = envs.body.told(envs.state["q"], envs.state["v"])
        action = rng.uniform(-1.0, 1.0, (6, 20)).astype(np.float32)
        seen, *_ = envs.step(action)
        for k in range(6):
            data.qpos[:], data.qvel[:] = q[k], v[k]
            data.ctrl[:] = 0.5 * (low + high) + action[k] * 0.5 * (high - low)
            mujoco.mj_step(model, data, nstep=20)
            same = np.concatenate([data.qpos[:24], data.qvel[:24], data.qvel[24:30], data.qpos[24:31]])
            off.append(np.abs(seen["observation"][k] - same).max())
            assert np.array_equal(seen["achieved_goal"][k], seen["observation"][k, -7:])
    assert np.median(off) < 1e-12 and np.quantile(off, 0.7) < 1e-9  # MuJoCo's solver ends at 1e-8 of the energy
    assert max(off) < 1e-3


def test_beginnings_goals_and_ends(block) -> None:
    first, infos = block.reset(seed=5)
    assert infos == {} and (first["achieved_goal"][:, 2] > 0.04).all()
    away = first["desired_goal"][:, :3] - first["achieved_goal"][:, :3]
    assert (away >= [-0.04, -0.06, 0.0]).all() and (away <= [0.04, 0.02, 0.06]).all()
    assert np.allclose(np.linalg.norm(first["desired_goal"][:, 3:], axis=1), 1.0)
    again, _ = block.reset(seed=5)
    assert all(np.array_equal(first[k], again[k]) for k in first)
    still = np.zeros((6, 20), np.float32)
    for k in range(100):
        seen, reward, ended, cut, infos = block.step(still)
        assert not ended.any() and cut.all() == (k == 99) and (reward == infos["is_success"] - 1.0).all()
    fresh, reward, _, cut, _ = block.step(still)
    assert (
        not cut.any() and (reward == 0.0).all() and not np.array_equal(fresh["desired_goal"], seen["desired_goal"])
    )


def test_state_comes_back_and_pickles(block) -> None:
    state_comes_back_and_pickles(block, 0.3)


def test_rewards_of_goals(block) -> None:
    goal = np.array([0.1, 0.0, 0.2, 1.0, 0.0, 0.0, 0.0])
    turned = goal.copy()
    turned[3:] = rotations.of_axis(np.array([0.05]), np.array([[1.0, 2.0, 3.0]]))[0]
    near, far = turned.copy(), turned.copy()
    near[0], far[0] = 0.105, 0.12
    assert block.compute_reward(np.array([near, far]), goal, {}).tolist() == [0.0, -1.0]
    dense = make("HandManipulateBlockRotateZDense-v1")
    assert np.allclose(dense.compute_reward(far, goal, {}), -0.05)  # its goals have no place
    cube = rotations.octahedral(np.arange(24))
    between = np.minimum(*(rotations.apart(cube[:, None], sign * cube) for sign in (1, -1)))
    assert (between + 2.0 * np.eye(24)).min() > 1.5
    a, b = (x / np.linalg.norm(x) for x in np.random.default_rng(3).normal(size=(2, 4)))
    assert np.allclose(rotations.without_turn(b, b) @ b, 1.0) and not np.allclose(rotations.without_turn(a, b), a)


def test_one_environment_keeps_gymnasiums_rules() -> None:
    from gymnasium.utils.env_checker import check_env

    one = gymnasium.make("drevo/HandManipulateBlock-v1")
    check_env(one.unwrapped, skip_render_check=True)
    seen, _ = one.reset(seed=1)
    reward = one.step(one.action_space.sample())[1]
    assert seen["observation"].shape == (61,) and reward in (-1.0, 0.0)
    assert one.unwrapped.compute_reward(seen["achieved_goal"], seen["achieved_goal"], {}) == 0.0
    with pytest.raises(InputError, match="no option"):
        make("HandManipulateBlock-v1", friction=1.0)
    assert len([x for x in GOALS if x.startswith("Hand")]) == 22
