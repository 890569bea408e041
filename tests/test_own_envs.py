"""Environments of one's own: a user's functions compiled with the step, drawn, kept and restored."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import drevo

gymnasium = pytest.importorskip("gymnasium")

from drevo.envs import Env, Scaled, Servo  # noqa: E402

HOPPER = """<mujoco><worldbody><body name="trunk" pos="0 0 .1"><freejoint/><geom name="ball" size=".1" mass="1"/>
 <body name="leg" pos=".1 0 0"><joint name="hip" axis="0 1 0" damping=".1"/>
  <geom pos=".1 0 -.08" size=".03" density="500"/></body></body></worldbody></mujoco>"""
ARM = """<robot name="arm"><link name="base"/>
<link name="rod"><inertial><origin xyz="0 0 -0.5"/><mass value="2"/>
<inertia ixx="0.2" iyy="0.2" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="swing" type="continuous"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/>
<limit effort="5" velocity="10"/></joint></robot>"""


def seen(s: Any) -> list[Any]:
    return [s.q, s.v, s.time, s.previous_action, s.command["vx"], s.force("trunk"), s.position("leg"), s.before.v]


def hopper(**more: Any) -> Env:
    given: dict[str, Any] = {
        "reward": lambda s: {"speed": s.velocity("trunk")[0], "effort": -0.1 * s.action[0] * s.action[0]},
        "observation": seen,
        "action": Servo([0.3], 5.0, 0.1),
        "terminated": lambda s: [s.position("trunk")[2] < 0.05, s.time > 0.2],
        "reset": lambda random, q: ([*q[:2], 0.12 + random.uniform(0.0, 0.1), *q[3:]], [random.normal()] * 7),
        "commands": {"vx": (-1.0, 1.0)},
        "autoreset": "SameStep",
    }
    return Env(drevo.load(HOPPER), **(given | more))


def test_a_servo_too_stiff_for_its_steps_is_told() -> None:
    arm = drevo.load("puma560")  # whose wrist is light
    env = Env(arm, lambda s: 0.0, action=Servo(np.zeros(6), kp=1e6, kd=1e4), ground=None, num_envs=2)
    env.reset(seed=0)
    with pytest.raises(drevo.DrevoError, match=r"grows beyond all numbers there.*a smaller dt"):
        for _ in range(50):
            env.step(np.ones((2, 6)))


def test_a_step_is_that_of_the_compiled_robot() -> None:
    """States, forces, rewards and the servo, against a loop over `drevo.compile`'s own step."""
    env = hopper(num_envs=3, autoreset="Disabled", dt=0.002, repeat=4)
    env.reset(seed=1)
    robot, rng = drevo.load(HOPPER), np.random.default_rng(0)
    step = drevo.compile(robot, "step", dt=0.002, ground="plane")
    touched = False
    for k in range(20):
        q, v, u = env.q, env.v, rng.uniform(-1.0, 1.0, (3, 1))
        before, command = v.copy(), env.state["commands"][:, 0]
        for _ in range(4):
            tau = np.zeros((3, 7))
            tau[:, 6] = 5.0 * (0.3 + 0.5 * u[:, 0] - q[:, 7]) - 0.1 * v[:, 6]
            q, v, forces, _ = step(q, v, tau)
        observed, reward, *_, infos = env.step(u)
        assert np.allclose(env.q, q, atol=1e-10) and np.allclose(env.v, v, atol=1e-9)
        place = robot.pose(q, "leg")[:, :3, 3]
        onto = forces.sum(1) if forces.shape[1] == 1 else forces[:, 0]
        assert np.allclose(observed[:, :15], np.hstack((q, v)), atol=1e-9)
        assert np.allclose(observed[:, 15], 0.008 * (k + 1)) and np.allclose(observed[:, 17], command)
        assert np.allclose(observed[:, 18:21], onto, atol=1e-6) and np.allclose(
            observed[:, 21:24], place, atol=1e-9
        )
        assert np.allclose(observed[:, 24:], before, atol=1e-9)
        speed = robot.velocity(q, v, "trunk", frame="local_world_aligned")[:, 0]
        assert np.allclose(reward, speed - 0.1 * u[:, 0] ** 2, atol=1e-9)
        assert np.allclose(infos["speed"], speed, atol=1e-9)
        touched |= bool(np.abs(onto).max() > 0.1)
    assert touched


def test_what_is_drawn_keeps_to_its_ranges_and_moves_the_robot() -> None:
    """Masses and friction by environment are those of a step with such parameters; new ones in every episode."""
    ranges = {"friction": (0.2, 0.9), "trunk.mass": Scaled(0.5, 2.0)}
    env = hopper(num_envs=200, randomise=ranges, autoreset="Disabled", repeat=2, dt=0.002)
    env.reset(seed=3)
    names = [name for name, _ in env.f.parameters]
    numbers = env.state["numbers"]
    for name, (low, high) in {"friction": (0.2, 0.9), "trunk.mass": (0.5, 2.0)}.items():
        x = numbers[:, names.index(name)]
        assert low <= x.min() < low + 0.05 * (high - low) and high >= x.max() > high - 0.05 * (high - low)
    step = drevo.compile(drevo.load(HOPPER), "step", dt=0.002, ground="plane", parameters=list(ranges))
    q, v = env.q, env.v
    for _ in range(2):
        tau = np.zeros((200, 7))
        tau[:, 6] = 5.0 * (0.3 - q[:, 7]) - 0.1 * v[:, 6]
        q, v, *_ = step(q, v, tau, dict(zip(names, numbers.T)))
    env.step(np.zeros((200, 1)))
    assert np.allclose(env.v, v, atol=1e-9) and len(np.unique(env.v[:, 2])) == 200
    env.reset(options={"reset_mask": np.arange(200) < 100})
    assert (env.state["numbers"][:100] != numbers[:100]).all() and (
        env.state["numbers"][100:] == numbers[100:]
    ).all()


def test_actions_are_late_by_their_delay() -> None:
    """With a delay of one action and a half the third of four substeps of the next action feels it first."""
    env = Env(
        drevo.load(HOPPER), lambda s: s.v[6], action=lambda s: [0.0] * 6 + [s.action[0]], dt=0.002, repeat=4,
        randomise={"delay": (0.012, 0.012)}, ground=None, autoreset="Disabled",
    )  # fmt: skip
    env.reset(seed=0)
    step = drevo.compile(drevo.load(HOPPER), "step", dt=0.002, ground=None)
    q, v = env.q, env.v
    for k in range(4):
        env.step([[1.0]])
        for substep in range(4):
            tau = np.zeros((1, 7))
            tau[:, 6] = float(0.008 * k + 0.002 * substep > 0.012 - 1e-9)
            q, v, *_ = step(q, v, tau)
        assert np.allclose(env.v, v, atol=1e-10)


def test_noise_and_pushes() -> None:
    """Noise of the given deviation on each part; pushes come as often as they say and are no stronger."""
    env = Env(
        drevo.load(HOPPER), lambda s: 0.0, lambda s: [s.v[0], s.v[1], s.v[2]], lambda s: [0.0], ground=None,
        randomise={"noise": (0.1, 0.2, 0.0), "push": (0.04, 3.0)}, num_envs=4000, dt=0.002, repeat=4,
    )  # fmt: skip
    env.reset(seed=0)
    for _ in range(2):
        observed, *_ = env.step(np.zeros((4000, 1)))
    error = observed - env.v[:, :3]
    assert np.abs(error.std(0) - [0.1, 0.2, 0.0]).max() < 0.01 and np.abs(error.mean(0)).max() < 0.02
    assert abs(np.corrcoef(error[:, 0], error[:, 1])[0, 1]) < 0.08
    momentum = np.linalg.norm(env.v[:, :2], axis=1)
    assert 0.3 < (momentum > 1e-6).mean() < 0.42  # 1 - 0.8^2
    assert 0.005 < momentum.max() < 2 * 3.0 * 0.008  # of a robot of a kilogram


def test_episodes_go_on_in_copies_and_come_back() -> None:
    """A pickle of an environment whose functions are lambdas, a copy, and a state that is set: the same bits."""
    env = hopper(num_envs=4, randomise={"friction": (0.2, 1.0), "noise": 0.01}, dtype="float32")
    first, _ = env.reset(seed=0)
    assert first.dtype == np.float32 and env.single_observation_space.dtype == np.float32
    rng = np.random.default_rng(0)
    actions, others = rng.uniform(-1.0, 1.0, (60, 4, 1)), [copy.deepcopy(env), pickle.loads(pickle.dumps(env))]  # noqa: S301
    kept, ends = env.state, 0
    runs = [env.step(u) for u in actions]
    for other in others:
        for u, expected in zip(actions, runs):
            found = other.step(u)
            assert all(np.array_equal(x, y) for x, y in zip(found[:4], expected[:4]))
            ends += int(expected[2].sum())
    assert ends > 0
    env.set_state(kept)
    assert np.array_equal(env.step(actions[0])[0], runs[0][0])
    env.set_state(env.q, np.zeros_like(env.v))
    assert not env.v.any()
    with pytest.raises(drevo.InputError, match=r"set_state takes what env\.state gave"):
        env.set_state({"q": env.q})


def test_pictures_need_no_display() -> None:
    pytest.importorskip("PIL")
    env = hopper(render_mode="rgb_array")
    env.reset(seed=0)
    picture = env.render()
    assert picture.shape == (480, 640, 3) and picture.dtype == np.uint8 and len(np.unique(picture)) > 20
    env.set_state(np.add(env.q, [0, 0, 0, 0, 0, 0, 0, 1.0]), env.v)
    assert (env.render() != picture).mean() > 1e-3
    assert drevo.envs.make("InvertedPendulum-v5").render().std() > 1.0


def test_names_of_ones_own() -> None:
    """gymnasium makes one, or many, of a registered environment; an arm takes its effort limits."""

    def swing(**options: Any) -> Env:
        return Env(drevo.load(ARM), lambda s: -s.q[0] * s.q[0], ground=None, **options)

    drevo.envs.register("Swing-v0", swing)
    one, many = gymnasium.make("drevo/Swing-v0"), gymnasium.make_vec("drevo/Swing-v0", num_envs=3)
    assert many.num_envs == 3
    one.reset(seed=0)
    seen_of_one, reward, *_ = one.step(np.array([1.0]))
    robot = drevo.load(ARM)
    step, q, v = drevo.compile(robot, "step", dt=0.002, ground=None, law="soft"), np.zeros(1), np.zeros(1)
    for _ in range(4):
        q, v, *_ = step(q, v, np.array([5.0]))
    assert np.allclose(seen_of_one, [*q, *v], atol=1e-12) and reward < 0.0


@pytest.mark.parametrize(
    "given, said",
    [
        ({"reward": 1.0}, "reward is 1.0; give a function"),
        ({"reward": lambda s: s.speed}, "reward raised AttributeError"),
        ({"action": lambda s: [0.0] * 3}, "action gives 3 efforts; it must give 7"),
        ({"action": None}, "no effort limit of 'hip'"),
        ({"actions": (1.0, -1.0)}, "the least stands first"),
        ({"randomise": {"friction": 0.5}}, "the range of 'friction' is 0.5"),
        ({"randomise": {"friction": (-0.5, 1.0)}}, "none is below 0"),
        ({"randomise": {"tail.mass": (0.5, 1.0)}}, "'tail.mass' names nothing"),
        ({"randomise": {"push": 3.0}}, "push is 3.0"),
        ({"reset": [0.0]}, r"reset has shape \(1,\)"),
        ({"reset": lambda random, q: q}, "reset gives q and v"),
        ({"randomise": np.ones(2)}, "randomise and commands map names to ranges"),
        ({"commands": 2.0}, "randomise and commands map names to ranges"),
        ({"repeat": 0}, "repeat is 0"),
        ({"render_mode": "film"}, "render_mode"),
        ({"terminated": lambda s: s.force("tail")[0] > 1.0}, "link 'tail' is not known"),
        ({"reward": lambda s: np.cos(s.q[0])}, "reward cannot be traced: .* NumPy .* drevo.sin"),
        ({"reward": lambda s: s.position("legs")[0]}, "link 'legs' is not known.*did you mean 'leg'"),
        ({"observation": lambda s: {"a": s.q}}, "a dict stands where a list of numbers must"),
        ({"observation": lambda s: ["a"]}, "a str stands where"),
    ],
)
def test_what_does_not_fit_is_one_sentence(given: dict[str, Any], said: str) -> None:
    with pytest.raises(drevo.DrevoError, match=said):
        hopper(**given)


def test_actions_beyond_the_space_are_cut_to_it() -> None:
    """Efforts of actions, and those that a function gives, are within the limits of the joints."""
    for more in ({}, {"action": lambda s: [5.0 * s.action[0]]}):
        ends = []
        for u in (1.0, 7.0):
            env = Env(drevo.load(ARM), lambda s: -s.q[0] * s.q[0], ground=None, **more)
            env.reset(seed=0)
            ends.append(env.step(np.array([[u]]))[0])
        assert np.array_equal(*ends)


def test_a_beginning_may_be_of_arrays() -> None:
    env = hopper(reset=lambda random, q: ([*q[:3], 1.0, 0.0, 0.0, 0.0, random.uniform(0.1, 0.2)], np.zeros(7)))
    env.reset(seed=0)
    assert 0.1 <= env.q[0, 7] <= 0.2 and not env.v.any()


def test_stable_baselines_takes_them_as_they_are() -> None:
    stable = pytest.importorskip("stable_baselines3")
    envs = drevo.envs.stable_baselines(hopper(num_envs=4, dtype="float32"))
    agent = stable.PPO("MlpPolicy", envs, n_steps=64, batch_size=64, n_epochs=1, device="cpu")
    agent.learn(512)
    assert len(agent.ep_info_buffer) > 0
    single = stable.PPO("MlpPolicy", gymnasium.make("drevo/InvertedPendulum-v5"), n_steps=64, device="cpu")
    single.learn(64)
    with pytest.raises(drevo.InputError, match='autoreset="SameStep"'):
        drevo.envs.stable_baselines(hopper(autoreset="NextStep"))
