"""A Panda's motion of 1,000 steps with the least effort, by JAX: the gradient goes through every step.

pip install drevo[jax] example-robot-data
"""

from __future__ import annotations

import time

import jax
import jax.numpy as jnp
import numpy as np

import drevo

STEPS, ROUNDS, DURATION = 1000, 100, 2.0


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    robot = drevo.load("panda")
    inverse_dynamics = drevo.jax.function(robot, "inverse_dynamics")
    rng = np.random.default_rng(0)
    q0, q1 = robot.random(rng), robot.random(rng)
    s = jnp.linspace(0.0, 1.0, STEPS)[:, None]
    straight = q0 + (q1 - q0) * (10 * s**3 - 15 * s**4 + 6 * s**5)
    window = (s * (1.0 - s)) ** 3  # the ends stay, with their rates
    dt = DURATION / (STEPS - 1)

    def effort(bend: jax.Array) -> jax.Array:
        """The mean square torque of a motion; bend: what is added to it, as a few cosines."""
        waves = jnp.cos(jnp.pi * s * jnp.arange(bend.shape[0]))
        q = straight + window * (waves @ bend)
        v = jnp.gradient(q, dt, axis=0)
        return (inverse_dynamics(q, v, jnp.gradient(v, dt, axis=0)) ** 2).mean()

    step = jax.jit(jax.value_and_grad(effort))
    bend, mean, square = jnp.zeros((12, robot.nv)), 0.0, 0.0
    start = time.perf_counter()
    for k in range(1, ROUNDS + 1):  # Adam
        value, slope = step(bend)
        if k % 25 == 1:
            print(f"round {k}: mean square torque {value:.2f}")
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
        bend -= 0.5 * (mean / (1 - 0.9**k)) / (jnp.sqrt(square / (1 - 0.999**k)) + 1e-12)
    print(f"{ROUNDS} rounds of {STEPS} steps, {value:.2f}: {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
