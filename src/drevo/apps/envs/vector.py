"""A task as a gymnasium.vector.VectorEnv: all episodes side by side in arrays, one compiled call a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from ...errors import InputError, shown
from .features import LOOKS, judgement
from .simulation import Simulation
from .tasks import Seen, Task

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
        sim = self.simulation = Simulation(task, threads)
        self.num_envs, self.action_size = num_envs, len(sim.drive.actuators)
        sizes, numbers = self._sizes(), {**self.numbers, "seconds": sim.seconds}
        self.judge, self.first = (judgement(sim.robot, task, name, numbers, sizes, x) for x in (True, False))
        self.looked = [(mark, part) for mark, _, part in (x.partition("_") for x, _ in self.judge.inputs[4:])]
        self.told = [x for x, _ in self.judge.outputs[3:]]
        self.known = [f"_{x}" for x in self.told]
        self.metadata = {"autoreset_mode": self.autoreset, "render_modes": []}
        self.render_mode = None
        self._spaces()
        self.state = sim.given(*self._begin(num_envs))  # Drevo's
        self.seen = self._seen(*self.state)
        self.elapsed = np.zeros(num_envs, int)
        self.over = np.zeros(num_envs, bool)

    @property
    def q(self) -> Array:
        """(num_envs, nq) in MuJoCo's order."""
        return self.simulation.told(*self.state)[0]

    @property
    def v(self) -> Array:
        """(num_envs, nv), linear rates of free joints along the world's axes."""
        return self.simulation.told(*self.state)[1]

    def _sizes(self) -> dict[str, int]:
        """Of what a task is judged by, in one environment."""
        sim = self.simulation
        q, v = sim.given(sim.initial[None], np.zeros((1, sim.model.nv)))
        own = {"q": q.size, "v": v.size, "before": q.size, "action": self.action_size}
        seen = self._seen(q, v)
        return {**own, **{part: x.size for part, x in seen._asdict().items()}} if seen else own

    def _spaces(self) -> None:
        low, high = (x.astype(np.float32) for x in self.simulation.drive.controls)
        shape = self.judge.outputs[0][1]
        self.single_action_space = gymnasium.spaces.Box(low, high, dtype=np.float32)
        self.single_observation_space = gymnasium.spaces.Box(-np.inf, np.inf, shape, np.float64)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)

    # -- what gymnasium calls --------------------------------------------------------------------------------

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Array, dict[str, Any]]:
        """New episodes everywhere; options["reset_mask"] (num_envs,) says where alone."""
        super().reset(seed=seed)
        mask = np.ones(self.num_envs, bool) if not options else np.asarray(options["reset_mask"], bool)
        observed = self._observed(self.q, self.v, self.seen)
        self._restart(np.flatnonzero(mask), observed)
        return observed, {}

    def step(self, actions: Any) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """One action (num_envs, nu) in every environment."""
        action = np.asarray(actions, float)
        if action.shape != self.action_space.shape:
            raise InputError(f"the actions have the shape {action.shape}, {self.action_space.shape} needed")
        sim = self.simulation
        (before, rates), seen, fresh = self.state, self.seen, self.over
        q, v, self.seen = sim.advance(before, rates, action)
        self.state = q, v
        observed, reward, ended, *told = self._judged(self.judge, q, v, before, action, self.seen, seen)
        terminated = ended > 0.5
        self.elapsed += 1
        truncated, known = self.elapsed >= self.task.limit, ~fresh
        infos = dict(zip(self.told, told)) | dict.fromkeys(self.known, known)
        if self.autoreset is AutoresetMode.NEXT_STEP and len(at := np.flatnonzero(fresh)):
            self._restart(at, observed)
            reward[at], terminated[at], truncated[at] = 0.0, False, False
        over = self.over = terminated | truncated
        if self.autoreset is AutoresetMode.SAME_STEP and len(at := np.flatnonzero(over)):
            infos |= {"final_obs": observed.copy(), "_final_obs": over.copy()}
            self._restart(at, observed)
        return observed, reward, terminated, truncated, infos

    def put(self, q: Array, v: Array, seen: bool = True) -> None:
        """Put the environments into states in MuJoCo's order, (num_envs, nq) and (num_envs, nv).

        seen: what is seen is of these states; else it stays what the last step left.
        """
        self.state = self.simulation.given(np.array(q, float), np.array(v, float))
        self.over[:] = False
        if seen:
            self._look(np.arange(self.num_envs))

    # -- inside ----------------------------------------------------------------------------------------------

    def _begin(self, count: int) -> tuple[Array, Array]:
        sim = self.simulation
        return self.task.begin(self.np_random, sim.initial, sim.model.nv, count, self.numbers)

    def _restart(self, at: Array, observed: Array) -> None:
        """New episodes at some places; what is observed of them."""
        q, v = self._begin(len(at))
        for own, new in zip(self.state, self.simulation.given(q, v)):
            own[at] = new
        self._look(at)
        self.elapsed[at], self.over[at] = 0, False
        observed[at] = self._observed(q, v, self._part(at))

    def _seen(self, q: Array, v: Array) -> Seen | None:
        """What is seen where an episode begins, of Drevo's states."""
        sight = self.simulation.sight
        return sight.begun(q, v) if sight else None

    def _look(self, at: Array) -> None:
        """See anew in some environments."""
        if self.seen is None:
            return
        fresh = self._seen(*(x[at] for x in self.state))
        for all_of, some in zip(self.seen, fresh or ()):
            all_of[at] = some

    def _part(self, at: Array) -> Seen | None:
        return self.seen and Seen(*(x[at] for x in self.seen))

    def _observed(self, q: Array, v: Array, seen: Seen | None) -> Array:
        """At the beginning of an episode, in MuJoCo's order."""
        action = np.zeros((len(q), self.action_size))
        found: Array = self._judged(self.first, q, v, q, action, seen, seen)[0]
        return found

    def _judged(self, judge: Any, *given: Any) -> Any:
        """The observation, the reward, whether the end has come, and what infos say; last of what is given what
        was seen after a step and before it."""
        *states, after, before = given
        looks, n = {LOOKS[0]: after, LOOKS[1]: before}, len(states[0])
        states += [getattr(looks[mark], part).reshape(n, -1) for mark, part in self.looked]
        threads = self.simulation.threads
        return judge(*states, **({"threads": threads} if threads > 1 else {}))


def _numbers(name: str, task: Task, options: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of a task, with those that were given."""
    if unknown := set(options) - set(task.numbers):
        raise InputError(f"{name} has no option {min(unknown)!r}; it has {', '.join(task.numbers)}")
    return {**task.numbers, **options}
