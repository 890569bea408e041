"""The tasks are known to gymnasium by their names, one or many at once."""

import subprocess
import sys

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")
pytest.importorskip("mujoco")

from drevo.envs import GOALS, SUITE, TASKS  # noqa: E402


def test_all_tasks_have_names_of_gymnasium() -> None:
    assert {f"drevo/{task}" for task in (*TASKS, *GOALS, *SUITE)} <= set(gymnasium.registry)


def test_one_environment_is_a_row_of_many() -> None:
    one = gymnasium.make("drevo/HalfCheetah-v5", ctrl_cost_weight=0.2)
    many = gymnasium.make_vec("drevo/HalfCheetah-v5", num_envs=1, ctrl_cost_weight=0.2)
    observed, _ = one.reset(seed=3)
    rows, _ = many.reset(seed=3)
    assert np.array_equal(observed, rows[0]) and one.observation_space.shape == observed.shape
    rng = np.random.default_rng(0)
    for _ in range(5):
        action = rng.uniform(-1.0, 1.0, 6).astype(np.float32)
        observed, reward, ended, cut, infos = one.step(action)
        rows, rewards, *_ = many.step(action[None])
        assert np.array_equal(observed, rows[0]) and reward == rewards[0]
        assert isinstance(reward, float) and ended is False and cut is False and np.isfinite(infos["x_position"])


def test_gymnasium_s_own_checker_finds_nothing() -> None:
    from gymnasium.utils.env_checker import check_env

    check_env(gymnasium.make("drevo/Hopper-v5").unwrapped, skip_render_check=True)


def test_gymnasium_imports_the_tasks_by_the_module_before_their_name() -> None:
    """In a process that has not imported drevo."""
    code = (
        "import gymnasium\n"
        "name = 'drevo.envs:drevo/InvertedPendulum-v5'\n"
        "one, many = gymnasium.make(name), gymnasium.make_vec(name, num_envs=3)\n"
        "print(one.reset(seed=0)[0].shape, many.reset(seed=0)[0].shape)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.split("\n")[0] == "(4,) (3, 4)"
