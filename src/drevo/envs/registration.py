"""The tasks under names of gymnasium: gymnasium.make("drevo/HalfCheetah-v5"), gymnasium.make_vec(...).

Vector environments in the form that Stable-Baselines3 takes, so that its algorithms run as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import gymnasium
import numpy as np

from ..errors import InputError, one_of
from ..io.given import Array
from ..io.packages import package
from .adroit import ADROIT
from .fetch import FetchEnv
from .goals import DrawnEnv
from .hand import HandEnv
from .ours import GOALS, TASKS, AdroitTask, FetchTask, HandTask, PandaTask, SawyerTask
from .panda import PandaEnv
from .sawyer import SawyerEnv
from .simulation import RENDER_MODES
from .suite_tasks import SUITE
from .vector import StepEnv

NAMESPACE = "drevo"
ENVIRONMENTS_OF_USERS: dict[str, Callable[..., StepEnv]] = {}  # what makes environments of one's own, by name


class SingleEnv(gymnasium.Env):  # type: ignore[misc]
    """One environment of a task with gymnasium's interface of one; `vector` (num_envs 1) is what steps."""

    metadata: dict[str, Any] = {"render_modes": [*RENDER_MODES], "render_fps": 30}

    def __init__(self, task: str, **options: Any) -> None:
        self.vector = many_of(1, task, autoreset="Disabled", **options)
        self.metadata, self.render_mode = self.vector.metadata, self.vector.render_mode
        self.observation_space = self.vector.single_observation_space
        self.action_space = self.vector.single_action_space

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Array, dict[str, Any]]:
        """A new episode: observation and infos."""
        super().reset(seed=seed)
        observed, infos = self.vector.reset(seed=seed, options=options)
        return _first(observed), infos

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """One action (nu,): observation, reward, terminated, truncated, infos."""
        observed, reward, ended, cut, infos = self.vector.step(np.asarray(action)[None])
        plain = {name: x[0] for name, x in infos.items() if not name.startswith("_")}
        return _first(observed), float(reward[0]), bool(ended[0]), bool(cut[0]), plain

    def render(self) -> Any:
        """A picture (height, width, 3) of uint8; None where a window shows it."""
        return self.vector.render()

    def close(self) -> None:
        """Ends the window, if there is one."""
        self.vector.close()

    @property
    def compute_reward(self) -> Any:
        """The reward of achieved and desired goals, of tasks that have goals."""
        return self.vector.compute_reward


def _first(observed: Any) -> Any:
    return {k: x[0] for k, x in observed.items()} if isinstance(observed, dict) else observed[0]


def many_of(
    num_envs: int, task: str, threads: int = 1, autoreset: str = "NextStep", dtype: str = "float64",
    render_mode: str | None = None, **options: Any,
) -> StepEnv | DrawnEnv:  # fmt: skip
    """Environments of a task side by side, as `drevo.envs.make`: what gymnasium.make_vec makes."""
    how = {"threads": threads, "autoreset": autoreset, "dtype": dtype, "render_mode": render_mode}
    if task in ENVIRONMENTS_OF_USERS:
        return ENVIRONMENTS_OF_USERS[task](num_envs=num_envs, **how, **options)
    if task in GOALS:
        one_of(f"{task}: dtype", dtype, ("float64",), InputError)
        given = GOALS[task]
        kinds: dict[type, type[DrawnEnv]] = {FetchTask: FetchEnv, HandTask: HandEnv, SawyerTask: SawyerEnv}
        kinds[PandaTask] = PandaEnv
        kind = ADROIT[given.scene] if isinstance(given, AdroitTask) else kinds[type(given)]
        return kind(task, given, num_envs, threads, autoreset, render_mode, **options)
    plain = SUITE[task].plain() if task in SUITE else TASKS[task]
    return StepEnv(task, plain, num_envs, threads, autoreset, options, dtype, render_mode)


def add_to_gymnasium(tasks: Iterable[str] = (*TASKS, *GOALS, *SUITE)) -> None:
    """Tell gymnasium tasks, each as drevo/NAME; again is no fault."""
    for task in tasks:
        name = f"{NAMESPACE}/{task}"
        if name not in gymnasium.registry:
            module = "drevo.envs.registration"
            places = {"entry_point": f"{module}:SingleEnv", "vector_entry_point": f"{module}:many_of"}
            gymnasium.register(name, **places, kwargs={"task": task})


def stable_baselines(envs: StepEnv) -> Any:
    """A stable_baselines3.common.vec_env.VecEnv that steps these environments, made with autoreset="SameStep".

    Returns and lengths of episodes stand in infos["episode"], as its Monitor puts them there. InputError for
    another autoreset. Needs the package stable-baselines3.
    """
    base = package("stable_baselines3.common.vec_env", "stable_baselines", "stable-baselines3").VecEnv
    if not isinstance(envs, StepEnv) or not envs.same:
        made = 'gymnasium.make_vec(NAME, num_envs=64, autoreset="SameStep")'
        raise InputError(f'stable_baselines takes environments of drevo.envs with autoreset="SameStep", as {made}')

    class StableEnvs(_Wrapped, base):  # type: ignore[misc,valid-type]
        pass

    stable = StableEnvs.__new__(StableEnvs)
    stable.envs, stable.returns, stable.lengths = envs, np.zeros(envs.num_envs), np.zeros(envs.num_envs, int)
    base.__init__(stable, envs.num_envs, envs.single_observation_space, envs.single_action_space)
    return stable


class _Wrapped:
    """The methods of Stable-Baselines3's VecEnv."""

    envs: StepEnv
    returns: Array
    lengths: Array
    _seeds: Sequence[int | None]

    def reset(self) -> Array:
        seed = self._seeds[0] if self._seeds else None
        self._reset_seeds()  # type: ignore[attr-defined]
        self.returns[:], self.lengths[:] = 0.0, 0
        return self.envs.reset(seed=seed)[0]

    def step_async(self, actions: Array) -> None:
        self.actions = actions

    def step_wait(self) -> tuple[Array, Array, Array, list[dict[str, Any]]]:
        observed, reward, ended, cut, infos_of_all = self.envs.step(self.actions)
        self.returns += reward
        self.lengths += 1
        over, infos = ended | cut, [dict[str, Any]() for _ in range(len(reward))]
        for k in np.flatnonzero(over):
            infos[k] = {
                "terminal_observation": infos_of_all["final_obs"][k],
                "TimeLimit.truncated": bool(cut[k] and not ended[k]),
                "episode": {"r": float(self.returns[k]), "l": int(self.lengths[k]), "t": 0.0},
            }  # fmt: skip
        self.returns[over], self.lengths[over] = 0.0, 0
        return observed, reward.astype(np.float32), over, infos

    def close(self) -> None:
        self.envs.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self.envs, attr_name, None)] * len(self._get_indices(indices))  # type: ignore[attr-defined]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        setattr(self.envs, attr_name, value)

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **given: Any) -> list[Any]:
        return [getattr(self.envs, method_name)(*args, **given)]

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * len(self._get_indices(indices))  # type: ignore[attr-defined]

    def get_images(self) -> list[Array | None]:
        return [self.envs.render(k) for k in range(self.envs.num_envs)]
