"""A task as a gymnasium.vector.VectorEnv: all episodes side by side in arrays, one compiled call a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from ...errors import InputError, shown
from .simulation import Simulation
from .tasks import Moment, Seen, Task

Array = np.ndarray[Any, Any]


class StepEnv(VectorEnv):  # type: ignore[misc]
    """Spaces, rewards, ends and beginnings are those of the task of that name in gymnasium.

    Observations are float64 (num_envs, size); the arrays of a step are its own, so that none is copied.
    """

    def __init__(
        self, name: str, task: Task, num_envs: int, threads: int, autoreset: str, options: Mapping[str, Any]
    ) -> None:
        self.task, self.numbers = task, _numbers(name, task, options)
        if isinstance(num_envs, bool) or not isinstance(num_envs, int) or num_envs < 1:
            raise InputError(f"num_envs is a whole number from 1 on, not {shown(num_envs)}")
        try:
            self.autoreset = AutoresetMode(autoreset)
        except ValueError:
            known = ", ".join(mode.value for mode in AutoresetMode)
            raise InputError(f"autoreset is one of {known}, not {shown(autoreset)}") from None
        self.simulation = Simulation(task, threads)
        self.num_envs = num_envs
        self.metadata = {"autoreset_mode": self.autoreset, "render_modes": []}
        self.render_mode = None
        self._spaces()
        self.q, self.v = self._begin(num_envs)
        self.seen = self._seen(self.q, self.v)
        self.elapsed = np.zeros(num_envs, int)
        self.over = np.zeros(num_envs, bool)

    def _spaces(self) -> None:
        low, high = (x.astype(np.float32) for x in self.simulation.drive.controls)
        q, v = self.simulation.initial[None], np.zeros((1, self.simulation.model.nv))
        shape = self._observed(q, v, self._seen(q, v)).shape[1:]
        self.single_action_space = gymnasium.spaces.Box(low, high, dtype=np.float32)
        self.single_observation_space = gymnasium.spaces.Box(-np.inf, np.inf, shape, np.float64)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)

    # -- what gymnasium calls --------------------------------------------------------------------------------

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Array, dict[str, Any]]:
        """New episodes everywhere; options["reset_mask"] (num_envs,) says where alone."""
        super().reset(seed=seed)
        mask = np.ones(self.num_envs, bool) if not options else np.asarray(options["reset_mask"], bool)
        self._restart(np.flatnonzero(mask))
        return self._observed(self.q, self.v, self.seen), {}

    def step(self, actions: Any) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """One action (num_envs, nu) in every environment."""
        action = np.asarray(actions, float)
        if action.shape != self.action_space.shape:
            raise InputError(f"the actions have the shape {action.shape}, {self.action_space.shape} needed")
        sim = self.simulation
        before, seen, fresh = self.q, self.seen, self.over.copy()
        q, v, self.seen = sim.advance(*sim.given(self.q, self.v), action)
        self.q, self.v = sim.told(q, v)
        moment = Moment(self.q, self.v, before, action, sim.seconds, self.seen, seen)
        reward, terminated, infos = self.task.judge(moment, self.numbers)
        self.elapsed += 1
        truncated = self.elapsed >= self.task.limit
        observed = self.task.observe(moment)
        if self.autoreset is AutoresetMode.NEXT_STEP and fresh.any():
            at = np.flatnonzero(fresh)
            self._restart(at)
            observed[at] = self._observed(self.q[at], self.v[at], self._part(at))
            reward[at], terminated[at], truncated[at] = 0.0, False, False
        over = terminated | truncated
        self.over = over.copy()
        known = ~fresh
        infos = {**infos, **{f"_{key}": known for key in infos}}
        if self.autoreset is AutoresetMode.SAME_STEP and over.any():
            infos |= {"final_obs": observed.copy(), "_final_obs": over.copy()}
            at = np.flatnonzero(over)
            self._restart(at)
            observed[at] = self._observed(self.q[at], self.v[at], self._part(at))
        return observed, reward, terminated, truncated, infos

    def put(self, q: Array, v: Array, seen: bool = True) -> None:
        """Put the environments into states in MuJoCo's order, (num_envs, nq) and (num_envs, nv).

        seen: what is seen is of these states; else it stays what the last step left.
        """
        self.q, self.v = np.array(q, float), np.array(v, float)
        self.over[:] = False
        if seen:
            self._look(np.arange(self.num_envs))

    # -- inside ----------------------------------------------------------------------------------------------

    def _begin(self, count: int) -> tuple[Array, Array]:
        sim = self.simulation
        return self.task.begin(self.np_random, sim.initial, sim.model.nv, count, self.numbers)

    def _restart(self, at: Array) -> None:
        self.q[at], self.v[at] = self._begin(len(at))
        self._look(at)
        self.elapsed[at], self.over[at] = 0, False

    def _seen(self, q: Array, v: Array) -> Seen | None:
        """What is seen where an episode begins."""
        sim = self.simulation
        return sim.sight.begun(*sim.given(q, v)) if sim.sight else None

    def _look(self, at: Array) -> None:
        """See anew in some environments."""
        if self.seen is None:
            return
        fresh = self._seen(self.q[at], self.v[at])
        for all_of, some in zip(self.seen, fresh or ()):
            all_of[at] = some

    def _part(self, at: Array) -> Seen | None:
        return self.seen and Seen(*(x[at] for x in self.seen))

    def _observed(self, q: Array, v: Array, seen: Seen | None) -> Array:
        """At the beginning of an episode."""
        return self.task.observe(Moment(q, v, q, np.zeros((len(q), 0)), self.simulation.seconds, seen, seen))


def _numbers(name: str, task: Task, options: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of a task, with those that were given."""
    if unknown := set(options) - set(task.numbers):
        raise InputError(f"{name} has no option {min(unknown)!r}; it has {', '.join(task.numbers)}")
    return {**task.numbers, **options}
