"""Vector environments against gymnasium's own, step by step; skipped where gymnasium is not installed."""

from __future__ import annotations

import copy
import json
import pickle
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from stages_on_arrays import Reference
from typer.testing import CliRunner

import drevo
from drevo.cli.main import app
from drevo.codegen.call.stream import splitmix
from drevo.envs import GOALS, SUITE, TASKS, make
from drevo.envs.episode import EpisodeStages
from drevo.envs.ours import hills
from drevo.envs.tasks import GYMNASIUM
from drevo.envs.traced import traced_task

gymnasium = pytest.importorskip("gymnasium")
mujoco = pytest.importorskip("mujoco")


def theirs(name: str) -> Any:
    """gymnasium's environment, its solver exact."""
    env = gymnasium.make(name).unwrapped
    option = env.model.opt
    option.solver, option.tolerance, option.iterations, option.ls_iterations = 2, 0.0, 100, 100
    return env


@pytest.mark.parametrize("name", GYMNASIUM)
def test_steps_are_those_of_gymnasium(name: str) -> None:
    """Spaces, and from the same state under the same action: observation, reward and end, to 1e-9."""
    env, own = theirs(name), make(name, num_envs=2)
    assert own.single_observation_space == env.observation_space
    assert own.single_action_space == env.action_space
    rng = np.random.default_rng(0)
    env.reset(seed=1)
    own.reset(seed=0)
    ends = touching = 0
    fresh = True
    for _ in range(min(40 if "Humanoid" in name else 80, TASKS[name].limit - 1)):
        own.put(np.tile(env.data.qpos, (2, 1)), np.tile(env.data.qvel, (2, 1)), seen=fresh)
        action = rng.uniform(env.action_space.low, env.action_space.high).astype(float)
        seen, reward, ended, *_ = env.step(action)
        observed, rewards, terminated, truncated, _ = own.step(np.tile(action, (2, 1)))
        assert np.abs(observed - seen).max() < 1e-9 * max(1.0, np.abs(seen).max())
        assert np.abs(rewards - reward).max() < 1e-9 * max(1.0, abs(reward))
        assert (terminated == ended).all() and not truncated.any()
        touching += env.data.ncon
        fresh = bool(ended)
        if ended:
            ends += 1
            env.reset(seed=ends + 1)
    assert touching or name.startswith("Inverted") or name in ("Reacher-v5", "Swimmer-v5")


def test_an_arm_pushes_an_object_as_mujocos_does() -> None:
    """A finger that sweeps into a cylinder; how near they are is exact here, and 1e-6 of it in MuJoCo."""
    env, own = theirs("Pusher-v5"), make("Pusher-v5")
    env.reset(seed=1)
    own.reset(seed=0)
    q, v, pushed = np.zeros(11), np.zeros(11), 0
    q[1], q[7:9], v[0] = 0.35, (-0.6 + 0.172 + 0.05, 0.87 - 0.45), 0.1
    env.set_state(q, v)
    action = np.zeros(7)
    for _ in range(12):
        own.put(env.data.qpos[None], env.data.qvel[None])
        seen, reward, *_ = env.step(action)
        observed, rewards, *_ = own.step(action[None])
        pushed += env.data.ncon > 3
        assert np.abs(observed[0] - seen).max() < 1e-5 and abs(rewards[0] - reward) < 1e-5
    assert pushed > 2 and env.data.qpos[7] > q[7] + 1e-5


def test_observations_of_beginnings_are_their_states() -> None:
    env = make("HalfCheetah-v5", num_envs=500)
    first, _ = env.reset(seed=3)
    again, _ = env.reset(seed=3)
    assert (first == again).all()
    assert np.abs(first[:, :8]).max() <= 0.1 and 0.09 < first[:, 8:].std() < 0.11
    assert (first[:, :8] == env.q[:, 1:]).all()


def test_beginnings_are_drawn_as_the_tasks_say() -> None:
    """Normal rates, a target even in a disc, an object away from its goal: moments of 4000, to five deviations."""
    n, five = 4000, 5.0 / 4000**0.5
    cheetah, reacher, pusher = (make(x, num_envs=n) for x in ("HalfCheetah-v5", "Reacher-v5", "Pusher-v5"))
    for env in (cheetah, reacher, pusher):
        env.reset(seed=5)
    rates = cheetah.v / 0.1
    for power, mean, variance in ((1, 0.0, 1.0), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0)):
        assert (np.abs((rates**power).mean(0) - mean) < five * variance**0.5).all()
    assert np.abs(np.corrcoef(rates.T) - np.eye(9)).max() < five and np.unique(rates).size == rates.size
    target = np.linalg.norm(reacher.q[:, 2:], axis=1) / 0.2
    assert target.max() <= 1.0 and abs((target**2).mean() - 0.5) < five * 12**-0.5
    place = pusher.q[:, -4:-2]
    assert (np.linalg.norm(place, axis=1) > 0.17).all() and (np.abs(place - [-0.15, 0.0]) <= [0.15, 0.2]).all()
    assert place[:, 0].max() > -0.01 and not pusher.v[:, -4:].any() and np.abs(pusher.v).max() <= 0.005


def test_episodes_of_one_environment_do_not_depend_on_others() -> None:
    """Nor on threads: its beginnings are a stream of its own, that goes on from episode to episode."""
    name, action = "InvertedPendulum-v5", np.full((64, 1), 3.0)
    env, threaded = make(name, num_envs=64), make(name, num_envs=64, threads=2)
    first, _ = env.reset(seed=7)
    threaded.reset(seed=7)
    seen = [first]
    for _ in range(30):
        observed, *_ = env.step(action)
        assert (threaded.step(action)[0] == observed).all()
        seen.append(observed)
    begun = np.concatenate([x[np.abs(x).max(1) <= 0.01] for x in seen])
    assert len(begun) > 3 * 64 and len(np.unique(begun[:, 0])) == len(begun)
    env.reset(options={"reset_mask": np.arange(64) == 3})
    assert np.abs(env.q[3]).max() <= 0.01 and not (env.q[3] == first[3, :2]).any()


def on_arrays(stages: EpisodeStages, given: dict[str, Any]) -> Reference:
    """The stages of an episode with NumPy, in the order of their calls."""
    x = Reference(stages.e, given)
    with np.errstate(all="ignore"):
        x.step()
        for stage in ("look", "judged") if stages.seen else ("judged",):
            x.call(stage)
        for _ in range(100 if x.some("fresh") else 0):
            x.blocks["draws"] = random_numbers(x.blocks["stream1"], stages.n_log + stages.n_even, stages.n_log)
            x.call("begun")
            if not x.some("seeking"):
                break
        for stage in (*(("placed", "look") if stages.seen else ()), "restarted"):
            x.call(stage)
    return x


def random_numbers(stream: Any, count: int, logs: int) -> Any:
    """(count, B): what the compiled draws put into a block; stream (2, B)."""
    seed, first = (x.astype(np.uint64) for x in stream)
    bits = splitmix(seed, first + np.arange(count, dtype=np.uint64)[:, None]) >> np.uint64(12)
    found = (bits | np.uint64(0x3FF0000000000000)).view(np.float64) - 1.0
    found[:logs] = -2.0 * np.log(1.0 - found[:logs])
    return found


@pytest.mark.parametrize("same", [False, True])
def test_the_compiled_episode_is_that_on_arrays(same: bool) -> None:
    """Steps, ends and beginnings of two poles, whose task looks at the last evaluation, by stages in NumPy."""
    name = "InvertedDoublePendulum-v5"
    env = make(name, num_envs=40, autoreset="SameStep" if same else "NextStep")
    env.reset(seed=0)
    stages = EpisodeStages(env.body, traced_task(env.task, env.body, env.numbers), same)
    program = stages.program()
    rng, begun = np.random.default_rng(0), 0
    for k in range(9):
        action = rng.uniform(-1.0, 1.0, (40, 1))
        if k < 6:  # until some end
            env.step(action)
            continue
        given = [x.copy() for x in (*env._state[:5], action, *env._state[5:])]
        found = env.f(*given)
        again = on_arrays(stages, {x.name: y for x, y in zip(program.inputs, given)})
        for x, out in zip(found, program.outputs):
            y = again.blocks[out.name].T.reshape(x.shape)
            assert np.abs(x - y).max() < 1e-9 * max(1.0, np.abs(y).max())
        begun += int((found.elapsed1 == 0.0).sum())
        env.step(action)
    assert begun > 3


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_episodes_begin_again_as_gymnasium_has_it(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the last step of an episode: the same flags, rewards and places of beginnings as SyncVectorEnv."""
    name = "InvertedPendulum-v5"
    monkeypatch.setitem(TASKS, name, replace(TASKS[name], limit=9))
    own = make(name, num_envs=3, autoreset=mode)
    single = [lambda: gymnasium.wrappers.TimeLimit(gymnasium.make(name).unwrapped, 9)] * 3
    other = gymnasium.vector.SyncVectorEnv(single, autoreset_mode=gymnasium.vector.AutoresetMode(mode))
    assert own.metadata["autoreset_mode"] == other.metadata["autoreset_mode"]
    own.reset(seed=0)
    other.reset(seed=0)
    action = np.array([[2.0], [3.0], [-3.0]], np.float32)
    begun = np.zeros((2, 3), int)
    for _ in range(40):
        for k, env in enumerate((own, other)):
            seen, reward, ended, cut, infos = env.step(action)
            fresh = np.abs(seen).max(1) <= 0.01
            begun[k] += fresh
            if mode == "NextStep":
                assert (reward[fresh] == 0.0).all() and not (ended | cut)[fresh].any()
            else:
                assert (fresh <= (ended | cut)).all() and ("final_obs" in infos) == bool((ended | cut).any())
    assert begun.min() >= 3 and np.abs(begun[0] - begun[1]).max() <= 2  # where it began is random


def test_a_mask_begins_some_episodes_again() -> None:
    env = make("Hopper-v5", num_envs=4)
    env.reset(seed=0)
    for _ in range(3):
        env.step(np.zeros((4, 3)))
    before = env.q.copy()
    env.reset(options={"reset_mask": np.array([True, False, False, True])})
    assert (env.q[1:3] == before[1:3]).all() and (env.q[[0, 3]] != before[[0, 3]]).any(1).all()
    assert env.elapsed.tolist() == [0, 3, 3, 0]


def test_arrays_of_a_step_stay_as_they_were() -> None:
    env = make("Walker2d-v5", num_envs=2)
    first, _ = env.reset(seed=0)
    kept = first.copy()
    second, reward, *_ = env.step(np.zeros((2, 6)))
    held = second.copy(), reward.copy()
    env.step(np.ones((2, 6)))
    assert (first == kept).all() and (second == held[0]).all() and (reward == held[1]).all()


def test_numbers_and_modes_are_numpys_and_gymnasiums() -> None:
    mode = gymnasium.vector.AutoresetMode.SAME_STEP
    for name in ("Hopper-v5", "FetchReach-v4"):
        try:
            env = make(name, num_envs=np.int64(2), autoreset=mode)
        except drevo.InputError as missing:  # FetchReach's scene comes with a package
            assert "gymnasium-robotics" in str(missing)
            continue
        assert env.num_envs == 2 and env.autoreset is mode


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(drevo.InputError, match="there is no environment 'Chess-v5'"):
        make("Chess-v5")
    with pytest.raises(drevo.InputError, match="has no option 'speed'"):
        make("Hopper-v5", speed=1.0)
    for name in ("Hopper-v5", "FetchReach-v4"):
        for option, wrong, sentence in (
            ("num_envs", 0, "num_envs is 0; it must be a whole number from 1"),
            ("autoreset", "never", "autoreset 'never' is not known; there are NextStep"),
            ("autoreset", np.ones(2), "autoreset array.* is not known"),
            ("render_mode", np.ones(2), "render_mode array.* is not known"),
            ("render_mode", "", "render_mode '' is not known"),
        ):
            with pytest.raises(drevo.InputError, match=sentence):
                make(name, **{option: wrong})
    env = make("Hopper-v5", num_envs=2)
    with pytest.raises(drevo.InputError, match=r"step: actions has shape \(3, 3\); it must be \(2, 3\)"):
        env.step(np.zeros((3, 3)))
    with pytest.raises(drevo.InputError, match="step: actions must hold real numbers"):
        env.step([["a"] * 3] * 2)
    with pytest.raises(drevo.InputError, match=r"put: q .*\(2, 6\)"):
        env.put(np.zeros((2, 5)), np.zeros((2, 6)))


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_actions_that_are_not_finite_are_one_sentence(count: int, bad: float) -> None:
    """Controls are cut to their ranges, which would hide them."""
    env = make("Hopper-v5", num_envs=count)
    kept, actions = env.q.copy(), np.zeros((count, 3))
    actions[count - 1, 2] = bad
    with pytest.raises(drevo.NumericsError, match=rf"step: actions .* not finite: {bad} at index {count - 1}, 2"):
        env.step(actions)
    assert np.array_equal(env.q, kept)


@pytest.mark.parametrize(
    "given, said",
    [
        ({"threads": 0}, "threads is 0; it must be a whole number from 1"),
        ({"threads": 1.5}, "threads is 1.5"),
        ({"ctrl_cost_weight": "much"}, "Hopper-v5: ctrl_cost_weight is 'much'; it must be a finite number"),
        ({"ctrl_cost_weight": np.nan}, "ctrl_cost_weight is nan"),
        ({"ctrl_cost_weight": [1.0, 2.0]}, "ctrl_cost_weight is"),
        ({"terminate_when_unhealthy": 1}, "terminate_when_unhealthy is 1; it must be True or False"),
        ({"healthy_z_range": 1.0}, "healthy_z_range is 1.0; it must be the least and the greatest value"),
        ({"healthy_z_range": (1.0, 0.0)}, "the least value must not be above"),
        ({"healthy_z_range": (1.0, "x")}, "healthy_z_range is 'x'"),
        ({"autoreset": ["x"]}, "autoreset .* is not known"),
        ({"name": ["Hopper-v5"]}, "there is no environment"),
    ],
)
def test_options_of_the_wrong_kind_are_one_sentence(given: dict[str, Any], said: str) -> None:
    with pytest.raises(drevo.InputError, match=said):
        make(**{"name": "Hopper-v5", **given})


@pytest.mark.parametrize(
    "options, said",
    [
        ({"reset_mask": np.ones(3, bool)}, r"holds bool in the shape \(3,\); .* each of the 2 environments"),
        ({"reset_mask": np.ones((2, 1), bool)}, r"shape \(2, 1\)"),
        ({"reset_mask": True}, r"shape \(\)"),
        ({"reset_mask": [0, 1]}, "holds int64"),
        ({"mask": [True, True]}, "may hold 'reset_mask' alone"),
        ([True, True], "may hold 'reset_mask' alone"),
    ],
)
def test_masks_that_do_not_fit_are_one_sentence(options: Any, said: str) -> None:
    env = make("InvertedPendulum-v5", num_envs=2)
    kept = env.q.copy()
    with pytest.raises(drevo.InputError, match=said):
        env.reset(seed=3, options=options)
    assert (env.q == kept).all()
    with pytest.raises(drevo.InputError, match="reset: seed is -1"):
        env.reset(seed=-1)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])  # noqa: S301
@pytest.mark.parametrize("name", ["Hopper-v5", "Ant-v5", "Biped-v0"])
def test_a_copy_goes_on_as_the_environment_does(copied: Any, name: str) -> None:
    """The same bits through ends and beginnings, and neither changes the other."""
    env = make(name, num_envs=3, autoreset="SameStep")
    env.reset(seed=4)
    rng = np.random.default_rng(1)
    actions = rng.uniform(-1.0, 1.0, (60, 3, *env.single_action_space.shape))
    for action in actions[:10]:
        env.step(action)
    other = copied(env)
    runs = [[e.step(action) for action in actions] + [e.reset()] for e in (env, other)]
    ends = 0
    for (*one, _), (*two, _) in zip(*runs):
        assert all(np.array_equal(x, y) for x, y in zip(one, two))
        ends += len(one) == 4 and int(one[2].sum())
    assert ends or name == "Ant-v5"
    assert np.array_equal(env.action_space.sample(), other.action_space.sample()) or copied is not copy.deepcopy


def test_a_quadruped_stands_on_hills() -> None:
    """Its servos hold it where no action asks for more; the feet carry its weight; actions move it."""
    env = make("Go1Hills-v0", num_envs=8)
    first, _ = env.reset(seed=0)
    assert first.shape == (8, 33) and env.single_action_space.shape == (12,)
    for _ in range(100):
        seen, _, fallen, *_ = env.step(np.zeros((8, 12)))
        assert np.isfinite(seen).all() and not fallen.any()
    height = env.q[:, 2] - [hills(x, y) for x, y in env.q[:, :2].tolist()]
    assert (height > 0.2).all() and (height < 0.35).all() and np.abs(env.v).max() < 0.5
    rng = np.random.default_rng(0)
    for _ in range(50):
        env.step(rng.uniform(-1.0, 1.0, (8, 12)))
    assert np.abs(env.v).max() > 0.5


def test_a_biped_falls_without_torques() -> None:
    env = make("Biped-v0", num_envs=3)
    first, _ = env.reset(seed=0)
    assert first.shape == (3, 9 + 26) and env.single_action_space.shape == (13,)
    ended = np.zeros(3, bool)
    for _ in range(150):
        seen, _, fallen, *_ = env.step(np.zeros((3, 13)))
        ended |= fallen
        assert np.isfinite(seen).all()
    assert ended.all()


def test_the_command_lists_and_measures_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is measured no number is asserted: what stands in the rows."""
    runner = CliRunner()
    assert runner.invoke(app, ["envs"]).output.split() == [*TASKS, *GOALS, *SUITE]
    told = runner.invoke(app, ["envs", "bench", "Hopper-v5", "--num-envs", "4", "--json"])
    (row,) = json.loads(told.stdout)["rows"]
    assert row["name"] == "Hopper-v5" and row["steps_per_s"] > 0.0 < row["mujoco_per_s"] and row["wrapper"] < 1.0
    monkeypatch.setattr(sys.modules["drevo.cli.envs"], "measure_environment", lambda *_: row)
    assert "Hopper-v5" in runner.invoke(app, ["envs", "bench", "Hopper-v5"]).output
    assert runner.invoke(app, ["envs", "play"]).exit_code == 2
