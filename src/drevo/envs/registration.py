"""The tasks under names of gymnasium: gymnasium.make("drevo/HalfCheetah-v5"), gymnasium.make_vec(...)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import gymnasium
import numpy as np

from .ours import TASKS
from .picture import RENDER_MODES
from .vector import StepEnv

Array = np.ndarray[Any, Any]
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
        return observed[0], infos

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """One action (nu,): observation, reward, terminated, truncated, infos."""
        observed, reward, ended, cut, infos = self.vector.step(np.asarray(action)[None])
        plain = {name: x[0] for name, x in infos.items() if not name.startswith("_")}
        return observed[0], float(reward[0]), bool(ended[0]), bool(cut[0]), plain

    def render(self) -> Any:
        """A picture (height, width, 3) of uint8; None where a window shows it."""
        return self.vector.render()

    def close(self) -> None:
        """Ends the window, if there is one."""
        self.vector.close()


def many_of(
    num_envs: int, task: str, threads: int = 1, autoreset: str = "NextStep", dtype: str = "float64",
    render_mode: str | None = None, **options: Any,
) -> StepEnv:  # fmt: skip
    """Environments of a task side by side, as `drevo.envs.make`: what gymnasium.make_vec makes."""
    how = {"threads": threads, "autoreset": autoreset, "dtype": dtype, "render_mode": render_mode}
    if task in ENVIRONMENTS_OF_USERS:
        return ENVIRONMENTS_OF_USERS[task](num_envs=num_envs, **how, **options)
    return StepEnv(task, TASKS[task], num_envs, threads, autoreset, options, dtype, render_mode)


def add_to_gymnasium(tasks: Iterable[str] = TASKS) -> None:
    """Tell gymnasium tasks, each as drevo/NAME; again is no fault."""
    for task in tasks:
        name = f"{NAMESPACE}/{task}"
        if name not in gymnasium.registry:
            module = "drevo.envs.registration"
            places = {"entry_point": f"{module}:SingleEnv", "vector_entry_point": f"{module}:many_of"}
            gymnasium.register(name, **places, kwargs={"task": task})
