"""Environments to learn in: gymnasium's MuJoCo tasks (v5), and two of our own, over a compiled step.

    envs = drevo.envs.make("HalfCheetah-v5", num_envs=4096, threads=2)
    observations, infos = envs.reset(seed=0)
    observations, rewards, terminated, truncated, infos = envs.step(actions)

gymnasium makes them too: gymnasium.make("drevo.envs:drevo/HalfCheetah-v5"), which imports this module, and
gymnasium.make_vec(.., num_envs=64); with it imported "drevo/HalfCheetah-v5" is enough. `Env` makes one of any
robot and of functions for reward, observation, action and end; `register` gives it a name there and
`stable_baselines` the interface of that library.
They need the extra `rl`: gymnasium, whose MJCF files they load; the quadruped is that of example-robot-data.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ..codegen.call.arguments import in_memory
from ..errors import InputError, nearest, shown
from ..io.given import asked_all
from ..io.packages import package
from .ours import GOALS, TASKS
from .suite_tasks import SUITE

if TYPE_CHECKING:
    from .goals import DrawnEnv
    from .own import Env, Servo, State
    from .randomise import Scaled
    from .registration import stable_baselines
    from .vector import StepEnv

__all__ = ["GOALS", "SUITE", "TASKS", "Env", "Scaled", "Servo", "State", "make", "register", "stable_baselines"]
_LATE = {"Env": "own", "Servo": "own", "State": "own", "Scaled": "randomise", "stable_baselines": "registration"}


def make(
    name: str, num_envs: int = 1, threads: int = 1, autoreset: str = "NextStep", *, dtype: str = "float64",
    render_mode: str | None = None, **options: Any,
) -> StepEnv | DrawnEnv:  # fmt: skip
    """A gymnasium.vector.VectorEnv of a task: one of `drevo.envs.TASKS`, such as "HalfCheetah-v5", or of
    `drevo.envs.GOALS`, such as "FetchPush-v4", whose observations are dictionaries, or "push-v3", or of
    `drevo.envs.SUITE`, dm_control's, such as "dm_control-walker-run-v0".

    num_envs: how many run side by side. threads: of the compiled step. autoreset: gymnasium's mode, "NextStep"
    (the step after an episode's last one begins the next), "SameStep" or "Disabled". dtype: of observations.
    render_mode: "rgb_array" or "human", a window. options: numbers of the task that gymnasium takes too (such as
    ctrl_cost_weight). InputError for an unknown name, with those that are near, or known.
    """
    known = (*TASKS, *GOALS, *SUITE)
    if not isinstance(name, str) or name not in known:
        near = isinstance(name, str) and (
            nearest(name, known) or next((x for x in known if name.split("-")[0].lower() in x.lower()), "")
        )
        own = (
            f"known are {', '.join(TASKS)}, and those of drevo.envs.GOALS and SUITE; of a robot of your own: "
            "drevo.envs.Env"
        )
        hint = f"did you mean {near!r}?" if near else own
        raise InputError(f"there is no environment {shown(name)}; {hint}")
    package("gymnasium", f"drevo.envs.make({name!r})", "gymnasium[mujoco]")
    from .registration import many_of

    with in_memory(f"drevo.envs.make({name!r})"):
        return many_of(num_envs, name, threads, autoreset, dtype, render_mode, **options)


def register(name: str, environment: Callable[..., Env]) -> None:
    """Give environments of one's own a name of gymnasium, drevo/NAME, for its make and make_vec.

    environment: a function of num_envs=, threads=, autoreset=, dtype= and render_mode= that makes an `Env`.
    """
    if not isinstance(name, str) or name in (*TASKS, *GOALS, *SUITE) or not callable(environment):
        raise InputError(f"register takes a new name and a function that makes an Env, not {shown(name)}")
    package("gymnasium", "drevo.envs.register")
    from .registration import ENVIRONMENTS_OF_USERS, add_to_gymnasium

    ENVIRONMENTS_OF_USERS[name] = environment
    add_to_gymnasium([name])


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    package("gymnasium", f"drevo.envs.{name}")
    return getattr(import_module(f".{_LATE[name]}", __name__), name)


def __dir__() -> list[str]:
    return [*__all__]


asked_all(__name__)

if find_spec("gymnasium"):
    import_module(".registration", __name__).add_to_gymnasium()
