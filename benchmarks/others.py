"""Peers that live in an interpreter of their own, as a child process: frax, adam, MJX, Drake.

    python others.py PEER URDF STATES.npz

answers "ready NAME QUANTITY ..." or "missing WHY", then, to "QUANTITY FIRST COUNT", the nanoseconds of COUNT
evaluations. JAX evaluates a batch of COUNT states by one jitted call, on one core, in double precision.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_ENABLE_X64", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import numpy as np

Run = Callable[[int, int], Any]


def batched(call: Callable[..., Any], *rows: Any) -> Run:
    """A function of one state as a jitted one of a batch."""
    import jax

    f = jax.jit(jax.vmap(call))
    held = [jax.numpy.asarray(x) for x in rows]

    def run(first: int, count: int) -> Any:
        return f(*(x[:count] for x in held)).block_until_ready()

    return run


def frax(path: str, s: Any) -> dict[str, Run]:
    """frax.Robot of a fixed-base robot."""
    from frax import Robot

    robot = Robot(path)
    return {
        "pose": batched(robot.joint_to_world_transforms, s["q"]),
        "inverse_dynamics": batched(lambda q, v, a: robot.rnea(q, v, a, None, None), s["q"], s["v"], s["a"]),
        "mass_matrix": batched(robot.crba, s["q"]),
        "forward_dynamics": batched(
            lambda q, v, t: robot.forward_dynamics(q, v, t, None), s["q"], s["v"], s["tau"]
        ),
    }


def adam(path: str, s: Any) -> dict[str, Run]:
    """adam.jax; it has a floating base always, so M is (n + 6)^2."""
    import jax.numpy as jnp
    from adam.jax import KinDynComputations

    robot = KinDynComputations(path, [f"panda_joint{k}" for k in range(1, 8)])
    base, still = jnp.eye(4), jnp.zeros(6)
    return {
        "mass_matrix": batched(lambda q: robot.mass_matrix(base, q), s["q"]),
        "bias": batched(lambda q, v: robot.bias_force(base, q, still, v), s["q"], s["v"]),
    }


def mjx(path: str, s: Any) -> dict[str, Run]:
    """MuJoCo's stages in JAX, those that the quantity needs; each takes about a minute to compile."""
    import mujoco
    from mujoco import mjx as m

    own = mujoco.MjModel.from_xml_path(path)
    model, data = m.put_model(own), m.make_data(own)

    def placed(q: Any) -> Any:
        return m.com_pos(model, m.kinematics(model, data.replace(qpos=q)))

    def inverse(q: Any, v: Any, a: Any) -> Any:
        d = placed(q).replace(qvel=v, qacc=a)
        return m.rne(model, m.com_vel(model, d), flg_acc=True).qfrc_bias

    def forward(q: Any, v: Any, tau: Any) -> Any:
        d = m.factor_m(model, m.crb(model, placed(q))).replace(qvel=v, qfrc_applied=tau)
        d = m.rne(model, m.com_vel(model, d))
        return _solve(model, d, tau - d.qfrc_bias)

    return {
        "inverse_dynamics": batched(inverse, s["q"], s["v"], s["a"]),
        "forward_dynamics": batched(forward, s["q"], s["v"], s["tau"]),
    }


def _solve(model: Any, d: Any, x: Any) -> Any:
    from mujoco.mjx._src import smooth

    return smooth.solve_m(model, d, x)


def drake(path: str, s: Any) -> dict[str, Run]:
    """Drake's MultibodyPlant, called from Python: there is no loop in C++ to be had from its wheel."""
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant
    from pydrake.multibody.tree import MultibodyForces

    plant = MultibodyPlant(0.0)
    (instance,) = Parser(plant).AddModels(path)
    base = plant.GetBodyIndices(instance)[0]
    plant.WeldFrames(plant.world_frame(), plant.get_body(base).body_frame())
    plant.Finalize()
    context, forces = plant.CreateDefaultContext(), MultibodyForces(plant)
    x, force = np.hstack([s["q"], s["v"]]), plant.get_applied_generalized_force_input_port()

    def inverse(k: int) -> None:
        plant.SetPositionsAndVelocities(context, x[k])
        plant.CalcForceElementsContribution(context, forces)
        plant.CalcInverseDynamics(context, s["a"][k], forces)

    def matrix(k: int) -> None:
        plant.SetPositionsAndVelocities(context, x[k])
        plant.CalcMassMatrix(context)

    def forward(k: int) -> None:
        plant.SetPositionsAndVelocities(context, x[k])
        force.FixValue(context, s["tau"][k])
        plant.EvalTimeDerivatives(context)

    def each(call: Callable[[int], None]) -> Run:
        many = len(x)

        def run(first: int, count: int) -> None:
            for k in range(first, first + count):
                call(k % many)

        return run

    return {"inverse_dynamics": each(inverse), "mass_matrix": each(matrix), "forward_dynamics": each(forward)}


PEERS = {"frax": frax, "adam.jax": adam, "mjx": mjx, "drake": drake}
PACKAGES = {"frax": "frax", "adam.jax": "adam-robotics", "mjx": "mujoco-mjx", "drake": "drake"}


def main() -> None:
    """The child's loop."""
    peer, path, states = sys.argv[1:]
    answers, sys.stdout = sys.stdout, sys.stderr  # some peers talk
    try:
        from importlib.metadata import version

        runs = PEERS[peer](path, dict(np.load(states)))
        print("ready", version(PACKAGES[peer]), *runs, file=answers, flush=True)
    except Exception as error:
        print("missing", _sentence(error), file=answers, flush=True)
        return
    for line in sys.stdin:
        name, first, count = line.split()
        try:
            start = time.perf_counter()
            runs[name](int(first), int(count))
            print(int((time.perf_counter() - start) * 1e9), file=answers, flush=True)
        except Exception as error:
            print("failed:", _sentence(error), file=answers, flush=True)


def _sentence(error: Exception) -> str:
    return f"{type(error).__name__} {error}".split("\n")[0]


if __name__ == "__main__":
    sys.path[:] = [p for p in sys.path if Path(p or ".").resolve() != Path(__file__).parent.resolve()]
    main()
