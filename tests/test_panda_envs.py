"""Tasks of robosuite: its controller, steps and rewards against robosuite's own, gymnasium's rules."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from goal_laws import seeds_give_starts, state_comes_back_and_pickles

gymnasium = pytest.importorskip("gymnasium")
mujoco = pytest.importorskip("mujoco")

from drevo.envs import GOALS, make  # noqa: E402
from drevo.envs.panda import _overlap, _turns  # noqa: E402
from drevo.envs.rotations import of_axis  # noqa: E402
from drevo.envs.simulation import drevo_state  # noqa: E402

EXACT = 1e-10  # MuJoCo's solver at its end, over 25 substeps
FIRST = 1e-5  # the first action there begins with the inertia of shut fingers
SINGLE = 1e-6  # quaternions of the grip and rotations of actions are single precision there


def theirs(name: str, monkeypatch: Any) -> Any:
    """The environment of robosuite, on a MuJoCo that has other names than its own."""
    robosuite = pytest.importorskip("robosuite", exc_type=ImportError)
    from robosuite.controllers.parts import controller
    from robosuite.utils import binding_utils

    def places(joint: str, width: dict[int, int]) -> Any:
        def found(model: Any, name: str) -> Any:
            k = model.joint_name2id(name)
            first, n = int(getattr(model, joint)[k]), width.get(int(model.jnt_type[k]), 1)
            return first if n == 1 else (first, first + n)

        return found

    monkeypatch.setattr(binding_utils.MjModel, "get_joint_qpos_addr", places("jnt_qposadr", {0: 7, 1: 4}))
    monkeypatch.setattr(binding_utils.MjModel, "get_joint_qvel_addr", places("jnt_dofadr", {0: 6, 1: 3}))
    monkeypatch.setattr(binding_utils.MjData, "qM", property(lambda x: x._data), raising=False)
    full = SimpleNamespace(mj_fullM=lambda model, M, data: mujoco.mj_fullM(model, data, M))
    monkeypatch.setattr(controller, "mujoco", full)
    env = robosuite.make(
        name, robots="Panda", has_renderer=False, has_offscreen_renderer=False, use_camera_obs=False,
        reward_shaping=True, hard_reset=False, seed=0,
    )  # fmt: skip
    option = env.sim.model._model.opt
    option.tolerance, option.iterations, option.ccd_tolerance, option.ccd_iterations = 0.0, 100, 1e-12, 200
    return env


def flat(seen: Any) -> np.ndarray:
    """Observations of robosuite in a row, but for accelerations."""
    arm = seen["robot0_proprio-state"]
    return np.concatenate([seen["object-state"], arm[:28], arm[35:]])


def put(ours: Any, oracle: Any, **more: str) -> None:
    """Puts the environment of ours where robosuite's is, its cube as large; more: parts that are as q, so many."""
    data = oracle.sim.data._data
    q, v = (np.array([x]) for x in drevo_state(ours.body.model, data.qpos.tolist(), data.qvel.tolist()))
    state = ours.state | {"q": q, "v": v}
    if "sides" in state:
        state["sides"] = np.array([oracle.sim.model._model.geom("cube_g0").size])
    ours.set_state(state | {name: q[:, : state[name].shape[1]] for name in more})


def off(ours: np.ndarray, same: np.ndarray) -> float:
    """How far observations are apart; the grip's quaternion within single precision."""
    away = abs(ours[0] - same)
    assert away[-8:-4].max() < SINGLE
    away[-8:-4] = 0.0
    return float(away.max())


def led(seen: Any, k: int, two: bool) -> np.ndarray:
    """An action of a hand that goes over the cube and down, shuts, lifts; with two puts it on the other."""
    cube, grip = flat(seen)[:3], seen["robot0_eef_pos"]
    aim, action = grip, np.zeros((1, 7), np.float32)
    if k < 45:
        aim = cube + np.array([0.0, 0.0, 0.06 * (k < 25)])
    elif k >= 60:
        aim = np.array([*grip[:2], 0.95])
    if two and k >= 85:
        over = seen["cubeB_pos"][:2] - cube[:2]
        aim = np.array([*(grip[:2] + over), 0.95 if k < 125 else 0.873 + grip[2] - cube[2]])
    if two and k >= 160:
        aim = grip + np.array([0.0, 0.0, 0.02 * (k > 175)])
    action[0, :3] = np.clip(18.0 * (aim - grip), -1.0, 1.0)
    action[0, 6] = 1.0 if 45 <= k < 160 else -1.0
    return action


@pytest.mark.needs("robosuite")
@pytest.mark.parametrize("name", ["Lift", pytest.param("Stack", marks=pytest.mark.slow)])
def test_actions_are_robosuites(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, oracle = make(f"{name}Dense"), theirs(name, monkeypatch)
    seen, rng, done = oracle.reset(), np.random.default_rng(1), 0
    put(ours, oracle, goal="q", seen="q")
    assert off(ours._observed(), flat(seen)) < 1e-13
    for k in range(190 if name == "Stack" else 100):
        action = led(seen, k, name == "Stack")
        put(ours, oracle)
        after, reward, ended, cut, infos = ours.step(action)
        seen, same, _, _ = oracle.step(action[0].astype(float))
        assert off(after, flat(seen)) < (EXACT if k else FIRST), k
        assert abs(reward[0] - same) < (EXACT if k else FIRST) and not ended[0] and not cut[0]
        assert infos["success"][0] == oracle._check_success()
        done += int(infos["success"][0])
    assert done > 10
    for _ in range(60):  # turns, too, in one run
        action = rng.uniform(-1.0, 1.0, (1, 7)) * (1.0, 1.0, 0.3, 1.0, 1.0, 1.0, 1.0)
        after, seen = ours.step(action)[0], oracle.step(action[0])[0]
        assert off(after, flat(seen)) < 1e-3


@pytest.mark.needs("robosuite")
def test_rules_of_gymnasium() -> None:
    from gymnasium.utils.env_checker import check_env

    envs = make("Stack", num_envs=3)
    state_comes_back_and_pickles(envs, 0.3)
    first = seeds_give_starts(envs, 0)
    places = first[:, :2], first[:, 7:9]
    assert all((abs(x) <= 0.08).all() for x in places)
    assert (np.linalg.norm(places[0] - places[1], axis=1) > 2.0**0.5 * 0.045).all()
    kept, action = envs.state, np.full((3, 7), -0.4, np.float32)
    alone, reward, *_ = envs.step(action)
    assert (reward == 0.0).all() and envs.task.limit == 1000
    envs.set_state(kept)
    envs.threads = 2
    assert np.array_equal(envs.step(action)[0], alone)
    check_env(gymnasium.make("drevo/Lift").unwrapped, skip_render_check=True)
    assert {"Lift", "LiftDense", "Stack", "StackDense"} < set(GOALS)


@pytest.mark.needs("robosuite")
def test_cubes_have_sides_that_their_episode_draws() -> None:
    """Each cube rests on its own half height, and weighs what it weighs."""
    envs = make("Lift", num_envs=40)
    envs.reset(seed=3)
    sides = envs.state["sides"]
    assert sides.min() >= 0.02 and sides.max() <= 0.022 and len(np.unique(sides)) == 120
    for _ in range(8):
        seen = envs.step(np.zeros((40, 7)))[0]
    assert (np.abs(seen[:, 2] - 0.8 - sides[:, 2]) < 5e-4).all() and np.ptp(seen[:, 2]) > 1e-3
    before = envs.state["sides"]
    mask = np.arange(40) < 5
    envs.reset(options={"reset_mask": mask})
    assert ((envs.state["sides"] == before).all(1) == ~mask).all()


def test_boxes_overlap_where_mujoco_has_contacts() -> None:
    box = '<body name="{0}"><freejoint/><geom type="box" size="{1} {2} {3}"/></body>'
    sizes, rng = ((0.1, 0.2, 0.05), (0.15, 0.08, 0.1)), np.random.default_rng(0)
    text = "".join(box.format(name, *size) for name, size in zip("ab", sizes))
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{text}</worldbody></mujoco>")
    data, met = mujoco.MjData(model), []
    for _ in range(200):
        data.qpos[:] = [*rng.uniform(-0.3, 0.3, 3), *rng.normal(size=4), *np.zeros(3), *rng.normal(size=4)]
        mujoco.mj_forward(model, data)
        a, b = ((data.body(x).xmat.reshape(1, 3, 3), data.body(x).xpos[None]) for x in "ab")
        met.append(_overlap((*a, np.array(sizes[0])), (*b, np.array(sizes[1])))[0])
        assert met[-1] == (data.ncon > 0)
    assert 20 < sum(met) < 180


def test_turns_are_rotations() -> None:
    vectors = np.random.default_rng(0).uniform(-0.5, 0.5, (20, 3))
    R = _turns(vectors)
    assert np.allclose(R @ np.swapaxes(R, 1, 2), np.eye(3), atol=SINGLE)
    w, *xyz = of_axis(np.linalg.norm(vectors, axis=1), vectors).T
    assert np.allclose(np.trace(R, axis1=1, axis2=2), 4.0 * w * w - 1.0, atol=SINGLE)
    assert np.allclose(R[:, 2, 1] - R[:, 1, 2], 4.0 * w * xyz[0], atol=SINGLE)
    assert np.array_equal(_turns(np.zeros((1, 3)))[0], np.eye(3))
