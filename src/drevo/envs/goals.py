"""Tasks as in other packages: what those of the Shadow hand, Fetch, Adroit's hand, Sawyer and Panda share.

Episodes begin and goals are drawn in NumPy, the robot is stepped by the compiled function of its task.

  Plappert et al. 2018, "Multi-goal reinforcement learning: challenging robotics environments and request for
  research".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from math import inf
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

from ..errors import InputError, shown
from ..io.given import finite, whole
from ..robot.face import Robot
from .episode import episode
from .randomise import Randomise
from .simulation import TaskRobot
from .tasks import Moment, Outcome, Task, TaskNumbers
from .traced import traced_task
from .vector import TaskEnv, reset_mask

Array = np.ndarray[Any, Any]


def endless(size: int) -> gymnasium.spaces.Box:
    """The space of so many numbers without bounds."""
    return gymnasium.spaces.Box(-inf, inf, (size,), np.float64)


def norms(x: Array) -> Array:
    """Lengths (...,) of vectors (..., n)."""
    return np.asarray(np.linalg.norm(x, axis=-1))


class DrawnEnv(TaskEnv, ABC):
    """Environments of a task side by side, whose episodes begin as NumPy draws them."""

    _state: dict[str, Array]
    goal_size: int  # numbers of what is drawn for an episode beside the state

    def __init__(
        self, name: str, task: Any, num_envs: int, threads: int, autoreset: str, render_mode: str | None = None,
        **options: Any,
    ) -> None:  # fmt: skip
        if options:
            raise InputError(f"{name} has no option {min(options)!r}")
        super().__init__(name, num_envs, threads, autoreset, render_mode)
        self.task = task
        self._compile()
        self._announce(self._space(), gymnasium.spaces.Box(-1.0, 1.0, (self._action_size(),), np.float32))
        none = np.zeros(num_envs, bool)
        goals = np.zeros((num_envs, self.goal_size))
        self._state = {"q": np.repeat(self.body.beginning, num_envs, 0),
                       "v": np.zeros((num_envs, self.body.model.nv)), "goal": goals,
                       "elapsed": np.zeros(num_envs, int), "over": none}  # fmt: skip
        self._begin(~none)

    def _compile(self) -> None:
        plain = self._plain_task()
        self.body = TaskRobot(plain)
        self.f = episode(self.body, traced_task(plain, self.body, {}), False)

    def __getstate__(self) -> dict[str, Any]:
        return {k: x for k, x in vars(self).items() if k not in ("body", "f", "picture")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, picture=None)
        self._compile()

    # -- what gymnasium calls ----------------------------------------------------------------------------------

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """New episodes everywhere; options["reset_mask"] (num_envs,) says where alone."""
        mask = reset_mask(options, self.num_envs)
        super().reset(seed=None if seed is None else whole("reset: seed", seed, 0))
        self._begin(mask)
        return self._observed(), {}

    def step(self, actions: Any) -> tuple[Any, Array, Array, Array, dict[str, Any]]:
        """One action (num_envs, n), from -1 to 1, in every environment."""
        action = finite("step: actions", actions, self.action_space.shape)
        state, mode = self._state, self.autoreset
        fresh = state["over"].copy() if mode is AutoresetMode.NEXT_STEP else np.zeros(self.num_envs, bool)
        at = np.flatnonzero(~fresh)
        self._act(at, np.clip(action[at], -1.0, 1.0))
        state["elapsed"][at] += 1
        if fresh.any():
            self._begin(fresh)
        observed = self._observed()
        reward, told = self._judged(observed)
        reward = np.where(fresh, 0.0, reward)
        truncated = (state["elapsed"] >= self.task.limit) & ~fresh
        infos: dict[str, Any] = told | {f"_{name}": ~fresh for name in told}
        state["over"] = truncated.copy()
        if mode is AutoresetMode.SAME_STEP and truncated.any():
            infos |= {"final_obs": observed, "_final_obs": truncated}
            self._begin(truncated)
            observed = self._observed()
        return observed, reward, np.zeros(self.num_envs, bool), truncated, infos

    def _begin(self, mask: Array) -> None:
        self._restart(mask)
        self._state["elapsed"][mask], self._state["over"][mask] = 0, False

    @property
    def state(self) -> dict[str, Array]:
        """All that the next step depends on but the random numbers, by name, copied."""
        return {name: x.copy() for name, x in self._state.items()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Bring back what `state` gave. Raises InputError where names or shapes are others."""
        if not isinstance(state, Mapping) or set(state) != set(self._state):
            raise InputError(f"set_state takes what env.state gave, {', '.join(self._state)}; not {shown(state)}")
        new = {k: finite(f"set_state: {k}", state[k], x.shape).astype(x.dtype) for k, x in self._state.items()}
        self._state = new

    # -- what a task says --------------------------------------------------------------------------------------

    @abstractmethod
    def _plain_task(self) -> Task:
        """The robot, and what is seen of its steps."""

    @abstractmethod
    def _space(self) -> Any:
        """The space of an observation."""

    def _action_size(self) -> int:
        """Numbers of an action."""
        return int(self.body.controls.shape[1])

    @abstractmethod
    def _act(self, at: Array, action: Array) -> None:
        """Steps some environments."""

    @abstractmethod
    def _observed(self) -> Any:
        """The observations."""

    @abstractmethod
    def _judged(self, observed: Any) -> tuple[Array, dict[str, Array]]:
        """The rewards of what is observed after a step, and infos."""

    @abstractmethod
    def _restart(self, mask: Array) -> None:
        """New episodes where a mask says so."""

    def _shown(self, index: int) -> Array:
        q: Array = self._state["q"][index]
        return q

    def _task_of(
        self, robot: Robot, told: Iterable[str] = (), observe: Any = lambda m: m.seen.positions, **more: Any
    ) -> Task:
        """The steps of a robot. told: numbers of the model that a step is told. observe: what is kept of it."""
        random = Randomise(parameters=tuple((x, (0.0, 0.0), False) for x in told))
        return Task(lambda: robot, self.task.skip, 1, observe, _unjudged, {}, random=random, **more)

    def _called(self, q: Array, v: Array, controls: Array, *parameters: Array) -> tuple[Array, Array, Array]:
        """The states after an action each, and what is kept of the step."""
        none = np.zeros((len(q), 1))
        found = self.f(q, v, none, none, np.zeros((len(q), 2)), controls, *parameters, threads=self.threads)
        return found[0], found[1], found[5]

    def _stepped(self, q: Array, v: Array, action: Array, *parameters: Array) -> tuple[Array, Array, Array]:
        """Results of `_called` for actions from -1 to 1 over the ranges of the controls."""
        low, high = self.body.controls
        return self._called(q, v, 0.5 * (low + high) + action * (0.5 * (high - low)), *parameters)


def _unjudged(m: Moment, numbers: TaskNumbers) -> Outcome:
    return Outcome(0.0, 0.0, {})


class GoalEnv(DrawnEnv):
    """Environments of a task with goals, side by side.

    Observations are dictionaries of arrays: observation, achieved_goal and desired_goal, (num_envs, n) each, as in
    gymnasium-robotics. infos["is_success"]: 1.0 where the goal is reached.
    """

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Array:
        """The reward (...,) of goals (..., n): 0 where reached, else -1; dense: minus what is left."""
        if not self.task.dense:
            return np.asarray(self._reached(achieved_goal, desired_goal) - 1.0)
        return -self._left(achieved_goal, desired_goal)

    def _space(self) -> Any:
        sizes = {"observation": self._size(), **dict.fromkeys(("achieved_goal", "desired_goal"), self.goal_size)}
        return gymnasium.spaces.Dict({k: endless(n) for k, n in sizes.items()})

    def _judged(self, observed: Any) -> tuple[Array, dict[str, Array]]:
        achieved, goal = observed["achieved_goal"], self._state["goal"]
        return self.compute_reward(achieved, goal, {}), {"is_success": self._reached(achieved, goal)}

    @abstractmethod
    def _size(self) -> int:
        """Numbers of an observation."""

    @abstractmethod
    def _reached(self, achieved: Array, goal: Array) -> Array:
        """1.0 where a goal is reached, else 0.0."""

    @abstractmethod
    def _left(self, achieved: Array, goal: Array) -> Array:
        """Distances to goals, as dense rewards count them."""
