"""A quadruped learns to walk: a task of one's own over any robot, learned by Stable-Baselines3's PPO.

pip install drevo[rl] stable-baselines3 example-robot-data && python examples/learn_to_walk.py

The robot is Unitree's Go1 as its URDF has it; reward, observation, servos, falls and randomisation are below. The
step of all environments is one compiled call. Some minutes of one core; the film is an animated PNG.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import drevo
from drevo.envs import Env, Scaled, Servo, State

STANCE = np.array([0.0, 0.8, -1.6] * 4)  # hip, thigh and calf of every leg, rad
HEIGHT = 0.32  # m, of the trunk where an episode begins
SPEED = 0.6  # m/s, forward


def observation(s: State) -> list[object]:
    """Gravity as the trunk feels it, its velocities, the joints, and the action before."""
    return [s.in_link("trunk", (0.0, 0.0, -1.0)), s.v[:6], s.q[7:], s.v[6:], s.previous_action]


def reward(s: State) -> dict[str, object]:
    off = (s.velocity("trunk")[0] - SPEED) / 0.25
    change = sum((a - b) * (a - b) for a, b in zip(s.action, s.previous_action))
    return {
        "reward_speed": 1.0 / (1.0 + off * off),
        "reward_straight": -0.5 * (s.v[1] * s.v[1] + s.v[5] * s.v[5]) - 0.05 * (s.v[3] * s.v[3] + s.v[4] * s.v[4]),
        "reward_level": -1.0 * (1.0 + s.in_link("trunk", (0.0, 0.0, -1.0))[2]),
        "reward_smooth": -0.02 * change,
        "reward_alive": 0.2,
    }


def fallen(s: State) -> list[object]:
    """The trunk is low, or leans by more than 45 degrees."""
    return [s.position("trunk")[2] < 0.18, s.in_link("trunk", (0.0, 0.0, -1.0))[2] > -0.7]


def walking(num_envs: int = 1, **options: object) -> Env:
    """The environment; friction, the trunk's mass and pushes differ from episode to episode."""
    robot = drevo.load("go1", base="floating")
    return Env(
        robot, reward, observation, Servo(STANCE, kp=60.0, kd=2.0, reach=0.4), terminated=fallen,
        reset=[0.0, 0.0, HEIGHT, 0.0, 0.0, 0.0, 1.0, *STANCE], dt=0.004, repeat=5, limit=500, num_envs=num_envs,
        randomise={"friction": (0.5, 1.1), "trunk.mass": Scaled(0.9, 1.2), "noise": 0.01, "push": (3.0, 20.0)},
        **options,
    )  # fmt: skip


def main() -> None:
    from stable_baselines3 import PPO

    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    words.add_argument("--steps", type=int, default=2_000_000)
    words.add_argument("--film", default="", help="an animated PNG of the policy, such as walk.png")
    given = words.parse_args()
    begun = time.perf_counter()
    envs = drevo.envs.stable_baselines(walking(64, autoreset="SameStep", dtype="float32"))
    agent = PPO(
        "MlpPolicy", envs, n_steps=64, batch_size=1024, n_epochs=5, learning_rate=1e-3, ent_coef=0.0, gamma=0.98,
        target_kl=0.03, policy_kwargs={"log_std_init": -0.7, "net_arch": [128, 64]}, seed=0,
        device="cpu", verbose=0,
    )  # fmt: skip
    agent.learn(given.steps)
    print(f"learned in {(time.perf_counter() - begun) / 60.0:.1f} minutes")

    env = walking(16, autoreset="Disabled", dtype="float32")
    seen, _ = env.reset(seed=1)
    start, falls, frames = env.q[:, 0].copy(), np.zeros(16, bool), []
    for k in range(250):
        seen, _, ended, *_ = env.step(agent.predict(seen, deterministic=True)[0])
        falls |= ended
        if given.film and k % 2 == 0:
            frames.append(env.render())
    went = env.q[:, 0] - start
    mean = f"the others went {went[~falls].mean():.2f} m on average"
    others = "and none is left: learn longer" if falls.all() else mean
    print(f"16 robots, 5 s: {falls.sum()} fell, {others}")
    if frames:
        from PIL import Image

        first, *rest = (Image.fromarray(x).quantize(64) for x in frames)
        first.save(given.film, save_all=True, append_images=rest, duration=40, loop=0)


if __name__ == "__main__":
    main()
