"""Environments to learn in: gymnasium's MuJoCo tasks (v5), and two of our own, over a compiled step.

    envs = drevo.envs.make("HalfCheetah-v5", num_envs=4096, threads=2)
    observations, infos = envs.reset(seed=0)
    observations, rewards, terminated, truncated, infos = envs.step(actions)

With this module imported gymnasium has them too: gymnasium.make("drevo/HalfCheetah-v5"), and
gymnasium.make_vec("drevo/HalfCheetah-v5", num_envs=64).
They need the extra `rl`: gymnasium, whose MJCF files they load; the quadruped is that of example-robot-data.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ..codegen.call.arguments import in_memory
from ..errors import InputError, shown
from ..io.asked import asked_all
from ..io.packages import package
from .ours import TASKS

if TYPE_CHECKING:
    from .vector import StepEnv

__all__ = ["TASKS", "make"]


def make(name: str, num_envs: int = 1, threads: int = 1, autoreset: str = "NextStep", **options: Any) -> StepEnv:
    """A gymnasium.vector.VectorEnv of a task: one of `drevo.envs.TASKS`, such as "HalfCheetah-v5".

    num_envs: how many run side by side. threads: of the compiled step. autoreset: gymnasium's mode, "NextStep"
    (the step after an episode's last one begins the next), "SameStep" or "Disabled". options: numbers of the task
    that gymnasium takes too (such as ctrl_cost_weight). InputError for an unknown name, with those that are known.
    """
    if not isinstance(name, str) or name not in TASKS:
        raise InputError(f"there is no environment {shown(name)}; known are {', '.join(TASKS)}")
    package("gymnasium", f"drevo.envs.make({name!r})", "gymnasium[mujoco]")
    from .vector import StepEnv

    with in_memory(f"drevo.envs.make({name!r})"):
        return StepEnv(name, TASKS[name], num_envs, threads, autoreset, options)


asked_all(__name__)

if find_spec("gymnasium"):
    from .registration import register

    register()
