"""Tasks of dm_control's suite against dm_control's own: starts, observations, rewards and steps."""

import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium")
mujoco = pytest.importorskip("mujoco")

from drevo.envs import SUITE, make  # noqa: E402
from drevo.envs.scales import FALLS, decay, log_of, tolerance  # noqa: E402
from drevo.envs.simulation import mujoco_state  # noqa: E402
from drevo.envs.suite_legs import BUMPS, TERRAIN_SEED  # noqa: E402

pytestmark = pytest.mark.needs("dm_control")
FEW = ("cartpole-three_poles", "finger-turn_easy", "point_mass-hard", "walker-run")
# of steps, of the largest number; of the others 2e-12. Sweeps of dm_control's dog against slip end for all that it
# touches together
ROUND_OFF = {"swimmer-swimmer15": 1e-11, "quadruped-escape": 1e-11, "dog": 1e-4}


def chosen() -> list[Any]:
    """All tasks by their short names; most of them by night."""
    names = [name.removeprefix("dm_control-").removesuffix("-v0") for name in SUITE]
    return [x if x in FEW else pytest.param(x, marks=pytest.mark.slow) for x in names]


def theirs(name: str) -> Any:
    """The environment of dm_control, its solver exact."""
    from dm_control.mujoco.wrapper.mjbindings import sizes

    model = mujoco.MjModel.from_xml_string("<mujoco/>")
    for kind, some in (("mjmodel", model), ("mjdata", mujoco.MjData(model))):
        fields = sizes.array_sizes[kind]  # of the MuJoCo that it was built with; this one may have fewer
        for field in [x for x in fields if not hasattr(some, x)]:
            del fields[field]
    from dm_control import suite

    env = suite.load(*name.split("-"), task_kwargs={"random": 0})
    if name == "quadruped-escape":  # whose terrain is drawn once here, and whose pictures need a display
        from dm_control.suite import quadruped

        bumps = np.random.default_rng(TERRAIN_SEED).uniform(0.15, 1.0, (BUMPS, BUMPS))
        zoom = quadruped.ndimage.zoom
        quadruped.ndimage = SimpleNamespace(zoom=lambda _, by: zoom(bumps, by))
        type(env.physics).contexts = None
    option = env.physics.model.opt
    option.tolerance, option.iterations, option.ls_iterations = 0.0, 100, 100
    if name.startswith("dog"):  # MuJoCo takes frames that are 1e-6 apart for one
        env.physics.model.body_sameframe[:] = env.physics.model.geom_sameframe[:] = 0
    return env


def flat(seen: Any) -> Any:
    return np.concatenate([np.ravel(x) for x in seen.values()])


def place(name: str, env: Any, drawn: Any) -> None:
    """Puts what an episode drew beside the state into dm_control's model."""
    domain, model = name.split("-")[0], env.physics.named.model
    if domain == "reacher":
        model.geom_pos["target", ["x", "y"]] = drawn[1] * np.sin(drawn[0]), drawn[1] * np.cos(drawn[0])
    elif domain == "finger":
        model.site_pos["target", ["x", "z"]] = 0.2 + 0.13 * np.sin(drawn[0]), 0.4 + 0.13 * np.cos(drawn[0])
    elif domain == "fish":
        model.geom_pos["target"] = drawn
    elif domain == "swimmer":
        model.geom_pos["target", ["x", "y"]] = (0.3 if drawn[0] < 0.2 else 2.0) * drawn[1:]
    elif domain == "lqr":
        env.physics.model.jnt_stiffness[:] = drawn
    elif domain == "manipulator":
        thing, half = name.split("_")[-1], 0.5 * drawn[2]
        for body in [f"target_{thing}", *([{"ball": "cup", "peg": "slot"}[thing]] if "insert" in name else [])]:
            model.body_pos[body, ["x", "z"]] = drawn[:2]
            model.body_quat[body, ["qw", "qy"]] = np.cos(half), np.sin(half)
    elif domain == "stacker":
        model.body_pos["target", ["x", "z"]] = drawn[0], 0.022 * (2 * int(drawn[1]) + 1)
    elif domain == "point_mass":
        first = 2.0 * np.pi * drawn[0]
        angles = np.array([first, first + (drawn[2] if drawn[1] < 0.5 else -drawn[2])])
        env.physics.model.wrap_prm[:4] = np.stack([np.cos(angles), np.sin(angles)], 1).ravel()


def begin(name: str, ours: Any, env: Any) -> Any:
    """dm_control's environment in the state of ours; what it observes there."""
    q, v = mujoco_state(ours.body.model, ours.q[0], ours.v[0])
    with env.physics.reset_context():
        env.task.initialize_episode(env.physics)
        if "commands" in ours.state:
            place(name, env, ours.state["commands"][0])
        env.physics.data.qpos[:], env.physics.data.qvel[:] = q, v
        if "act" in ours.state:
            env.physics.data.act[:] = ours.state["act"][0]
    env._step_count, env._reset_next_step = 0, False
    return flat(env.task.get_observation(env.physics))


@pytest.mark.parametrize("name", chosen())
def test_steps_are_those_of_dm_control(name: str) -> None:
    """From each state of episodes of random actions: what is observed there, a step, its reward and its end."""
    ours, env, rng = make(f"dm_control-{name}-v0", autoreset="Disabled"), theirs(name), np.random.default_rng(0)
    spec, bound = env.action_spec(), next((x for k, x in ROUND_OFF.items() if name.startswith(k)), 2e-12)
    limited, away = spec.maximum < 1e9, []
    assert np.array_equal(ours.single_action_space.high[limited], spec.maximum[limited].astype(np.float32))
    assert ours.body.seconds == pytest.approx(env.control_timestep(), abs=1e-15)
    assert env._step_limit == np.inf or env._step_limit == pytest.approx(SUITE[ours.name].limit)
    for k in range(60):
        if k % 20 == 0:
            ours.reset(seed=k)
        seen = begin(name, ours, env)
        if k % 20 == 0:
            assert np.abs(ours.observed[0] - seen).max() < bound * max(1.0, np.abs(seen).max())
        action = rng.uniform(-1.0, 1.0, ours.single_action_space.shape).astype(np.float32)
        time = env.step(action.astype(float))
        observed, reward, terminated, truncated, _ = ours.step(action[None])
        seen = flat(time.observation)
        assert observed.shape[1:] == seen.shape == ours.single_observation_space.shape
        away.append(np.abs(observed[0] - seen).max() / max(1.0, np.abs(seen).max()))
        assert away[-1] < bound
        assert abs(reward[0] - time.reward) < bound and reward[0] <= 1.0 + bound
        assert terminated[0] == time.last() and not truncated[0]
    assert np.median(away) < 1e-8


@pytest.mark.parametrize("name", chosen())
def test_starts_are_drawn_as_dm_control_draws_them(name: str) -> None:
    """By Kolmogorov's and Smirnov's test on every number of the first observation, at odds of 1e-6 together."""
    count, few = 2000, 100 if name.startswith(("humanoid", "cheetah", "quadruped")) else 300
    ours, env = make(f"dm_control-{name}-v0", num_envs=count), theirs(name)
    first, _ = ours.reset(seed=1)
    other = np.array([flat(env.reset().observation) for _ in range(few)])
    most = np.sqrt(-0.5 * np.log(0.5e-6 / first.shape[1]) * (1.0 / count + 1.0 / few))
    for x, y in zip(first.T, other.T):
        both = np.sort(np.concatenate([x, y]))
        both = both[np.append(np.diff(both) > 1e-9, True)] + 1e-10  # numbers that rounding sets apart are one
        shares = (np.searchsorted(np.sort(z), both) / len(z) for z in (x, y))
        assert np.abs(np.subtract(*shares)).max() < most


def test_fingers_feel_what_they_press() -> None:
    """The spinner lies against the finger: both zones of touch."""
    ours, env, rng = make("dm_control-finger-spin-v0", autoreset="Disabled"), theirs("finger-spin"), 0
    felt, rng = [], np.random.default_rng(1)
    for k in range(200):
        ours.reset(seed=k)
        q = np.array([[rng.uniform(-1.0, 1.0), rng.uniform(-1.5, 1.5), rng.uniform(-3.0, 3.0)]])
        ours.put(q, rng.normal(size=(1, 3)), seen=False)
        begin("finger-spin", ours, env)
        action = rng.uniform(-1.0, 1.0, (1, 2)).astype(np.float32)
        seen, time = ours.step(action)[0][0], env.step(action[0].astype(float))
        if env.physics.data.ncon:
            felt.append(seen[-2:])
            assert np.abs(seen - flat(time.observation)).max() < 1e-8
    assert len(felt) > 20 and (np.max(felt, 0) > 1.0).all()


def test_hands_feel_what_they_hold() -> None:
    """A ball that flies about between the fingers: every sensor of touch, boxes, feels it."""
    name, rng = "manipulator-bring_ball", np.random.default_rng(2)
    ours, env, felt = make(f"dm_control-{name}-v0", autoreset="Disabled"), theirs(name), np.zeros(5)
    at = {joint.name: place.start for joint, place, _ in ours.body.model.slices()}
    for k in range(150):
        ours.reset(seed=k)
        q = ours.q
        q[0, [at["thumb"], at["finger"]]] = rng.uniform(-0.1, 0.9)
        ours.put(q, np.zeros_like(ours.v))
        begin(name, ours, env)
        grasp = env.physics.named.data.site_xpos["grasp", ["x", "z"]] + rng.uniform(-0.03, 0.03, 2)
        q[0, [at["ball_x"], at["ball_z"]]] = grasp
        ours.put(q, 0.1 * rng.normal(size=ours.v.shape))
        begin(name, ours, env)
        action = rng.uniform(-1.0, 1.0, (1, 5)).astype(np.float32)
        seen, time = ours.step(action)[0][0], env.step(action[0].astype(float))
        assert np.abs(seen - flat(time.observation)).max() < 1e-8 * np.abs(seen).max()
        felt = np.maximum(felt, seen[24:29])
    assert (felt > 0.1).all()


@pytest.mark.parametrize(
    "name",
    [
        "point_mass-hard",
        pytest.param("quadruped-walk", marks=pytest.mark.slow),
        pytest.param("manipulator-insert_peg", marks=pytest.mark.slow),
    ],
)
def test_states_come_back(name: str) -> None:
    """With what was drawn, what lags and where things stand; pickled too."""
    env = make(f"dm_control-{name}-v0", num_envs=3)
    env.reset(seed=1)
    action = np.random.default_rng(0).uniform(-1.0, 1.0, env.action_space.shape)
    for _ in range(5):
        env.step(action)
    state, other = env.state, pickle.loads(pickle.dumps(env))  # noqa: S301
    seen = env.step(action)[0]
    env.reset(seed=2)
    assert not np.array_equal(env.step(action)[0], seen)
    env.set_state(state)
    assert np.array_equal(env.step(action)[0], seen) and np.array_equal(other.step(action)[0], seen)


def test_masses_at_rest_are_an_end() -> None:
    env = make("dm_control-lqr-lqr_2_1-v0", num_envs=2)
    env.put(np.array([[0.0, 1e-7], [0.1, 0.0]]), np.zeros((2, 2)))
    assert env.step(np.zeros((2, 1)))[2].tolist() == [True, False]


def test_a_cheetah_has_come_to_rest_where_an_episode_begins() -> None:
    """At a reset, where the next episode begins by itself, and of one environment of many."""
    for mode in ("NextStep", "SameStep"):
        env = make("dm_control-cheetah-run-v0", num_envs=3, autoreset=mode)
        first, _ = env.reset(seed=4)
        still = np.zeros((3, 6))
        late = env.state
        late["elapsed"][1] = 999.0
        env.set_state(late)
        observed, _, _, truncated, infos = env.step(still)
        assert truncated.tolist() == [False, True, False]
        if mode == "SameStep":
            assert np.abs(infos["final_obs"][1] - first[1]).max() < 0.2  # it rested
        else:
            observed, *_ = env.step(still)
        assert env.elapsed[1] == 0 and np.abs(observed[1, :8] - first[1, :8]).max() > 1e-3
        assert np.abs(observed[:, 8:]).max() < 0.3
        again, _ = env.reset(options={"reset_mask": np.array([False, False, True])})
        assert np.array_equal(again[:2], observed[:2]) and np.abs(again[2, 8:]).max() < 0.3


def test_scales_of_rewards_are_dm_control_s() -> None:
    from dm_control.utils import rewards

    x = np.concatenate([np.linspace(-3.0, 9.0, 4001), [-1e3, 1e3]])
    for fall in FALLS:
        for least in (0.1, 0.5):
            given = {"bounds": (-0.5, 2.0), "margin": 1.3, "sigmoid": fall, "value_at_margin": least}
            assert np.abs(tolerance(x, -0.5, 2.0, 1.3, fall, least) - rewards.tolerance(x, **given)).max() < 1e-14
    assert np.array_equal(tolerance(x, 0.0, 1.0), rewards.tolerance(x, (0.0, 1.0)))
    far = np.geomspace(1e-9, 1e6, 2001)
    assert np.abs(decay(far) - np.exp(-far)).max() < 1e-15
    assert np.abs(log_of(1.0 + far) - np.log1p(far)).max() < 1e-13
