"""Tasks of metaworld: beginnings, steps, rewards and infos against metaworld's own, gymnasium's rules."""

from typing import Any

import numpy as np
import pytest
from goal_laws import seeds_give_starts, state_comes_back_and_pickles

gymnasium = pytest.importorskip("gymnasium")
mujoco = pytest.importorskip("mujoco")

from drevo.envs import GOALS, make  # noqa: E402
from drevo.envs.ours import SawyerTask  # noqa: E402
from drevo.envs.sawyer import both, closeness  # noqa: E402
from drevo.envs.simulation import drevo_state  # noqa: E402

NAMES = [name for name, task in GOALS.items() if isinstance(task, SawyerTask)]
FIRM = {"reach-v3": 1e-4, "push-v3": 1e-6, "pick-place-v3": 1e-6, "window-open-v3": 1e-5}  # of the median step
PLAIN = 1e-8  # where nothing lies flat, and no capsule leans on the mesh of the hand
LOOSE = 1e-2  # of all steps: fingers flat on the round top of a button


def theirs(name: str, monkeypatch: Any) -> Any:
    """The environment of metaworld, its goal in sight and drawn from a seed."""
    base = pytest.importorskip("metaworld.sawyer_xyz_env").SawyerMocapBase
    weld = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 5.0]  # MuJoCo 4 has one number more
    monkeypatch.setattr(base, "reset_mocap_welds", lambda env: env.model.eq_data[0, :11].__setitem__(..., weld))
    env = pytest.importorskip("metaworld.env_dict").MT10_V3[name]()
    option = env.model.opt
    option.tolerance, option.iterations, option.ccd_tolerance, option.ccd_iterations = 0.0, 100, 1e-12, 200
    del env.sawyer_observation_space
    env._partially_observable, env._set_task_called = False, True
    return env


def begun(ours: Any, oracle: Any, seed: int) -> np.ndarray:
    """The first observation of an episode of metaworld's with the goal that it drew for a seed, as ours does."""
    oracle._freeze_rand_vec, oracle.seeded_rand_vec = False, True
    oracle.seed(seed)
    oracle.reset()
    first, _ = ours.reset(seed=seed)
    assert np.array_equal(ours.state["goal"][0], oracle._last_rand_vec)
    oracle._freeze_rand_vec = True
    seen, _ = oracle.reset()
    assert np.abs(first[0] - seen).max() < (1e-4 if ours.thing.link == "obj" else 1e-13)
    return np.asarray(seen)


def put(ours: Any, oracle: Any, seen: np.ndarray) -> None:
    """Puts the environment of ours where metaworld's is."""
    data = oracle.data
    q, v = drevo_state(ours.body.model, data.qpos.tolist(), data.qvel.tolist())
    at = {"q": np.array([q]), "v": np.array([v]), "hand": data.mocap_pos.copy(), "look": seen[None, :18].copy()}
    ours.set_state(ours.state | at)


@pytest.mark.needs("metaworld")
@pytest.mark.parametrize("name", [NAMES[0], *(pytest.param(x, marks=pytest.mark.slow) for x in NAMES[1:])])
def test_episodes_are_metaworlds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """metaworld's own policy does the task; each step is from metaworld's state."""
    ours, oracle = make(name), theirs(name, monkeypatch)
    policy = pytest.importorskip("metaworld.policies").ENV_POLICY_MAP[name]()
    off, done = [], 0.0
    for seed in (5, 6):
        seen = begun(ours, oracle, seed)
        if GOALS[name].flat:
            ours.settled[2][0, 11] = oracle._target_pos[2]  # how high a puck settles is apart by 2e-8
        for _ in range(130):
            put(ours, oracle, seen)
            action = np.clip(policy.get_action(seen.copy()), -1.0, 1.0).astype(np.float32)
            after, _, _, _, infos = ours.step(action[None])
            seen, _, _, _, told = oracle.step(action)
            off.append(float(np.abs(after[0] - seen).max()))
            assert infos["success"][0] == told["success"]
            put(ours, oracle, seen)
            ours.set_state(ours.state | {"look": ours._look(ours.state["q"])})
            assert np.abs(ours._observed()[0] - seen).max() < 1e-12
            reward, infos = ours._judged(ours._observed())
            same, told = oracle.evaluate_state(seen, action.astype(float))
            assert abs(reward[0] - same) < 1e-12
            assert all(abs(float(x[0]) - float(told[k])) < 1e-12 for k, x in infos.items())
            done += float(told["success"])
    assert done > 0.0 and np.median(off) < FIRM.get(name, PLAIN) and max(off) < LOOSE


@pytest.mark.needs("metaworld")
def test_random_episodes_are_metaworlds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole episodes from the beginning alone; what is drawn again after the end is another goal."""
    ours, oracle = make("reach-v3"), theirs("reach-v3", monkeypatch)
    begun(ours, oracle, 3)
    rng, goal = np.random.default_rng(0), ours.state["goal"].copy()
    for k in range(500):
        action = rng.uniform(-1.0, 1.0, (1, 4)).astype(np.float32)
        after, reward, ended, cut, infos = ours.step(action)
        seen, same, _, last, told = oracle.step(action[0])
        arm = np.r_[0:4, 18:22, 36:39]  # without the puck, that lies
        assert np.abs(after[0] - seen)[arm].max() < 1e-10 and abs(reward[0] - same) < 1e-10
        assert not ended[0] and cut[0] == last == (k == 499) and infos["success"][0] == told["success"]
    assert ours.step(action)[1][0] == 0.0 and not np.array_equal(ours.state["goal"], goal)


@pytest.mark.needs("metaworld")
def test_rules_of_gymnasium() -> None:
    from gymnasium.utils.env_checker import check_env

    envs = make("reach-v3", num_envs=3)
    state_comes_back_and_pickles(envs, 0.3)
    seeds_give_starts(envs, 36)
    kept, action = envs.state, np.full((3, 4), -0.4, np.float32)
    alone = envs.step(action)[0]
    envs.set_state(kept)
    envs.threads = 2
    assert np.array_equal(envs.step(action)[0], alone)
    one = gymnasium.make("drevo/reach-v3")
    check_env(one.unwrapped, skip_render_check=True)
    assert len(NAMES) == 10


def test_closeness_and_products() -> None:
    x = np.array([-0.1, 0.0, 0.05, 0.15, 1.05])
    assert np.allclose(closeness(x, 0.05, 0.1), [0.1, 1.0, 1.0, 0.1, 1.0 / 901.0])
    assert np.allclose(closeness(x, 0.05, 0.1, gaussian=True), [0.1, 1.0, 1.0, 0.1, 0.0])
    assert np.array_equal(closeness(x, 0.05, 0.0), [0.0, 1.0, 1.0, 0.0, 0.0])  # no margin
    a, b = np.random.default_rng(0).uniform(size=(2, 50))
    assert np.allclose(1.0 / both(a, b) + 1.0, 1.0 / a + 1.0 / b)  # of Hamacher
    assert both(np.zeros(1), np.zeros(1)) == 0.0
